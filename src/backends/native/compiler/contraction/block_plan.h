// block_plan.h: how blocks of a GPU's warps share a product: tiles, warps, and copies ahead.
#pragma once

#include "backends/native/compiler/contraction/contraction.h"

namespace collage::native {

/// A block of `down` x `across` warps computes a tile of `rows` x `columns` sums, each warp an even part of it:
///
///              columns                 columns
///             | w0 | w1 |        depth |  words of b   | x stages
///       rows  | w2 | w3 |        rows  |  words of a   |
///
/// Words of both factors pass through shared memory, `depth` of each row and column at a time, in `stages` buffers. All
/// numbers are powers of two, but for `stages` and `parts`.
struct BlockPlan {
  int64_t rows = 64, columns = 64;
  int64_t down = 2, across = 2;
  int64_t depth = 16;
  int64_t stages = 4;
  bool has_groups = false;  ///< whether four warps multiply together: 16 rows of each, and all columns
  int64_t parts = 1;        ///< shares of each sum, by different blocks, which another stage adds up

  int64_t warps() const { return down * across; }
  int64_t warp_rows() const { return rows / down; }
  int64_t warp_columns() const { return columns / across; }
  /// Bytes of a stage of copies.
  int64_t StageBytes() const { return (rows + columns) * depth * 4; }
  /// Words from one row of sums to the next in shared memory.
  int64_t Pitch() const;
  /// Memory that a block shares: all stages, or, later, the sums.
  int64_t SharedBytes() const;
  /// Whether a GPU with `shared_bytes` for a block can run it: a thread has registers for 128 sums.
  bool Fits(int64_t shared_bytes) const;
};

/// The steps in which a form's sums are computed: `depth` words of the innermost dimension each.
int64_t NumSteps(const Contraction& form, int64_t depth);

/// The plan of `form`: what the schedule says, and what is estimated to be fastest of all else.
BlockPlan PlanOf(const PartitionState& state, const Contraction& form);

/// The choices of schedules beside `plan`.
ProductSpace SpaceOf(const PartitionState& state, const Contraction& form, const BlockPlan& plan);

}  // namespace collage::native
