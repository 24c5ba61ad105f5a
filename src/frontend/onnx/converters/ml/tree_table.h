// tree_table.h: decision trees as the tables that ml.tree_leaves walks through.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "frontend/onnx/importer.h"

namespace collage {

/// How a node compares a feature with its threshold; numbers as ONNX has them.
enum class TreeMode : uint8_t { kAtMost, kLess, kAtLeast, kGreater, kEqual, kNotEqual, kMember };

/// Nodes of trees under construction. A place is a node, from 0 on, or a leaf.
class TreeTable {
 public:
  using Place = int32_t;
  /// Both ways from a node.
  struct Ways {
    Place when_true;
    Place when_false;
    bool nan_is_true = false;
  };

  /// A table with nodes 0 to `num_nodes` - 1, which SetNode defines, that compare numbers of `dtype`.
  TreeTable(size_t num_nodes, DataType dtype);

  static Place Leaf(int64_t leaf) { return static_cast<Place>(-1 - leaf); }

  void SetNode(Place node, TreeMode mode, int64_t feature, double value, const Ways& ways);
  /// Defines a node that asks whether a feature is one of `values`.
  void SetMember(Place node, int64_t feature, std::vector<double> values, const Ways& ways);

  /// Comparisons on the longest way from a root to a leaf; nothing where some way leads round in a circle.
  std::optional<int64_t> Depth(const std::vector<Place>& roots) const;
  /// [N, number of roots]: the leaves that rows `data` of the table's dtype end at.
  Expr Leaves(NodeContext& node, const Expr& data, const std::vector<Place>& roots, int64_t depth) const;

 private:
  struct Node {
    int64_t feature = 0;
    double threshold = 0;
    Place at_most = 0;
    Place greater = 0;
    Place nan = 0;
  };

  Place Added(const Node& node);
  /// The largest number of the dtype below `value`.
  double Below(double value) const;
  /// The node that asks whether a feature is `value`.
  Node Equals(int64_t feature, double value, Place when_true, Place when_false, Place nan);

  std::vector<Node> nodes_;
  DataType dtype_;
};

}  // namespace collage
