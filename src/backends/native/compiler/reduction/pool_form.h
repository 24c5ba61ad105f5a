// pool_form.h: a pool as its loops see it.
#pragma once

#include <vector>

#include "backends/native/compiler/reduction/pool_windows.h"
#include "backends/native/compiler/reduction/reduction_loops.h"

namespace collage::native {

/// A call of a pool, with its data, windows and combiner.
struct PoolForm {
  PoolForm(PartitionState& of, const CallNode& of_call, const StageOutput& to);

  PartitionState& state;
  const CallNode& call;
  const StageOutput& output;
  Shape in, out;
  bool is_adaptive;
  bool is_max;
  const Combiner& combiner;
  ElementKind kind = ElementKind::kFloat;  ///< the kind that is computed with
  size_t lane_axis = 1;                    ///< the axis of the lanes in data and result
  Buffer data;                             ///< none: computed in place
  std::vector<Windows> windows;            ///< by spatial dimension

  /// Their tables in memory, by spatial dimension.
  struct Tables {
    Buffer start, low, high, share;
  };
  std::vector<Tables> tables;

  double Flops() const;
  Value Load(const Indices& from);
  /// Returns the result for combined taps; `share`: float, 1 / the number of taps that count.
  Value Finish(Value sum, const Value& share);
};

}  // namespace collage::native
