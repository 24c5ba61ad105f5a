// cover_search.cc: the table of strategies.
#include "search/strategies/cover_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collage/support/error.h"
#include "support/sort_unique.h"

namespace collage {
namespace {

constexpr SearchStrategy kStrategies[] = {
    {"dijkstra", "Dijkstra over covered sets, costs asked for when a step comes to the front (RFC 0.81, phase 3)", true,
     MakeDijkstra},
    {"astar", "the same, guided by bounds of what the rest must cost", true, MakeAStar},
    {"sweep", "states in the order of dataflow; asks only for the costs of what is best so far", true, MakeSweep},
    {"dp", "the paper's op-level dynamic programming, from the result upwards; asks for all costs", false,
     MakeOpLevelDp},
    {"evolutionary", "the paper's graph-level search: which partitions to hand to which toolchain", false,
     MakeEvolutionary},
    {"exhaustive", "all covers; for tests and small graphs", true, MakeExhaustive},
};

}  // namespace

std::span<const SearchStrategy> SearchStrategies() { return kStrategies; }

SearchResult SearchCovers(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options) {
  if (options.custom) return SearchCustom(problem, costs, options);
  std::string known;
  for (const SearchStrategy& strategy : kStrategies) {
    if (options.strategy == strategy.name) return strategy.make()->Run(problem, costs, options);
    known += (known.empty() ? "" : ", ") + std::string(strategy.name);
  }
  throw Error(ErrorCategory::kInput, fmt::format("there is no search '{}'", options.strategy), "",
              "there are: " + known);
}

double MostSeconds(double best, const SearchOptions& options) {
  if (options.num_covers <= 1) return best;
  const double most = best * (1 + options.slack);
  return std::isnan(most) ? options.slack : most;  // of nothing, any share
}

std::vector<Position> StuckPositions(const CoverProblem& problem, const CostBook& book,
                                     std::vector<Position> dead_ends) {
  IndexedVector<Position, char> coverable(problem.num_positions);
  for (VariantIndex v : problem.variants.indices()) {
    if (!book.CanRun(v)) continue;
    for (Position position : problem.variants[v].covers) coverable[position] = 1;
  }
  std::vector<Position> never;
  for (Position position : problem.positions()) {
    if (coverable[position] == 0) never.push_back(position);
  }
  if (!never.empty()) return never;
  SortUnique(dead_ends);
  return dead_ends;
}

}  // namespace collage
