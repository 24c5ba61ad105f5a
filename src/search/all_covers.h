// all_covers.h: the covers of a small problem, one by one.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "search/cover_problem.h"

namespace collage {

struct AllCoversLimits {
  int64_t max_covers = 0;
  int64_t max_steps = 100'000;  ///< variants tried, those that lead to no cover too
};

/// Tells `visit` each cover by variants that `can_run` takes, in the order in which variants are listed: a cover's
/// variants are in the order of their first positions. Not all of these can be put in order, see `CoverSeconds`.
/// False when there are more than the limits allow; `visit` was then told of as many.
bool ForEachCover(const CoverProblem& problem, const std::function<bool(VariantIndex variant)>& can_run,
                  const AllCoversLimits& limits,
                  const std::function<void(const std::vector<VariantIndex>& variants)>& visit);

}  // namespace collage
