// cover_problem.h: what the search needs to know of graph and candidates, worked out once: positions of the calls that
// must be covered, and values whose layouts matter.
#pragma once

#include <unordered_map>
#include <vector>

#include "collage/extract.h"
#include "search/find_covers.h"

namespace collage {

/// A value that is wanted or made in a layout.
struct LayoutUse {
  int value;  ///< node
  Layout layout;
  auto operator<=>(const LayoutUse&) const = default;
};

/// A variant as the search sees it.
struct VariantFacts {
  std::vector<int> covers;       ///< positions, ascending
  std::vector<LayoutUse> wants;  ///< of values that may have two layouts, each once
  std::vector<LayoutUse> makes;  ///< of values that may have two layouts
  int priority = 0;
};

class CoverProblem {
 public:
  CoverProblem(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates,
               const std::vector<CandidateVariant>& variants, const std::vector<bool>& eligible);

  /// Calls that must be covered, by position.
  const std::vector<int>& nodes() const { return nodes_; }
  const VariantFacts& variant(int index) const { return variants_[static_cast<size_t>(index)]; }
  /// Variants whose first call is at `position`.
  const std::vector<int>& StartingAt(int position) const { return starting_at_[static_cast<size_t>(position)]; }
  /// Positions of those who read a value, directly or through the host.
  const std::vector<int>& ReadersOf(int value) const { return readers_.at(value); }
  /// The position of the call that makes a value.
  int MakerOf(int value) const { return position_[static_cast<size_t>(value)]; }
  /// Values that the function returns through the host's reshapes: wanted plain.
  const std::vector<LayoutUse>& returned() const { return returned_; }

 private:
  void FindReaders();
  /// The value whose layout counts when `node` is read: looks through what the host does. -1 when it is plain anyway.
  int SourceOf(int node) const;
  VariantFacts FactsOf(const SubGraph& sub_graph, const Boundary& boundary, const BoundaryLayouts& layouts) const;

  const DataflowGraph& graph_;
  const std::vector<bool>& eligible_;
  std::vector<int> nodes_;
  std::vector<int> position_;  ///< by node; -1 when it needs no cover
  std::vector<VariantFacts> variants_;
  std::vector<std::vector<int>> starting_at_;
  std::unordered_map<int, std::vector<int>> readers_;
  std::vector<LayoutUse> returned_;
};

}  // namespace collage
