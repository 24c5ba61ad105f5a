// print_value.cc: values in Relay text; parse_value.cc reads them back.
#include "ir/print_value.h"

#include <fmt/format.h>

#include <cmath>

#include "ir/attr_visitor.h"
#include "ir/metadata.h"
#include "ir/text_names.h"

namespace collage {
namespace {

std::string NumberText(double value) {
  if (std::isnan(value)) return "nanf";
  if (std::isinf(value)) return value > 0 ? "inff" : "-inff";
  return fmt::format("{}f", value);
}

struct AttrPrinter {
  std::string None() const { return "None"; }
  std::string Bool(bool flag) const { return flag ? "True" : "False"; }
  std::string Int(int64_t number) const { return std::to_string(number); }
  std::string Double(double number) const { return NumberText(number); }
  std::string Text(const std::string& text) const { return QuotedText(text); }
  std::string List(const AttrValue::List& list) const {
    std::string text;
    for (const AttrValue& item : list) text += (text.empty() ? "" : ", ") + VisitAttr(item, *this);
    return "[" + text + "]";
  }
};

}  // namespace

std::string AttrText(const AttrValue& value) { return VisitAttr(value, AttrPrinter()); }

std::string AttrsText(const Attrs& attrs) {
  std::string text;
  for (const auto& [name, value] : attrs)
    text += (text.empty() ? "" : ", ") + AttrNameText(name) + "=" + AttrText(value);
  return text;
}

std::string DeviceText(const VirtualDevice& device) {
  return "virtual_device=VirtualDevice(" + AttrsText(ToAttrs(device)) + ")";
}

std::string WithoutCommentMarks(std::string text) {
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if ((text[i] == '/' && text[i + 1] == '*') || (text[i] == '*' && text[i + 1] == '/')) text[i] = '.';
  }
  return text;
}

std::string LiteralText(const Tensor& value) {
  if (value.rank() != 0 || value.dtype().is_vector()) return "";
  const DataType dtype = value.dtype();
  if (dtype.is_bool()) return value.At(0) != 0 ? "True" : "False";
  if (dtype == kInt32) return std::to_string(*value.data<int32_t>());
  if (dtype == kInt64) return std::to_string(*value.data<int64_t>()) + "i64";
  if (dtype == DataType::Int(16)) return std::to_string(*value.data<int16_t>()) + "i16";
  if (dtype.code != DataType::Code::kFloat || !std::isfinite(value.At(0))) return "";
  if (dtype == kFloat32) return fmt::format("{}f", *value.data<float>());
  return fmt::format("{}f{}", value.At(0), dtype.bits);
}

}  // namespace collage
