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

/// Offsets such that ranges which live at the same time do not overlap, in an arena that is small but not the least
/// possible (that is NP-hard): within some percent of the most that lives at one step, for models. Steps are counted
/// from 0. Offsets are multiples of whatever all sizes are multiples of. Deterministic. O(n log n) in ranges and steps,
/// plus the pairs that live at the same time.
ArenaPlan PlanArena(const std::vector<LiveRange>& ranges);

}  // namespace collage
