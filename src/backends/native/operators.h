// operators.h: which operators native kernels compute, and under which conditions.
#pragma once

#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

#include "collage/ir/expr.h"
#include "collage/ir/op.h"
#include "collage/support/result.h"

namespace collage::native {

/// A table of operators by name.
template <typename Row>
using RowsByName = std::map<std::string, Row, std::less<>>;

/// Adds a row of operator_rows.inc, for each of `names`, which spaces separate.
template <typename Row>
void AddRow(const std::string& names, const Row& row, RowsByName<Row>& table) {
  std::istringstream words(names);
  for (std::string name; words >> name;) table.emplace(name, row);
}

/// Whether the compiler has a lowering for this typed call; otherwise why not.
Result<void> IsLowered(const CallNode& call);

/// Whether it has one where shapes are not known (`?`); `call` has such.
Result<void> IsLoweredDynamic(const CallNode& call);

/// `function` with what its calls of the quantised dialect stand for in their place, typed; itself where it has none.
Function WithoutDialect(const Function& function);

/// Whether an operator gives its argument's elements and nothing else, in another order or shape.
inline bool IsMovement(const OpDef& op) { return op.is_reshape || op.name == "transpose"; }

/// Whether each element of the result is made from the elements in its place.
inline bool KeepsPlaces(const OpDef& op) {
  return op.pattern <= OpPatternKind::kBroadcast && !op.is_reshape && op.name != "tile" && op.name != "repeat";
}

/// Whether `name` is a convolution, transposed or not.
inline bool IsConvolution(std::string_view name) { return name.starts_with("nn.conv"); }

}  // namespace collage::native
