// sweep_search.cc: sweeps repeated as costs come to be known, and the paper's dynamic programming.
#include <algorithm>

#include "search/cover_search.h"
#include "search/sweep.h"

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// States per position in the sweep that only looks for some good cover.
constexpr int kScoutBeam = 16;

double Slack(const SearchOptions& options) { return options.num_covers > 1 ? options.slack : 0; }
double Total(const Cover& cover) { return cover.seconds + cover.num_unknown * CostBook::kUnknownSeconds; }

/// Finds the best covers under bounds, asks for the costs of what they consist of, and again, until the best covers
/// have known costs only: then they are the best under all costs, since others cost no less than their bounds (lazy
/// shortest paths: Dellin and Srinivasa, ICAPS 2016). Only what looked best at some time is asked for.
class SweepSearch : public CoverSearch {
 public:
  SearchResult Run(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options) const override {
    SearchResult result;
    CostBook book(problem.variants.size(), costs);
    SearchSpace space(problem, costs);
    for (;;) {
      RemainingBound bound(problem, book, costs);
      result.covers = Best(space, book, bound, options, result);
      if (!AskFor(result.covers, book)) break;
    }
    result.num_exact = book.num_exact();
    result.is_exact = result.num_dropped == 0;
    return result;
  }

 private:
  /// The best covers under what is known now, within the slack.
  static std::vector<Cover> Best(SearchSpace& space, const CostBook& book, RemainingBound& bound,
                                 const SearchOptions& options, SearchResult& result) {
    // Some good cover first: what cannot be better need not be kept.
    Sweep scout(space, book, &bound, {.num_covers = 1, .beam = kScoutBeam});
    std::vector<Cover> covers = scout.Run();
    result.num_states = std::max(result.num_states, scout.num_states());
    result.num_dropped = 0;
    if (options.num_covers > 1 || scout.num_dropped() > 0) {
      const double limit = covers.empty() ? kInfinity : Total(covers[0]) * (1 + Slack(options));
      Sweep sweep(space, book, &bound, {.num_covers = options.num_covers, .limit = limit, .beam = options.beam});
      std::vector<Cover> found = sweep.Run();
      result.num_states = std::max(result.num_states, sweep.num_states());
      result.num_dropped = sweep.num_dropped();
      if (covers.empty() || (!found.empty() && Total(found[0]) <= Total(covers[0]))) covers = std::move(found);
      if (covers.empty()) result.stuck_at = StuckPositions(space.problem(), book, sweep.dead_ends());
    } else if (covers.empty()) {
      result.stuck_at = StuckPositions(space.problem(), book, scout.dead_ends());
    }
    const double limit = covers.empty() ? 0 : Total(covers[0]) * (1 + Slack(options));
    std::erase_if(covers, [&](const Cover& cover) { return Total(cover) > limit; });
    return covers;
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
    const double limit = result.covers.empty() ? 0 : Total(result.covers[0]) * (1 + Slack(options));
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
