// sweep_search.cc: sweeps repeated as costs come to be known, and the paper's dynamic programming.
#include <algorithm>

#include "search/cover_search.h"
#include "search/sweep.h"

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// States per position in the sweep that only looks for some good cover.
constexpr int kScoutBeam = 16;
// Sets that the refined bound is worked out for; some 100 bytes each.
constexpr size_t kMostRefined = 1'000'000;

double Total(const Cover& cover) { return cover.seconds + cover.num_unknown * CostBook::kUnknownSeconds; }

/// Finds the best covers under bounds, asks for the costs of what they consist of, and again, until the best covers
/// have known costs only: then they are the best under all costs, since others cost no less than their bounds (lazy
/// shortest paths: Dellin and Srinivasa, ICAPS 2016). Narrow sweeps first: once they know some good cover, what cannot
/// be as good need not be kept.
class SweepSearch : public CoverSearch {
 public:
  SearchResult Run(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options) const override {
    SearchResult result;
    CostBook book(problem.variants.size(), costs);
    SearchSpace space(problem, costs);
    bool is_narrow = true;  // enough to see everything
    do {
      is_narrow = Scout(space, book, costs, result);
    } while (AskFor(result.covers, book));
    if (!is_narrow || options.num_covers > 1) {
      do {
        SweepWithin(space, book, costs, options, is_narrow, result);
      } while (AskFor(result.covers, book));
    }
    result.num_exact = book.num_exact();
    result.is_exact = result.num_dropped == 0;
    return result;
  }

 private:
  static std::vector<Cover> RunSweep(Sweep& sweep, SearchResult& result) {
    std::vector<Cover> covers = sweep.Run();
    result.num_states = std::max(result.num_states, sweep.num_states());
    if (covers.empty()) result.stuck_at = sweep.dead_ends();
    return covers;
  }

  /// Some good cover under what is known now; true when it is the best one.
  static bool Scout(SearchSpace& space, const CostBook& book, CoverCosts& costs, SearchResult& result) {
    RemainingBound bound(space.problem(), book, costs);
    Sweep scout(space, book, &bound, {.num_covers = 1, .beam = kScoutBeam});
    result.covers = RunSweep(scout, result);
    if (scout.num_dropped() == 0) {
      if (result.covers.empty()) result.stuck_at = StuckPositions(space.problem(), book, result.stuck_at);
      return true;
    }
    bound.Refine(space, book, costs, kMostRefined);
    if (!bound.is_refined()) return false;
    Sweep guided(space, book, &bound, {.num_covers = 1, .beam = kScoutBeam});
    std::vector<Cover> found = RunSweep(guided, result);
    const bool is_better = result.covers.empty() || (!found.empty() && Total(found[0]) < Total(result.covers[0]));
    if (is_better) result.covers = std::move(found);
    return false;
  }

  /// The best covers under what is known now, within the slack of the best one of `result`, whose costs are known.
  static void SweepWithin(SearchSpace& space, const CostBook& book, CoverCosts& costs, const SearchOptions& options,
                          bool is_narrow, SearchResult& result) {
    RemainingBound bound(space.problem(), book, costs);
    if (!is_narrow) bound.Refine(space, book, costs, kMostRefined);
    const double limit = result.covers.empty() ? kInfinity : MostSeconds(Total(result.covers[0]), options);
    Sweep sweep(space, book, &bound, {.num_covers = options.num_covers, .limit = limit, .beam = options.beam});
    std::vector<Cover> found = RunSweep(sweep, result);
    result.num_dropped = sweep.num_dropped();
    // With a beam, the sweep may have lost what was known before.
    const bool is_lost = found.empty() || (!result.covers.empty() && Total(found[0]) > Total(result.covers[0]));
    if (!is_lost) result.covers = std::move(found);
    if (result.covers.empty()) {
      result.stuck_at = StuckPositions(space.problem(), book, result.stuck_at);
      return;
    }
    const double most = MostSeconds(Total(result.covers[0]), options);
    std::erase_if(result.covers, [&](const Cover& cover) { return Total(cover) > most; });
  }

  /// False when all costs in the covers were known. The best cover's are asked for first: they may decide the others.
  static bool AskFor(const std::vector<Cover>& covers, CostBook& book) {
    for (const Cover& cover : covers) {
      bool any = false;
      for (int variant : cover.variants) {
        any = any || !book.IsKnown(variant);
        book.Ask(variant);
      }
      if (any) return true;
    }
    return false;
  }
};

/// The paper's op level: from the result upwards, cells keyed by the set of nodes matched so far, each extended by
/// every pattern whose root is the next node. All costs are asked for. A sweep of the reversed problem.
class OpLevelDp : public CoverSearch {
 public:
  SearchResult Run(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options) const override {
    SearchResult result;
    CostBook book(problem.variants.size(), costs);
    for (int v = 0; v < static_cast<int>(problem.variants.size()); ++v) {
      if (book.CanRun(v)) book.Ask(v);
    }
    const CoverProblem reversed = problem.Reversed();
    SearchSpace space(reversed, costs);
    Sweep sweep(space, book, nullptr, {.num_covers = options.num_covers, .beam = options.beam});
    result.covers = sweep.Run();
    const double limit = result.covers.empty() ? 0 : MostSeconds(Total(result.covers[0]), options);
    std::erase_if(result.covers, [&](const Cover& cover) { return Total(cover) > limit; });
    for (Cover& cover : result.covers) {
      std::sort(cover.variants.begin(), cover.variants.end(), [&](int a, int b) {
        return problem.variants[static_cast<size_t>(a)].covers < problem.variants[static_cast<size_t>(b)].covers;
      });
    }
    if (result.covers.empty()) {
      std::vector<int> dead_ends = sweep.dead_ends();
      for (int& position : dead_ends) position = problem.num_positions - 1 - position;
      result.stuck_at = StuckPositions(problem, book, std::move(dead_ends));
    }
    result.num_states = sweep.num_states();
    result.num_exact = book.num_exact();
    result.num_dropped = sweep.num_dropped();
    result.is_exact = result.num_dropped == 0;
    return result;
  }
};

}  // namespace

std::unique_ptr<CoverSearch> MakeSweep() { return std::make_unique<SweepSearch>(); }
std::unique_ptr<CoverSearch> MakeOpLevelDp() { return std::make_unique<OpLevelDp>(); }

}  // namespace collage
