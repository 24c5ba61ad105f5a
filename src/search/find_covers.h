// find_covers.h: least-cost covers of a dataflow graph by candidates (RFC 0.81, Phase 3), with layouts at the boundaries.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "collage/rewrite.h"

namespace collage {

/// A candidate with one of the layout combinations that its toolchain offers.
struct CandidateVariant {
  int candidate;  ///< index in the list of candidates
  BoundaryLayouts layouts;
};

/// What the search knows of costs, all in seconds. `Exact` may be very slow; infinity means it cannot be run.
class CoverCosts {
 public:
  virtual ~CoverCosts() = default;
  /// Cheap and never above `Exact`.
  virtual double LowerBound(int variant) = 0;
  virtual double Exact(int variant) = 0;
  /// To change the layout of the value of graph node `node`.
  virtual double Convert(int node, Layout from, Layout to) = 0;
  /// Fixed cost of one more partition.
  virtual double Transition() = 0;
};

struct SearchOptions {
  int num_covers = 1;
  /// At most this many states are expanded for one first uncovered node; more are dropped, and counted. Keeps wide graphs
  /// from exploding; chains never come near it.
  int beam = 64;
};

struct Cover {
  std::vector<int> variants;
  double seconds = 0;
};

struct SearchResult {
  std::vector<Cover> covers;  ///< by cost, distinct; empty when there is none
  int64_t num_states = 0;
  int64_t num_dropped = 0;    ///< states that the beam cut off
  std::vector<int> stuck_at;  ///< when there is no cover: operator nodes at which no candidate applied
};

/// Dijkstra over states: which operator calls are covered, and which live values are channels-last. The next uncovered
/// call in post-dfs order must be covered first, so each cover is reached along one path. An edge enters the queue with its
/// lower bound; its exact cost is asked for only when it comes to the front. Operators that are reshapes, tuples and
/// projections need no cover: they are left to the host, or taken along by candidates that hold them.
///
/// `eligible` says which nodes' values may be channels-last. Deterministic: equal costs fall to the toolchain's priority,
/// then to the variant's index.
SearchResult FindCovers(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates,
                        const std::vector<CandidateVariant>& variants, const std::vector<bool>& eligible,
                        CoverCosts& costs, const SearchOptions& options);

}  // namespace collage
