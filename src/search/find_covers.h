// find_covers.h: least-cost covers of a dataflow graph by candidates (RFC 0.81, Phase 3), with layouts at the
// boundaries.
#pragma once

#include <memory>
#include <vector>

#include "collage/partition_rule.h"

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
  /// Where several covers are wanted, those dearer than the best by more than this share are not looked for.
  double slack = 0.02;
  /// At most this many states are expanded for one first uncovered node; more are dropped, and counted. Keeps wide
  /// graphs from exploding; chains never come near it. 0 = no limit.
  int beam = 64;
};

struct Cover {
  std::vector<int> variants;  ///< in the order of their first nodes
  double seconds = 0;
};

struct SearchResult {
  std::vector<Cover> covers;  ///< by cost, distinct; empty when there is none
  int64_t num_states = 0;
  int64_t num_exact = 0;    ///< variants whose exact cost was asked for
  int64_t num_dropped = 0;  ///< states that the beam cut off
  /// When there is no cover: operator nodes in no candidate that can be run; when there is none of these, nodes at
  /// which the search came to no candidate.
  std::vector<int> stuck_at;
};

/// Dijkstra over states: which operator calls are covered, which live values are channels-last, and which layouts
/// covered candidates want of values that are not made yet. The next uncovered call in post-dfs order must be covered
/// first, so each cover is reached along one path. An edge enters the queue with its lower bound; its exact cost is
/// asked for only when it comes to the front. Dead ends are passed over.
///
/// Operators that are reshapes, tuples and projections need no cover: they are left to the host, which reads and makes
/// plain values, or taken along by candidates that hold them.
///
/// `eligible` says which nodes' values may be channels-last. Deterministic: equal costs fall to the toolchain's
/// priority, then to the variant's index. Covers whose partitions could not be run in any order are left out.
SearchResult FindCovers(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates,
                        const std::vector<CandidateVariant>& variants, const std::vector<bool>& eligible,
                        CoverCosts& costs, const SearchOptions& options);

}  // namespace collage
