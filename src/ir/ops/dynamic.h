// dynamic.h: operators that take as arguments what others take as attributes, such as a shape that is computed.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collage/ir/attrs.h"
#include "collage/runtime/tensor.h"

namespace collage {

/// dyn.NAME(data…, values…) is NAME(data…) with its attributes read from the values.
struct DynamicOp {
  std::string name;
  std::string static_name;
  size_t num_data = 0;             ///< arguments that both have
  std::vector<std::string> attrs;  ///< one for each argument behind those
};

/// All of them, by name.
std::span<const DynamicOp> AllDynamicOps();
/// Null when `name` is none of them.
const DynamicOp* FindDynamicOp(std::string_view name);

/// The attributes of the static operator: `attrs` and what `values`, integers in order of DynamicOp::attrs, say.
Attrs StaticAttrs(const DynamicOp& op, Attrs attrs, std::span<const Tensor> values);

}  // namespace collage
