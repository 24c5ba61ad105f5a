// pool_walk.h: pools whose windows overlap or lie side by side, row by row of windows.
#pragma once

#include <vector>

#include "backends/native/compiler/reduction/pool_windows.h"
#include "backends/native/compiler/reduction/reduction_loops.h"

namespace collage::native {

/// A pool as its loops see it.
struct PoolForm {
  PoolForm(PartitionState& of, const CallNode& of_call, const StageOutput& to);

  PartitionState& state;
  const CallNode& call;
  const StageOutput& output;
  Shape in, out;
  bool is_adaptive;
  bool is_max;
  const Combiner& combiner;
  ElementKind kind = ElementKind::kFloat;  ///< that is computed with
  size_t lane_axis = 1;                    ///< of the data and the result
  Buffer data;                             ///< none: computed in place
  std::vector<Windows> windows;            ///< by spatial dimension

  /// Their tables in memory, by spatial dimension.
  struct Tables {
    Buffer start, low, high, share;
  };
  std::vector<Tables> tables;

  double Flops() const;
  Value Load(const Indices& from);
  /// The result of what was combined; `share`: float, 1 / how many taps count.
  Value Finish(Value sum, const Value& share);
};

/// Emits a pool whose lanes run along channels, or along the last dimension of at least two. What the windows of a row
/// of them have in common is combined once and stays in registers: columns of channels-last data, rows of planes.
/// False, with nothing emitted, where that is too much for registers.
bool EmitPoolWalk(PoolForm& form);

}  // namespace collage::native
