// memory_planner.h: places values with known life times in one arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage {

/// A block of memory that is needed from step `first_use` to step `last_use`, both included.
struct LiveRange {
  int64_t bytes;
  int first_use;
  int last_use;
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  ///< one per range
  size_t total_bytes = 0;
};

/// Offsets such that ranges which live at the same time do not overlap. Largest first, each into the tightest gap that
/// its life-time neighbours leave (greedy by size, as in Pisarchyk and Lee, 2020). Steps are counted from 0. Offsets are multiples
/// of whatever all sizes are multiples of. O(n log n) in ranges, plus the pairs that live at the same time.
ArenaPlan PlanArena(const std::vector<LiveRange>& ranges);

}  // namespace collage
