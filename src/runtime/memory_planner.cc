// memory_planner.cc: greedy placement by size (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference",
// 2020).
#include "runtime/memory_planner.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <set>

namespace collage {
namespace {

/// The ranges that have a place, to be asked which of them live at the same time as another.
///
/// A range meets [first, last] when it begins in there, or before it and still lives at `first`. The former are found in an
/// ordered set; the latter in a segment tree over steps, each of whose nodes holds the ranges that cover all its steps.
class PlacedRanges {
 public:
  explicit PlacedRanges(const std::vector<LiveRange>& ranges) : ranges_(ranges) {
    int last = 0;
    for (const LiveRange& range : ranges) last = std::max(last, range.last_use);
    num_leaves_ = std::bit_ceil(static_cast<size_t>(last) + 1);
    covering_.resize(2 * num_leaves_);
  }

  void Add(size_t index) {
    const LiveRange& range = ranges_[index];
    by_first_use_.emplace(range.first_use, index);
    size_t low = static_cast<size_t>(range.first_use) + num_leaves_;
    size_t high = static_cast<size_t>(range.last_use) + num_leaves_ + 1;
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) covering_[low++].push_back(index);
      if (high % 2 == 1) covering_[--high].push_back(index);
    }
  }

  /// The neighbours of `range` in time, in no order, each once.
  void Meeting(const LiveRange& range, std::vector<size_t>& found) const {
    found.clear();
    for (size_t node = static_cast<size_t>(range.first_use) + num_leaves_; node > 0; node /= 2) {
      found.insert(found.end(), covering_[node].begin(), covering_[node].end());
    }
    for (auto it = by_first_use_.lower_bound({range.first_use + 1, 0});
         it != by_first_use_.end() && it->first <= range.last_use; ++it) {
      found.push_back(it->second);
    }
  }

 private:
  const std::vector<LiveRange>& ranges_;
  size_t num_leaves_ = 1;
  std::vector<std::vector<size_t>> covering_;  // node 1 is the root, the leaf of step s is num_leaves_ + s
  std::set<std::pair<int, size_t>> by_first_use_;
};

}  // namespace

ArenaPlan PlanArena(const std::vector<LiveRange>& ranges) {
  ArenaPlan plan;
  plan.offsets.assign(ranges.size(), 0);
  std::vector<size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return ranges[a].bytes > ranges[b].bytes; });
  PlacedRanges placed(ranges);
  std::vector<size_t> neighbours;
  for (size_t index : order) {
    const LiveRange& range = ranges[index];
    placed.Meeting(range, neighbours);
    std::sort(neighbours.begin(), neighbours.end(), [&](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; });
    int64_t best_offset = -1;
    int64_t best_gap = std::numeric_limits<int64_t>::max();
    int64_t end = 0;
    for (size_t other : neighbours) {
      const int64_t gap = plan.offsets[other] - end;
      if (gap >= range.bytes && gap < best_gap) {
        best_gap = gap;
        best_offset = end;
      }
      end = std::max(end, plan.offsets[other] + ranges[other].bytes);
    }
    plan.offsets[index] = best_offset >= 0 ? best_offset : end;
    plan.total_bytes = std::max(plan.total_bytes, static_cast<size_t>(plan.offsets[index] + range.bytes));
    placed.Add(index);
  }
  return plan;
}

}  // namespace collage
