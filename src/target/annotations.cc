// annotations.cc: toolchains and layouts as function attributes.
#include "target/annotations.h"

#include "collage/support/error.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

std::vector<Layout> LayoutsFromAttr(const Attrs& attrs, const char* name, size_t count) {
  std::vector<Layout> layouts(count, Layout::kPlain);
  const AttrValue* value = attrs.Find(name);
  if (value == nullptr) return layouts;
  const AttrValue::List* list = value->as_list();
  COLLAGE_CHECK(list != nullptr && list->size() == count) << "attribute '" << name << "' does not fit the function";
  for (size_t i = 0; i < count; ++i) {
    const std::string* text = (*list)[i].as_string();
    COLLAGE_CHECK(text != nullptr) << "attribute '" << name << "' must be a list of strings";
    const std::optional<Layout> layout = LayoutNamed(*text);
    COLLAGE_CHECK(layout.has_value()) << "attribute '" << name << "' has no layouts like '" << *text << "'";
    layouts[i] = *layout;
  }
  return layouts;
}

AttrValue LayoutsToAttr(const std::vector<Layout>& layouts) {
  AttrValue::List list;
  for (Layout layout : layouts) list.emplace_back(std::string(ToString(layout)));
  return list;
}

size_t CountTensors(const std::vector<Var>& params) {
  size_t count = 0;
  for (const Var& param : params) count += FlattenTensorTypes(param->checked_type()).size();
  return count;
}

}  // namespace

std::string CompilerOf(const Toolchain& toolchain) {
  const std::string name = toolchain.name();
  return toolchain.is_native() && !IsConfigured(name) ? "" : name;
}

BoundaryLayouts LayoutsOf(const Function& partition) {
  return {LayoutsFromAttr(partition->attrs(), kAttrInputLayouts, CountTensors(partition->params())),
          LayoutsFromAttr(partition->attrs(), kAttrOutputLayouts,
                          FlattenTensorTypes(partition->body()->checked_type()).size())};
}

std::string LayoutsText(const BoundaryLayouts& layouts) {
  std::string text;
  const auto add = [&](Layout layout) {
    text += LetterOf(layout);
    if (MemoryOf(layout) != Memory::kHost) text.append("@").append(ToString(MemoryOf(layout))).append(" ");
  };
  for (Layout layout : layouts.inputs) add(layout);
  text += ':';
  for (Layout layout : layouts.outputs) add(layout);
  return text;
}

Function WithLayouts(const Function& partition, const BoundaryLayouts& layouts) {
  return WithAttr(WithAttr(partition, kAttrInputLayouts, LayoutsToAttr(layouts.inputs)), kAttrOutputLayouts,
                  LayoutsToAttr(layouts.outputs));
}

}  // namespace collage
