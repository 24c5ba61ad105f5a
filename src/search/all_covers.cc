// all_covers.cc: depth first, the next uncovered position first.
#include "search/all_covers.h"

#include <algorithm>

namespace collage {
namespace {

class Enumeration {
 public:
  Enumeration(const CoverProblem& problem, const std::function<bool(VariantIndex)>& can_run,
              const AllCoversLimits& limits, const std::function<void(const std::vector<VariantIndex>&)>& visit)
      : problem_(problem),
        can_run_(can_run),
        limits_(limits),
        visit_(visit),
        starting_at_(problem.StartingAt()),
        covered_(problem.num_positions) {}

  /// Covers what is left from `next` on, which is as deep as a cover has variants: the limits keep that small. False
  /// when a limit is reached.
  bool Extend(Position next) {
    while (next < problem_.end() && covered_[next] != 0) ++next;
    if (next == problem_.end()) {
      if (num_covers_ == limits_.max_covers) return false;
      ++num_covers_;
      visit_(chosen_);
      return true;
    }
    for (VariantIndex variant : starting_at_[next]) {
      const std::vector<Position>& covers = problem_.variants[variant].covers;
      const auto is_covered = [&](Position position) { return covered_[position] != 0; };
      if (std::any_of(covers.begin(), covers.end(), is_covered) || !can_run_(variant)) continue;
      if (++num_steps_ > limits_.max_steps) return false;
      Mark(covers, 1);
      chosen_.push_back(variant);
      const bool goes_on = Extend(next + 1);
      chosen_.pop_back();
      Mark(covers, 0);
      if (!goes_on) return false;
    }
    return true;
  }

 private:
  void Mark(const std::vector<Position>& positions, char value) {
    for (Position position : positions) covered_[position] = value;
  }

  const CoverProblem& problem_;
  const std::function<bool(VariantIndex)>& can_run_;
  const AllCoversLimits& limits_;
  const std::function<void(const std::vector<VariantIndex>&)>& visit_;
  IndexedVector<Position, std::vector<VariantIndex>> starting_at_;
  IndexedVector<Position, char> covered_;
  std::vector<VariantIndex> chosen_;
  int64_t num_covers_ = 0;
  int64_t num_steps_ = 0;
};

// Recursion is as deep as a cover has partitions. A graph of more operators has more covers than anyone wants one by
// one.
constexpr int kMostPositions = 1000;

}  // namespace

bool ForEachCover(const CoverProblem& problem, const std::function<bool(VariantIndex)>& can_run,
                  const AllCoversLimits& limits, const std::function<void(const std::vector<VariantIndex>&)>& visit) {
  if (problem.num_positions > kMostPositions) return false;
  return Enumeration(problem, can_run, limits, visit).Extend(Position(0));
}

}  // namespace collage
