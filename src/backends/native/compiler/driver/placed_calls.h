// placed_calls.h: where in memory the values lie that libraries' functions read and write (called_composites.h).
#pragma once

#include <cstddef>
#include <vector>

#include "backends/native/compiler/driver/called_composites.h"
#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

/// A value that is computed into a buffer: a result of the partition, or an argument of a call.
struct PlacedValue {
  Expr expr;
  Buffer buffer;
};

/// A call all of whose places are known.
struct PlacedCall {
  const CalledComposite* called;
  ExternCall call;
  std::vector<Buffer> inputs;
  Buffer output;
  std::vector<size_t> computed;  ///< numbers of the values that are computed for it
};

/// Asks for each of `calls`, which must outlive the answer, how its function is called, and places its arguments and
/// its result: where they lie anyway if that is how the function wants them, else in the workspace. `values` holds the
/// partition's results; arguments that have to be computed or copied are added behind. Throws kUnsupported, with the
/// library's reason, where there is no function.
std::vector<PlacedCall> PlaceCalls(PartitionState& state, const PartitionRequest& request,
                                   const std::vector<CalledComposite>& calls, std::vector<PlacedValue>& values);

}  // namespace collage::native
