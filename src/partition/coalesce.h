// coalesce.h: disjoint sub-graphs that touch become one (RFC 0.7's MaxCoalesce), never such that partitions need each
// other.
#pragma once

#include <functional>
#include <vector>

#include "partition/sub_graph.h"

namespace collage {

/// Which of `parts` to merge: for each the number of its group, groups numbered by their first part.
///
/// Takes edges between parts in the order of the node that makes the value, then of the one that reads it, and merges
/// the two ends if `allows` says so (given the parts on both sides, in no order) and no path leads from one end to the
/// other through anything else, merged parts counting as one. So the graph of groups and other nodes stays free of
/// circles. O(edges × width of the part of the order that a merge moves): near-linear for nets, quadratic at worst.
std::vector<int> CoalesceGroups(
    const DataflowGraph& graph, const std::vector<const SubGraph*>& parts,
    const std::function<bool(const std::vector<int>& a, const std::vector<int>& b)>& allows);

/// The union of disjoint sub-graphs; nested ones as in DisjointUnion.
SubGraph UnionOf(const DataflowGraph& graph, const std::vector<const SubGraph*>& parts);

}  // namespace collage
