// transposing.h: stages whose operands lie transposed to their results.
#pragma once

#include <vector>

#include "backends/native/compiler/stages/elements.h"

namespace collage::native {

/// The reads of an expression whose lanes run along one axis of its result.
struct LaneReads {
  std::vector<int64_t> strides;  ///< distance between lanes, for each read
  bool has_integers = false;     ///< whether integers or truth values are among them
};
LaneReads ReadsAlong(Emitter& e, const Buffer& buffer, const ElementFn& value, int axis);

/// Fills `buffer`, whose axes lie in memory in `order`, with `value` where some reads are far apart along the innermost
/// axis but adjacent along another one: squares of lanes x lanes elements are read along that one and turned in
/// registers; `guard` as for EmitElements, asked for the first row of a square. False, with nothing emitted, where
/// there is nothing to be gained.
bool EmitTransposing(PartitionState& state, const Buffer& buffer, const ElementFn& value, const std::vector<int>& order,
                     const ElementGuard& guard);

}  // namespace collage::native
