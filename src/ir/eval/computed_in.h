// computed_in.h: how narrow the floats are that results were computed in, which is how exact the results can be.
#pragma once

#include <optional>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// By flattened result of the typed `function`: the narrowest type of floats that a value on the way to it was rounded
/// to; nothing where there was none. Constants and parameters are exact, whatever their type, and so is what only moves
/// their elements: float16 weights that are cast to float32 make no result less exact.
///
///     fn (%x: float32) { cast(nn.matmul(cast(%x, "float16"), %w), "float32") }      float16
std::vector<std::optional<DataType>> ComputedIn(const Function& function);

/// The one of fewer bits, of mantissa where these are equal.
std::optional<DataType> Narrower(std::optional<DataType> a, std::optional<DataType> b);

}  // namespace collage
