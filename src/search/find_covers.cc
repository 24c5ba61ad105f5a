// find_covers.cc: from graph and candidates to a problem, from positions back to nodes.
#include "search/find_covers.h"

#include <algorithm>
#include <map>

#include "search/strategies/compatible_covers.h"

namespace collage {
namespace {

/// Sets of the problem's toolchains that can be in one process.
std::vector<std::vector<int>> SetsOf(const CoverProblem& problem, const CandidateList& candidates,
                                     const VariantList& variants) {
  std::map<int, const Toolchain*> by_number;
  for (VariantIndex v : variants.indices()) {
    by_number[problem.variants[v].toolchain] = candidates[variants[v].candidate].toolchain;
  }
  std::vector<const Toolchain*> toolchains;  // by number
  for (const auto& [_, toolchain] : by_number) toolchains.push_back(toolchain);
  std::vector<std::vector<int>> sets;
  for (const std::vector<const Toolchain*>& compatible : CompatibleSets(toolchains)) {
    std::vector<int>& set = sets.emplace_back();
    for (const auto& [number, toolchain] : by_number) {
      if (std::find(compatible.begin(), compatible.end(), toolchain) != compatible.end()) set.push_back(number);
    }
  }
  return sets;
}

}  // namespace

SearchResult FindCovers(const DataflowGraph& graph, const CandidateList& candidates, const VariantList& variants,
                        const std::vector<bool>& eligible, CoverCosts& costs, const SearchOptions& options) {
  return FindCovers(MakeCoverProblem(graph, candidates, variants, eligible), candidates, variants, costs, options);
}

SearchResult FindCovers(const CoverProblem& problem, const CandidateList& candidates, const VariantList& variants,
                        CoverCosts& costs, const SearchOptions& options) {
  return SearchCompatibleCovers(problem, costs, options, SetsOf(problem, candidates, variants));
}

}  // namespace collage
