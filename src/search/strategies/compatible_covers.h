// compatible_covers.h: covers whose toolchains can be in one process (RFC 0.81, Drawbacks, "Dependency management").
#pragma once

#include <span>
#include <vector>

#include "search/strategies/cover_search.h"

namespace collage {

/// As SearchCovers, of the covers whose variants' toolchains (`CoverVariant::toolchain`) are all in one of `sets`.
///
/// Each set is searched by itself, bounded by what was found before: states need not know who took part, and there are
/// few sets. The promises of SearchCovers hold for these covers; each set has a time budget of its own.
SearchResult SearchCompatibleCovers(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options,
                                    std::span<const std::vector<int>> sets);

}  // namespace collage
