// forest.cc: ml.tree_leaves, then a reduction of what the leaves say.
#include "frontend/onnx/converters/ml/forest.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "frontend/onnx/builders.h"
#include "frontend/onnx/converters/ml/ml.h"

namespace collage {

using V = std::vector<int64_t>;
using Place = TreeTable::Place;

namespace {

// A matrix of weights by target and leaf takes 8 bytes each.
constexpr int64_t kMostWeights = int64_t{1} << 27;

}  // namespace

double Combination::Of(double a, double b) const {
  return neutral == 0 ? a + b : neutral > 0 ? std::min(a, b) : std::max(a, b);
}

Combination CombinationOf(const std::string& name) {
  if (name == "MIN") return {"min", std::numeric_limits<double>::infinity()};
  if (name == "MAX") return {"max", -std::numeric_limits<double>::infinity()};
  return {"sum", 0, name == "AVERAGE"};
}

ForestScores::ForestScores(NodeContext& node, const Forest& forest) : node_(node), forest_(forest) {
  const std::optional<int64_t> depth = forest.table.Depth(forest.roots);
  if (!depth) node.Invalid("a tree leads round in a circle");
  depth_ = *depth;
  if (forest.num_targets > kMostWeights / std::max<int64_t>(forest.num_leaves, 1))
    node.Unsupported(fmt::format("weights of {} leaves for {} targets each", forest.num_leaves, forest.num_targets));
  data_ = node.Cast(RowsOfFeatures(node, node.Input(0)), forest.dtype);
  for (const Vote& vote : forest.votes) {
    if (vote.target < 0 || vote.target >= forest.num_targets)
      node.Invalid(fmt::format("a leaf votes for target {} of {}", vote.target, forest.num_targets));
  }
}

Expr ForestScores::Combined(const Combination& how) {
  std::vector<double> weights(static_cast<size_t>(forest_.num_targets * forest_.num_leaves), how.neutral);
  std::set<std::pair<int64_t, int64_t>> known;
  for (const Vote& vote : forest_.votes) {
    double& weight = weights[At(vote)];
    weight = known.emplace(vote.leaf, vote.target).second ? vote.weight : how.Of(weight, vote.weight);
  }
  Expr scores = Reduced(how, weights, forest_.dtype);
  if (how.is_mean) {
    scores = node_.Op("divide", {scores, node_.ScalarLike(static_cast<double>(forest_.roots.size()), scores)});
  }
  if (how.neutral == 0) return scores;
  const Expr is_none = node_.Op("equal", {scores, node_.ScalarLike(how.neutral, scores)});
  return node_.Op("where", {is_none, node_.ScalarLike(0, scores), scores});
}

Expr ForestScores::HasVote() {
  std::vector<double> votes(static_cast<size_t>(forest_.num_targets * forest_.num_leaves), 0);
  for (const Vote& vote : forest_.votes) votes[At(vote)] = 1;
  const Expr count = Reduced({"max", 0}, votes, kFloat32);
  return node_.Op("greater", {count, node_.ScalarLike(0, count)});
}

std::vector<Presence> ForestScores::Presences() const {
  const size_t num_trees = forest_.roots.size();
  V leaves(num_trees, 0);
  for (const int64_t tree : forest_.tree_of_leaf) ++leaves[static_cast<size_t>(tree)];
  std::map<std::pair<int64_t, int64_t>, std::set<int64_t>> voters;  // tree and target → leaves
  std::vector<Presence> result(static_cast<size_t>(forest_.num_targets), Presence::kNever);
  for (const Vote& vote : forest_.votes) {
    const int64_t tree = forest_.tree_of_leaf[static_cast<size_t>(vote.leaf)];
    std::set<int64_t>& own = voters[{tree, vote.target}];
    own.insert(vote.leaf);
    Presence& presence = result[static_cast<size_t>(vote.target)];
    const bool is_whole = static_cast<int64_t>(own.size()) == leaves[static_cast<size_t>(tree)];
    presence = is_whole ? Presence::kAlways : std::max(presence, Presence::kSometimes);
  }
  return result;
}

Expr ForestScores::Reduced(const Combination& how, const std::vector<double>& weights, DataType dtype) {
  const int64_t leaves = forest_.num_leaves, targets = forest_.num_targets;
  if (targets == 1) {
    const Expr own = node_.Op("take", {Numbers({leaves}, dtype, weights), AllLeaves()}, {{"axis", 0}});
    return node_.Op(how.op, {own}, {{"axis", V{1}}, {"keepdims", true}});
  }
  if (const std::optional<V> target_of = TargetsOfTrees()) return ReducedByTarget(how, weights, dtype, *target_of);
  const Expr own = node_.Op("take", {Numbers({targets, leaves}, dtype, weights), AllLeaves()}, {{"axis", 1}});
  return Transpose(node_, node_.Op(how.op, {own}, {{"axis", V{2}}}), {1, 0});
}

Expr ForestScores::AllLeaves() {
  if (!leaves_) leaves_ = forest_.table.Leaves(node_, data_, forest_.roots, depth_);
  return leaves_;
}

std::optional<V> ForestScores::TargetsOfTrees() const {
  if (forest_.tree_of_leaf.empty()) return std::nullopt;
  V targets(forest_.roots.size(), -1);
  for (const Vote& vote : forest_.votes) {
    int64_t& target = targets[static_cast<size_t>(forest_.tree_of_leaf[static_cast<size_t>(vote.leaf)])];
    if (target >= 0 && target != vote.target) return std::nullopt;
    target = vote.target;
  }
  return targets;
}

Expr ForestScores::ReducedByTarget(const Combination& how, const std::vector<double>& weights, DataType dtype,
                                   const V& target_of) {
  const int64_t leaves = forest_.num_leaves, targets = forest_.num_targets;
  std::vector<std::vector<Place>> roots(static_cast<size_t>(targets));
  size_t most = 1;
  for (size_t tree = 0; tree < target_of.size(); ++tree) {
    if (target_of[tree] < 0) continue;
    std::vector<Place>& own = roots[static_cast<size_t>(target_of[tree])];
    own.push_back(forest_.roots[tree]);
    most = std::max(most, own.size());
  }
  std::vector<Place> ordered;
  for (std::vector<Place>& own : roots) {
    own.resize(most, TreeTable::Leaf(leaves));
    ordered.insert(ordered.end(), own.begin(), own.end());
  }
  if (!leaves_by_target_) leaves_by_target_ = forest_.table.Leaves(node_, data_, ordered, depth_);
  std::vector<double> by_leaf(static_cast<size_t>(leaves) + 1, how.neutral);
  for (const Vote& vote : forest_.votes) by_leaf[static_cast<size_t>(vote.leaf)] = weights[At(vote)];
  const Expr own = node_.Op("take", {Numbers({leaves + 1}, dtype, by_leaf), leaves_by_target_}, {{"axis", 0}});
  const SymbolicSize rows = node_.SizesOf(data_)[0];
  const Expr by_target = node_.Reshape(own, {rows, targets, static_cast<int64_t>(most)});
  return node_.Op(how.op, {by_target}, {{"axis", V{2}}});
}

}  // namespace collage
