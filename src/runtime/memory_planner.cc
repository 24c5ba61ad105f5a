// memory_planner.cc: greedy placement by size.
#include "runtime/memory_planner.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace collage {

ArenaPlan PlanArena(const std::vector<LiveRange>& ranges) {
  ArenaPlan plan;
  plan.offsets.assign(ranges.size(), 0);
  std::vector<size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return ranges[a].bytes > ranges[b].bytes; });
  std::vector<size_t> placed;  // by offset
  for (size_t index : order) {
    const LiveRange& range = ranges[index];
    int64_t best_offset = -1;
    int64_t best_gap = std::numeric_limits<int64_t>::max();
    int64_t end = 0;
    for (size_t other : placed) {
      const LiveRange& neighbour = ranges[other];
      if (neighbour.last_use < range.first_use || range.last_use < neighbour.first_use) continue;
      const int64_t gap = plan.offsets[other] - end;
      if (gap >= range.bytes && gap < best_gap) {
        best_gap = gap;
        best_offset = end;
      }
      end = std::max(end, plan.offsets[other] + neighbour.bytes);
    }
    plan.offsets[index] = best_offset >= 0 ? best_offset : end;
    plan.total_bytes = std::max(plan.total_bytes, static_cast<size_t>(plan.offsets[index] + range.bytes));
    const auto at = std::upper_bound(placed.begin(), placed.end(), plan.offsets[index],
                                     [&](int64_t offset, size_t other) { return offset < plan.offsets[other]; });
    placed.insert(at, index);
  }
  return plan;
}

}  // namespace collage
