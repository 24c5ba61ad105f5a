// find_covers.cc: from graph and candidates to a problem, from positions back to nodes.
#include "search/find_covers.h"

#include "search/cover_search.h"

namespace collage {

SearchResult FindCovers(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates,
                        const std::vector<CandidateVariant>& variants, const std::vector<bool>& eligible,
                        CoverCosts& costs, const SearchOptions& options) {
  const CoverProblem problem = MakeCoverProblem(graph, candidates, variants, eligible);
  SearchResult result = SearchCovers(problem, costs, options);
  for (int& position : result.stuck_at) position = problem.nodes[static_cast<size_t>(position)];
  return result;
}

}  // namespace collage
