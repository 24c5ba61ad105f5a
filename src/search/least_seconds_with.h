// least_seconds_with.h: what a cover must cost at least if it has a certain variant.
#pragma once

#include <functional>

#include "search/cover_problem.h"

namespace collage {

/// Returns for each variant a bound on the cost of all covers with it: its `own` seconds, its transition, and for every
/// position that it does not cover the least share that any variant asks of it (RemainingBound), by the lower bounds of
/// `costs`. Infinite for variants that cannot be run. A variant whose bound is not below the cost of a known cover
/// cannot be in a better one.
IndexedVector<VariantIndex, double> LeastSecondsWith(const CoverProblem& problem, CoverCosts& costs,
                                                     const std::function<double(VariantIndex)>& own);

}  // namespace collage
