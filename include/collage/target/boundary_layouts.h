// boundary_layouts.h: how the values at a partition's boundary lie in memory.
#pragma once

#include <compare>
#include <cstddef>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/runtime/layout.h"

namespace collage {

/// A choice of layouts at the boundary of a partition: one for each flattened parameter and result.
struct BoundaryLayouts {
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
  auto operator<=>(const BoundaryLayouts&) const = default;
};

/// `layouts`, of values in `memory`.
BoundaryLayouts In(Memory memory, BoundaryLayouts layouts);
/// All inputs and outputs plain.
BoundaryLayouts PlainLayouts(size_t num_inputs, size_t num_outputs);
/// Eligible ones channels-last, the others plain.
BoundaryLayouts ChannelsLastLayouts(const std::vector<bool>& eligible_inputs,
                                    const std::vector<bool>& eligible_outputs);

/// `layouts`, of `function`, with the eligible values of float32 kept as `dtype`: bfloat16 or float16.
BoundaryLayouts Keeping(BoundaryLayouts layouts, DataType dtype, const Function& function,
                        const std::vector<bool>& eligible_inputs, const std::vector<bool>& eligible_outputs);
/// Whether some value of float32 is kept as a narrower type.
bool KeepsNarrow(const BoundaryLayouts& layouts);

}  // namespace collage
