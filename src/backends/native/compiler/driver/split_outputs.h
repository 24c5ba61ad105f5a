// split_outputs.h: outputs of a partition that are one value, cut into pieces.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "backends/native/compiler/driver/placed_calls.h"

namespace collage::native {

/// A value all of which lies in outputs, one behind the other along one dimension.
struct SplitOutput {
  Expr whole;
  Buffer buffer;                ///< the outputs' memory as its pieces
  std::vector<size_t> outputs;  ///< in the order of pieces
};

/// Returns the value of which outputs number `first` and others behind it are slices, together all of it; nothing if
/// there is none, or if a vector of `lanes` elements would cross pieces or is not stored along the dimension that is
/// cut.
std::optional<SplitOutput> FindSplit(std::span<const PlacedValue> outputs, size_t first, int64_t lanes);

}  // namespace collage::native
