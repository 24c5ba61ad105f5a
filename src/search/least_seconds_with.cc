// least_seconds_with.cc: shares of the positions outside of a variant.
#include "search/least_seconds_with.h"

#include <algorithm>
#include <limits>

#include "search/bounds.h"

namespace collage {

IndexedVector<VariantIndex, double> LeastSecondsWith(const CoverProblem& problem, CoverCosts& costs,
                                                     const std::function<double(VariantIndex)>& own) {
  const CostBook book(problem.variants.size(), costs);
  const RemainingBound bound(problem, book, costs);
  const double all = bound.Between(Position(0), problem.end());
  IndexedVector<VariantIndex, double> least(problem.variants.size(), std::numeric_limits<double>::infinity());
  for (const VariantIndex v : problem.variants.indices()) {
    const std::vector<Position>& covers = problem.variants[v].covers;
    if (!book.CanRun(v) || covers.empty()) continue;
    double outside = all;
    for (const Position position : covers) outside -= bound.Between(position, position + 1);
    least[v] = own(v) + costs.Transition(v) + std::max(0.0, outside);
  }
  return least;
}

}  // namespace collage
