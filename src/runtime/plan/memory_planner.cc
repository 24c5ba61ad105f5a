// memory_planner.cc: greedy placement in several orders, of which the best is taken. Placing the largest first is from
// Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020; no order is best for all
// models.
#include "runtime/plan/memory_planner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

namespace collage {
namespace {

/// The ranges that have a place, to be asked which of them live at the same time as another.
///
/// A range meets [first, last] when it begins in there, or before it and still lives at `first`. The former are found
/// in an ordered set; the latter in a segment tree over steps, each of whose nodes holds the ranges that cover all its
/// steps.
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

/// Bytes that are needed at each step.
std::vector<int64_t> LoadOfSteps(const std::vector<LiveRange>& ranges) {
  int last = 0;
  for (const LiveRange& range : ranges) last = std::max(last, range.last_use);
  std::vector<int64_t> load(static_cast<size_t>(last) + 2);
  for (const LiveRange& range : ranges) {
    load[static_cast<size_t>(range.first_use)] += range.bytes;
    load[static_cast<size_t>(range.last_use) + 1] -= range.bytes;
  }
  std::partial_sum(load.begin(), load.end(), load.begin());
  load.pop_back();
  return load;
}

/// For each range, the largest load among its steps; from maxima over runs of 1, 2, 4, … steps.
std::vector<int64_t> PeaksOfRanges(const std::vector<LiveRange>& ranges, const std::vector<int64_t>& load) {
  std::vector<std::vector<int64_t>> maxima{load};  // [k][i]: of steps i to i + 2^k - 1
  for (size_t run = 1; 2 * run <= load.size(); run *= 2) {
    const std::vector<int64_t>& half = maxima.back();
    std::vector<int64_t> whole(load.size() - 2 * run + 1);
    for (size_t i = 0; i < whole.size(); ++i) whole[i] = std::max(half[i], half[i + run]);
    maxima.push_back(std::move(whole));
  }
  std::vector<int64_t> peaks;
  for (const LiveRange& range : ranges) {
    const auto steps = static_cast<size_t>(range.last_use - range.first_use) + 1;
    const auto level = static_cast<size_t>(std::bit_width(steps)) - 1;
    const auto end = static_cast<size_t>(range.last_use) + 1;
    peaks.push_back(
        std::max(maxima[level][static_cast<size_t>(range.first_use)], maxima[level][end - (size_t{1} << level)]));
  }
  return peaks;
}

/// Places `ranges` one after the other, each into the tightest gap that its neighbours in time leave.
ArenaPlan PlaceInOrder(const std::vector<LiveRange>& ranges, const std::vector<size_t>& order) {
  ArenaPlan plan;
  plan.offsets.assign(ranges.size(), 0);
  PlacedRanges placed(ranges);
  std::vector<size_t> neighbours;
  for (size_t index : order) {
    const LiveRange& range = ranges[index];
    placed.Meeting(range, neighbours);
    std::sort(neighbours.begin(), neighbours.end(),
              [&](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; });
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

}  // namespace

ArenaPlan PlanArena(const std::vector<LiveRange>& ranges) {
  if (ranges.empty()) return {};
  const std::vector<int64_t> load = LoadOfSteps(ranges);
  const auto least = static_cast<size_t>(*std::max_element(load.begin(), load.end()));
  const std::vector<int64_t> peaks = PeaksOfRanges(ranges, load);
  const auto duration = [&](size_t i) { return static_cast<int64_t>(ranges[i].last_use - ranges[i].first_use) + 1; };
  // Orders to try: the largest first; the largest in bytes times steps; at the fullest step, the longest.
  const std::function<std::array<int64_t, 3>(size_t)> orders[] = {
      [&](size_t i) {
        return std::array<int64_t, 3>{ranges[i].bytes, 0, 0};
      },
      [&](size_t i) {
        return std::array<int64_t, 3>{ranges[i].bytes * duration(i), 0, 0};
      },
      [&](size_t i) {
        return std::array<int64_t, 3>{peaks[i], duration(i), ranges[i].bytes};
      }};
  ArenaPlan best;
  for (const auto& priority : orders) {
    std::vector<std::array<int64_t, 3>> priorities;
    for (size_t i = 0; i < ranges.size(); ++i) priorities.push_back(priority(i));
    std::vector<size_t> order(ranges.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return priorities[a] > priorities[b]; });
    ArenaPlan plan = PlaceInOrder(ranges, order);
    if (best.offsets.empty() || plan.total_bytes < best.total_bytes) best = std::move(plan);
    if (best.total_bytes == least) break;
  }
  return best;
}

}  // namespace collage
