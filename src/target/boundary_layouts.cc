// boundary_layouts.cc: layouts of all values at a boundary at once.
#include "collage/target/boundary_layouts.h"

#include <algorithm>

#include "collage/ir/type.h"

namespace collage {

BoundaryLayouts In(Memory memory, BoundaryLayouts layouts) {
  for (Layout& layout : layouts.inputs) layout = In(memory, layout);
  for (Layout& layout : layouts.outputs) layout = In(memory, layout);
  return layouts;
}

BoundaryLayouts PlainLayouts(size_t num_inputs, size_t num_outputs) {
  return {std::vector<Layout>(num_inputs, Layout::kPlain), std::vector<Layout>(num_outputs, Layout::kPlain)};
}

BoundaryLayouts ChannelsLastLayouts(const std::vector<bool>& eligible_inputs,
                                    const std::vector<bool>& eligible_outputs) {
  BoundaryLayouts layouts;
  for (bool eligible : eligible_inputs) {
    layouts.inputs.push_back(eligible ? Layout::kChannelsLast : Layout::kPlain);
  }
  for (bool eligible : eligible_outputs) {
    layouts.outputs.push_back(eligible ? Layout::kChannelsLast : Layout::kPlain);
  }
  return layouts;
}

BoundaryLayouts Keeping(BoundaryLayouts layouts, DataType dtype, const Function& function,
                        const std::vector<bool>& eligible_inputs, const std::vector<bool>& eligible_outputs) {
  const auto keep = [dtype](std::vector<Layout>& kept, const std::vector<Type>& types,
                            const std::vector<bool>& eligible) {
    for (size_t i = 0; i < kept.size(); ++i) {
      if (eligible[i] && AsTensorType(types[i])->dtype() == kFloat32) kept[i] = Keeping(kept[i], dtype);
    }
  };
  std::vector<Type> inputs;
  for (const Var& param : function->params()) {
    for (const Type& type : FlattenTensorTypes(param->checked_type())) inputs.push_back(type);
  }
  keep(layouts.inputs, inputs, eligible_inputs);
  keep(layouts.outputs, FlattenTensorTypes(function->body()->checked_type()), eligible_outputs);
  return layouts;
}

bool KeepsNarrow(const BoundaryLayouts& layouts) {
  const auto is = [](Layout layout) { return NarrowType(layout).has_value(); };
  return std::ranges::any_of(layouts.inputs, is) || std::ranges::any_of(layouts.outputs, is);
}

}  // namespace collage
