// partition_order.h: which partitions may stand together in one cover, so that they can be run one after the other.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "search/cover_problem.h"

namespace collage {

/// Two partitions may need each other: {a, d} and {b, c} with a → b and c → d. All that a partition with one exit needs
/// is needed by that exit, so running it as one adds nothing to what the exits depend on, and partitions with one exit
/// never need each other in a circle, however many there are. So only those with several exits count: a cover can be
/// put in order if and only if none of these reach each other in a circle over the nodes of the graph.
///
/// A variant is risky when it is on such a circle with others that might be chosen: few are, and searches remember
/// which of them they chose.
class PartitionOrder {
 public:
  explicit PartitionOrder(const CoverProblem& problem);

  bool IsRisky(VariantIndex variant) const { return group_.contains(variant); }
  /// Whether `variant` can be run together with the risky ones that were `chosen`, which can be run together.
  bool CanJoin(const std::vector<VariantIndex>& chosen, VariantIndex variant);
  /// The greatest first position of a variant that may be on a circle with this risky one.
  Position LastPartner(VariantIndex variant) const { return last_start_[group_.at(variant)]; }

 private:
  void FindGroups();
  /// Whether a path leads from a node of one variant to a node of another.
  bool Reaches(VariantIndex from, VariantIndex to);

  const CoverProblem& problem_;
  std::vector<std::vector<int>> node_outputs_;
  std::unordered_map<VariantIndex, int> group_;  ///< risky variant → those that it may be on a circle with
  std::vector<Position> last_start_;             ///< by group
  std::unordered_map<int64_t, bool> reaches_;
};

}  // namespace collage
