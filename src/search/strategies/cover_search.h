// cover_search.h: the strategies by which covers are searched, behind one interface. docs/search-options.md lists their
// promises.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "search/cost_book.h"
#include "search/cover_problem.h"

namespace collage {

/// A strategy.
class CoverSearch {
 public:
  virtual ~CoverSearch() = default;
  virtual SearchResult Run(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options) const = 0;
};

/// A row of the table of strategies.
struct SearchStrategy {
  const char* name;
  const char* summary;
  bool is_exact;  ///< finds the best covers, ties included, when nothing is dropped
  std::unique_ptr<CoverSearch> (*make)();
};
std::span<const SearchStrategy> SearchStrategies();

/// Runs the strategy that `options` names; throws kInput when there is none of that name.
SearchResult SearchCovers(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options);

/// Returns the highest cost of a wanted cover if the best one costs `best`.
double MostSeconds(double best, const SearchOptions& options);

/// Positions that no variant which can be run covers; when there are none, `dead_ends`.
std::vector<Position> StuckPositions(const CoverProblem& problem, const CostBook& book,
                                     std::vector<Position> dead_ends);

/// Runs `options.custom` (custom_search.cc).
SearchResult SearchCustom(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options);

// One file each.
std::unique_ptr<CoverSearch> MakeDijkstra();      ///< best_first_search.cc
std::unique_ptr<CoverSearch> MakeAStar();         ///< best_first_search.cc
std::unique_ptr<CoverSearch> MakeSweep();         ///< sweep_search.cc
std::unique_ptr<CoverSearch> MakeOpLevelDp();     ///< sweep_search.cc
std::unique_ptr<CoverSearch> MakeExhaustive();    ///< exhaustive_search.cc
std::unique_ptr<CoverSearch> MakeEvolutionary();  ///< evolutionary_search.cc

}  // namespace collage
