// rewrite.h: phase 4 of RFC 0.81: the function with all chosen partitions made, in parallel.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "partition/partition_rule.h"

namespace collage {

/// A candidate that was chosen, with the layouts at its boundary.
struct ChosenPartition {
  const CandidatePartition* candidate = nullptr;
  BoundaryLayouts layouts;
  double estimated_seconds = 0;
  std::string schedule = {};  ///< PartitionRequest::schedule
};

/// Partitions with the candidates that they are of, to which they point: it moves, and is not copied.
struct OwnedPartitions {
  OwnedPartitions() = default;
  OwnedPartitions(OwnedPartitions&&) noexcept = default;
  OwnedPartitions& operator=(OwnedPartitions&&) noexcept = default;

  std::deque<CandidatePartition> candidates;
  std::vector<ChosenPartition> chosen;  ///< point into `candidates`
};

/// The graph's function with every chosen partition as a call of a Primitive function (attributes Compiler,
/// global_symbol, layouts, estimate), what is left being tuples, projections and reshapes. Works in an order in which
/// each partition's inputs are ready; nothing when the partitions depend on each other in a circle. Linear in the
/// graph.
std::optional<Function> RewritePartitions(const DataflowGraph& graph, const std::vector<ChosenPartition>& chosen);

/// The graph's function with the nested sub-graphs of all candidates, which must not overlap, as calls of functions
/// with their attributes. A candidate that wraps nothing changes nothing. Throws kUnsupported for wrapped candidates
/// that hold what no partition can: parameters, the function itself, control flow, or operators and scalars alone.
/// Nothing when they depend on each other in a circle.
std::optional<Function> RewriteNested(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates);

/// Whether partitions of these sub-graphs can be run one after the other.
bool CanBeOrdered(const DataflowGraph& graph, const std::vector<const SubGraph*>& sub_graphs);

}  // namespace collage
