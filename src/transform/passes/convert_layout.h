// convert_layout.h: the engine of ConvertLayout and AlterOpLayout.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "collage/ir/expr.h"

namespace collage {

/// Orders of dimensions that a call should have: of its data, such as "NHWC", and of its weight, such as "HWIO".
struct DesiredLayouts {
  std::string data;
  std::string weight;  ///< empty for operators without weight
};

/// `function` with the calls for which `desired` gives layouts in these. Values keep their new order through operators
/// that can work in any (element-wise ones, pools, concatenation, padding, reductions that keep their dimensions);
/// layout_transform stands where an order changes. Parameters and results stay as they are.
Function ConvertLayouts(const Function& function,
                        const std::function<std::optional<DesiredLayouts>(const CallNode& call)>& desired);

/// The order of a weight that goes well with data whose channels come last: spatial dimensions, then input and output
/// channels; `own` otherwise.
std::string MatchingWeightLayout(const std::string& data, const std::string& own);

}  // namespace collage
