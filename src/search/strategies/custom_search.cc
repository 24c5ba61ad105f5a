// custom_search.cc: a search that somebody brings: what it is told, and what is made of its answer.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "collage/support/error.h"
#include "search/strategies/cover_search.h"

namespace collage {
namespace {

class Task : public CoverTask {
 public:
  Task(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options)
      : problem_(problem), costs_(costs), options_(options), book_(problem.variants.size(), costs) {}

  int num_positions() const override { return problem_.num_positions; }
  int num_candidates() const override { return static_cast<int>(problem_.variants.size()); }
  const std::vector<int>& positions(int candidate) const override { return At(candidate).covers; }
  std::string toolchain(int candidate) const override {
    At(candidate);
    return options_.toolchain_name ? options_.toolchain_name(candidate) : "";
  }
  double cost(int candidate) override {
    At(candidate);
    const double seconds = book_.Ask(candidate);
    return book_.IsUnknown(candidate) ? std::numeric_limits<double>::quiet_NaN() : seconds;
  }
  double lower_bound(int candidate) override {
    At(candidate);
    return book_.Seconds(candidate);
  }
  double seconds(const std::vector<int>& cover) override { return Checked(cover, nullptr).seconds; }

  /// The cover in order, its cost; infinite, with a reason, when it is none.
  Cover Checked(std::vector<int> cover, std::string* reason) {
    std::vector<char> covered(problem_.num_positions);
    int num_covered = 0;
    const auto no = [&](std::string why) {
      if (reason != nullptr) *reason = std::move(why);
      return Cover{cover, std::numeric_limits<double>::infinity(), 0};
    };
    for (int candidate : cover) {
      if (At(candidate).covers.empty()) return no(fmt::format("candidate {} covers nothing", candidate));
      for (int position : At(candidate).covers) {
        if (covered[position]++ != 0) {
          return no(fmt::format("position {} is covered twice", position));
        }
        ++num_covered;
      }
    }
    if (num_covered != problem_.num_positions) {
      const auto open = std::find(covered.begin(), covered.end(), 0) - covered.begin();
      return no(fmt::format("position {} is not covered", open));
    }
    std::sort(cover.begin(), cover.end(), [&](int a, int b) { return At(a).covers.front() < At(b).covers.front(); });
    std::vector<double> exact(problem_.variants.size(), std::numeric_limits<double>::infinity());
    int num_unknown = 0;
    for (int candidate : cover) {
      exact[candidate] = book_.Ask(candidate);
      if (!book_.CanRun(candidate)) return no(fmt::format("candidate {} cannot be run", candidate));
      if (!book_.IsUnknown(candidate)) continue;
      exact[candidate] = 0;
      ++num_unknown;
    }
    Cover result{cover, CoverSeconds(problem_, cover, exact, costs_), num_unknown};
    if (result.seconds == std::numeric_limits<double>::infinity()) return no("its partitions depend on each other");
    return result;
  }

  int64_t num_exact() const { return book_.num_exact(); }
  const CostBook& book() const { return book_; }

 private:
  const CoverVariant& At(int candidate) const {
    if (candidate < 0 || candidate >= num_candidates()) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("there is no candidate {}: there are {}", candidate, num_candidates()));
    }
    return problem_.variants[candidate];
  }

  const CoverProblem& problem_;
  CoverCosts& costs_;
  const SearchOptions& options_;
  CostBook book_;
};

}  // namespace

SearchResult SearchCustom(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options) {
  Task task(problem, costs, options);
  SearchResult result;
  for (std::vector<int>& found : options.custom(task)) {
    std::string reason;
    Cover cover = task.Checked(std::move(found), &reason);
    if (!reason.empty()) throw Error(ErrorCategory::kInput, "the search gave what is no cover: " + reason);
    const auto same = [&](const Cover& other) { return other.variants == cover.variants; };
    if (std::none_of(result.covers.begin(), result.covers.end(), same)) result.covers.push_back(std::move(cover));
  }
  if (std::ssize(result.covers) > options.num_covers) result.covers.resize(options.num_covers);
  result.num_exact = task.num_exact();
  if (result.covers.empty()) result.stuck_at = StuckPositions(problem, task.book(), {});
  return result;
}

}  // namespace collage
