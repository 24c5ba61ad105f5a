// forest.h: decision trees and what their leaves say, added up over the trees.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/onnx/converters/ml/tree_table.h"

namespace collage {

/// The weight that a leaf gives a target.
struct Vote {
  int64_t leaf;
  int64_t target;
  double weight;
};

/// The trees of a node, and their votes.
struct Forest {
  DataType dtype;  ///< in which features are compared and votes are added up
  TreeTable table;
  std::vector<TreeTable::Place> roots;
  int64_t num_leaves = 0;
  std::vector<int64_t> tree_of_leaf;  ///< empty where trees may share leaves
  std::vector<Vote> votes;
  int64_t num_targets = 1;

  Forest(size_t num_nodes, DataType type) : dtype(type), table(num_nodes, type) {}
};

/// How votes become scores.
struct Combination {
  const char* op;  ///< the reduction
  double neutral;
  bool is_mean = false;

  double Of(double a, double b) const;
};

/// The combination that ONNX calls SUM, AVERAGE, MIN or MAX.
Combination CombinationOf(const std::string& name);

/// Whether a target has a vote in every run, in none, or in some.
enum class Presence : uint8_t { kNever, kSometimes, kAlways };

/// The scores of a forest, which must outlive it.
class ForestScores {
 public:
  /// Throws kInput where a way leads round in a circle, and for votes for targets that there are not.
  ForestScores(NodeContext& node, const Forest& forest);

  /// [N, targets]; 0 where a target has no votes.
  Expr Combined(const Combination& how);
  /// [N, targets], truth values: whether a target has a vote.
  Expr HasVote();
  /// A tree whose leaves all have a vote for a target gives it one in every run.
  std::vector<Presence> Presences() const;

 private:
  size_t At(const Vote& vote) const { return static_cast<size_t>(vote.target * forest_.num_leaves + vote.leaf); }
  /// `weights` [targets, leaves], reduced over the leaves that each row comes to: [N, targets].
  Expr Reduced(const Combination& how, const std::vector<double>& weights, DataType dtype);
  /// As Reduced: trees in the order of `target_of`, as many for each target. Missing ones are leaves that say nothing.
  Expr ReducedByTarget(const Combination& how, const std::vector<double>& weights, DataType dtype,
                       const std::vector<int64_t>& target_of);
  /// [N, trees].
  Expr AllLeaves();
  /// For each tree the one target that it votes for; nothing where a tree votes for several.
  std::optional<std::vector<int64_t>> TargetsOfTrees() const;

  NodeContext& node_;
  const Forest& forest_;
  int64_t depth_ = 0;
  Expr data_;
  Expr leaves_;
  Expr leaves_by_target_;
};

}  // namespace collage
