// custom_search.cc: a search that somebody brings: what it is told, and what is made of its answer.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "collage/support/error.h"
#include "search/bounds.h"
#include "search/search_space.h"
#include "search/strategies/cover_search.h"

namespace collage {
namespace {

/// A problem as it looks from outside, where its variants are called candidates and all numbers are plain integers.
class Task : public CoverTask {
 public:
  Task(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options)
      : problem_(problem), costs_(costs), options_(options), book_(problem.variants.size(), costs) {
    for (const CoverVariant& variant : problem.variants) positions_.push_back(NumbersOf(variant.covers));
  }

  int num_positions() const override { return problem_.num_positions; }
  int num_candidates() const override { return static_cast<int>(problem_.variants.size()); }
  const std::vector<int>& positions(int candidate) const override { return positions_[VariantOf(candidate).number()]; }
  std::string toolchain(int candidate) const override {
    const VariantIndex variant = VariantOf(candidate);
    return options_.toolchain_name ? options_.toolchain_name(variant) : "";
  }
  double cost(int candidate) override {
    const VariantIndex variant = VariantOf(candidate);
    const double seconds = book_.Ask(variant);
    return book_.IsUnknown(variant) ? std::numeric_limits<double>::quiet_NaN() : seconds;
  }
  double lower_bound(int candidate) override { return book_.Seconds(VariantOf(candidate)); }
  double seconds(const std::vector<int>& cover) override { return Checked(cover, nullptr).seconds; }

  /// The cover in order, its cost; infinite, with a reason, when it is none.
  Cover Checked(const std::vector<int>& candidates, std::string* reason) {
    std::vector<VariantIndex> cover;
    for (int candidate : candidates) cover.push_back(VariantOf(candidate));
    const auto no = [&](std::string why) {
      if (reason != nullptr) *reason = std::move(why);
      return Cover{cover, std::numeric_limits<double>::infinity(), 0};
    };
    if (std::string why = WhyNoCover(cover); !why.empty()) return no(std::move(why));
    const auto first = [&](VariantIndex variant) { return problem_.variants[variant].covers.front(); };
    std::sort(cover.begin(), cover.end(), [&](VariantIndex a, VariantIndex b) { return first(a) < first(b); });
    IndexedVector<VariantIndex, double> exact(problem_.variants.size(), std::numeric_limits<double>::infinity());
    int num_unknown = 0;
    for (VariantIndex variant : cover) {
      exact[variant] = book_.Ask(variant);
      if (!book_.CanRun(variant)) return no(fmt::format("candidate {} cannot be run", variant.number()));
      if (!book_.IsUnknown(variant)) continue;
      exact[variant] = 0;
      ++num_unknown;
    }
    Cover result{cover, CoverSeconds(problem_, cover, exact, costs_), num_unknown};
    if (result.seconds == std::numeric_limits<double>::infinity()) return no("its partitions depend on each other");
    return result;
  }

  int64_t num_exact() const { return book_.num_exact(); }
  const CostBook& book() const { return book_; }

 private:
  VariantIndex VariantOf(int candidate) const {
    if (candidate < 0 || candidate >= num_candidates()) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("there is no candidate {}: there are {}", candidate, num_candidates()));
    }
    return VariantIndex(candidate);
  }

  /// Empty when each position is covered once.
  std::string WhyNoCover(const std::vector<VariantIndex>& cover) const {
    IndexedVector<Position, char> covered(problem_.num_positions);
    for (VariantIndex variant : cover) {
      const std::vector<Position>& covers = problem_.variants[variant].covers;
      if (covers.empty()) return fmt::format("candidate {} covers nothing", variant.number());
      for (Position position : covers) {
        if (covered[position]++ != 0) return fmt::format("position {} is covered twice", position.number());
      }
    }
    for (Position position : problem_.positions()) {
      if (covered[position] == 0) return fmt::format("position {} is not covered", position.number());
    }
    return "";
  }

  const CoverProblem& problem_;
  CoverCosts& costs_;
  const SearchOptions& options_;
  CostBook book_;
  std::vector<std::vector<int>> positions_;  ///< by candidate
};

/// Without a search, by the bound of covering everything.
double LeastSeconds(const CoverProblem& problem, const CostBook& book, CoverCosts& costs) {
  SearchSpace space(problem, costs);
  RemainingBound bound(problem, book, costs);
  bound.Refine(space, book, costs, kMostRefined);
  return bound.Seconds(space.Start(), space);
}

}  // namespace

SearchResult SearchCustom(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options) {
  Task task(problem, costs, options);
  SearchResult result;
  for (const std::vector<int>& found : options.custom(task)) {
    std::string reason;
    Cover cover = task.Checked(found, &reason);
    if (!reason.empty()) throw Error(ErrorCategory::kInput, "the search gave what is no cover: " + reason);
    const auto same = [&](const Cover& other) { return other.variants == cover.variants; };
    if (std::none_of(result.covers.begin(), result.covers.end(), same)) result.covers.push_back(std::move(cover));
  }
  if (std::ssize(result.covers) > options.num_covers) result.covers.resize(options.num_covers);
  result.num_exact = task.num_exact();
  result.least_seconds = LeastSeconds(problem, task.book(), costs);
  if (result.covers.empty()) result.stuck_at = StuckPositions(problem, task.book(), {});
  return result;
}

}  // namespace collage
