// trees.cc: ensembles of decision trees: ml.tree_leaves, then what the leaves say, summed over the trees.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "frontend/onnx/builders.h"
#include "frontend/onnx/converters/ml/forest.h"
#include "frontend/onnx/converters/ml/ml.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;
using Place = TreeTable::Place;

// ---- reading attributes ----

/// The floats of attribute `name`, or of the tensor of attribute `name`_as_tensor.
std::vector<double> FloatsOrTensor(NodeContext& node, const std::string& name) {
  const std::optional<Tensor> tensor = node.TensorAttr((name + "_as_tensor").c_str());
  if (!tensor) return node.Floats(name.c_str());
  std::vector<double> values;
  for (int64_t i = 0; i < tensor->num_elements(); ++i) values.push_back(tensor->At(i));
  return values;
}

/// Features and votes are of float64 if the data or the model's numbers are, else of float32.
DataType ComputedIn(NodeContext& node, const char* tensor) {
  const std::optional<Tensor> values = node.TensorAttr(tensor);
  const bool is_double = node.TypeOf(node.Input(0)).dtype() == kFloat64 || (values && values->dtype() == kFloat64);
  return is_double ? kFloat64 : kFloat32;
}

void CheckCount(NodeContext& node, const char* name, size_t found, size_t wanted) {
  if (found != wanted) node.Invalid(fmt::format("attribute '{}' has {} elements, {} are wanted", name, found, wanted));
}

V IntsOf(NodeContext& node, const std::string& name, size_t count) {
  V values = node.Ints(name.c_str(), {});
  CheckCount(node, name.c_str(), values.size(), count);
  return values;
}

/// For each node whether what is no number takes the way of "true".
V NanTracks(NodeContext& node, size_t count) {
  V tracks = node.Ints("nodes_missing_value_tracks_true", {});
  tracks.resize(count, 0);
  return tracks;
}

void CheckFeature(NodeContext& node, int64_t feature, int64_t num_features) {
  if (feature < 0 || feature >= num_features)
    node.Invalid(fmt::format("a tree reads feature {}, the data has {}", feature, num_features));
}

/// How many features the data has. If a run decides, the data becomes the features up to the last one that trees read,
/// and a run with fewer fails.
int64_t NumFeatures(NodeContext& node) {
  constexpr int64_t kMostFeatures = int64_t{1} << 20;
  const Expr x = node.Input(0);
  const Sizes shape = node.SizesOf(x);
  const V read = node.Ints("nodes_featureids", {});
  const int64_t last = read.empty() ? -1 : std::ranges::max(read);
  if (shape.back().is_known() || last < 0 || last >= kMostFeatures)
    return node.Known(shape.back(), "the number of features");
  const int64_t axis = node.Rank(x) - 1, count = last + 1;
  node.ReplaceInput(0, node.WithSizeAlong(Slice(node, x, axis, 0, count), shape, axis, count));
  return count;
}

TreeMode ModeOf(NodeContext& node, const std::string& mode) {
  static const std::map<std::string, TreeMode> modes = {
      {"BRANCH_LEQ", TreeMode::kAtMost}, {"BRANCH_LT", TreeMode::kLess},  {"BRANCH_GTE", TreeMode::kAtLeast},
      {"BRANCH_GT", TreeMode::kGreater}, {"BRANCH_EQ", TreeMode::kEqual}, {"BRANCH_NEQ", TreeMode::kNotEqual}};
  const auto found = modes.find(mode);
  if (found == modes.end()) node.Invalid(fmt::format("a tree has a node of mode '{}', which does not exist", mode));
  return found->second;
}

/// Nodes of the older operators: by tree and number, some of which are leaves.
class NodeList {
 public:
  explicit NodeList(NodeContext& node)
      : node_(node), modes_(node.Strings("nodes_modes")), tree_ids_(node.Ints("nodes_treeids", {})) {
    CheckCount(node, "nodes_modes", modes_.size(), tree_ids_.size());
    if (modes_.empty()) node.Invalid("has no trees");
    const V ids = IntsOf(node, "nodes_nodeids", modes_.size());
    for (size_t i = 0; i < modes_.size(); ++i) {
      const bool is_leaf = modes_[i] == "LEAF";
      const Place place = is_leaf ? TreeTable::Leaf(num_leaves_++) : static_cast<Place>(num_nodes_++);
      if (!places_.emplace(std::pair(tree_ids_[i], ids[i]), place).second)
        node.Invalid(fmt::format("tree {} has two nodes {}", tree_ids_[i], ids[i]));
      all_.push_back(place);
    }
  }

  Place At(int64_t tree, int64_t id) const {
    const auto found = places_.find({tree, id});
    if (found == places_.end()) node_.Invalid(fmt::format("tree {} has no node {}", tree, id));
    return found->second;
  }

  Forest Read() const {
    const size_t count = modes_.size();
    const V features = IntsOf(node_, "nodes_featureids", count), tracks = NanTracks(node_, count);
    const V yes = IntsOf(node_, "nodes_truenodeids", count), no = IntsOf(node_, "nodes_falsenodeids", count);
    const std::vector<double> values = FloatsOrTensor(node_, "nodes_values");
    CheckCount(node_, "nodes_values", values.size(), count);
    const int64_t num_features = NumFeatures(node_);
    Forest forest(num_nodes_, ComputedIn(node_, "nodes_values_as_tensor"));
    forest.num_leaves = num_leaves_;
    forest.tree_of_leaf.resize(static_cast<size_t>(num_leaves_));
    std::map<int64_t, int64_t> trees;
    for (size_t i = 0; i < count; ++i) {
      const int64_t tree = trees.emplace(tree_ids_[i], static_cast<int64_t>(trees.size())).first->second;
      // The first node of a tree is its root.
      if (tree == static_cast<int64_t>(forest.roots.size())) forest.roots.push_back(all_[i]);
      if (all_[i] < 0) {
        forest.tree_of_leaf[static_cast<size_t>(-1 - all_[i])] = tree;
        continue;
      }
      CheckFeature(node_, features[i], num_features);
      forest.table.SetNode(all_[i], ModeOf(node_, modes_[i]), features[i], values[i],
                           {At(tree_ids_[i], yes[i]), At(tree_ids_[i], no[i]), tracks[i] != 0});
    }
    return forest;
  }

 private:
  NodeContext& node_;
  std::vector<std::string> modes_;
  V tree_ids_;
  std::map<std::pair<int64_t, int64_t>, Place> places_;
  std::vector<Place> all_;
  size_t num_nodes_ = 0;
  int64_t num_leaves_ = 0;
};

/// The forest of an older operator; `kind` is "target" or "class".
Forest ReadForest(NodeContext& node, const std::string& kind, int64_t num_targets) {
  const NodeList list(node);
  Forest forest = list.Read();
  forest.num_targets = num_targets;
  const V ids = node.Ints((kind + "_ids").c_str(), {});
  const V trees = IntsOf(node, kind + "_treeids", ids.size()), nodes = IntsOf(node, kind + "_nodeids", ids.size());
  const std::vector<double> weights = FloatsOrTensor(node, kind + "_weights");
  CheckCount(node, (kind + "_weights").c_str(), weights.size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const Place place = list.At(trees[i], nodes[i]);
    // A vote of a node that is no leaf is never heard.
    if (place < 0) forest.votes.push_back({-1 - place, ids[i], weights[i]});
  }
  return forest;
}

Expr WithBase(NodeContext& node, const Expr& scores, const std::vector<double>& base) {
  const DataType dtype = node.TypeOf(scores).dtype();
  return node.Op("add", {scores, Numbers({static_cast<int64_t>(base.size())}, dtype, base)});
}

Results ConvertRegressor(NodeContext& node) {
  const int64_t targets = node.PositiveInt("n_targets", 1);
  const Forest forest = ReadForest(node, "target", targets);
  const std::string how = node.OneOf("aggregate_function", "SUM", {"SUM", "AVERAGE", "MIN", "MAX"});
  Expr scores = ForestScores(node, forest).Combined(CombinationOf(how));
  const std::vector<double> base = FloatsOrTensor(node, "base_values");
  if (static_cast<int64_t>(base.size()) == targets) scores = WithBase(node, scores, base);
  const std::string transform = PostTransform(node);
  // One target has nothing to be set against.
  if (targets > 1 || transform == "PROBIT") scores = PostTransformed(node, scores, transform);
  return {node.Cast(scores, kFloat32)};
}

// ---- classes ----

/// Labels and scores, as ONNX Runtime has them.
class Classifier {
 public:
  explicit Classifier(NodeContext& node)
      : node_(node),
        labels_(ClassLabels(node, "classlabels_int64s")),
        forest_(ReadForest(node, "class", static_cast<int64_t>(labels_.size()))),
        scores_(node, forest_),
        base_(FloatsOrTensor(node, "base_values")),
        transform_(PostTransform(node)) {}

  Results Run() {
    const std::vector<Presence> presences = scores_.Presences();
    if (labels_.size() == 2) return Both(presences[1]);
    return Several(presences);
  }

 private:
  Results Several(const std::vector<Presence>& presences) {
    Expr scores = scores_.Combined(CombinationOf("SUM"));
    Expr contest = scores;
    if (base_.size() == labels_.size()) {
      contest = scores = WithBase(node_, scores, base_);
    } else if (std::ranges::find(presences, Presence::kSometimes) != presences.end() ||
               std::ranges::find(presences, Presence::kNever) != presences.end()) {
      // A class without votes is not the best one, and be all others below 0.
      contest = node_.Op("where", {scores_.HasVote(), scores, node_.ScalarLike(-INFINITY, scores)});
    }
    const Expr best = node_.Op("argmax", {contest}, {{"axis", V{1}}});
    return Finished(LabelsAt(node_, labels_, best), PostTransformed(node_, scores, transform_));
  }

  Results Finished(const Expr& labels, const Expr& scores) { return {labels, node_.Cast(scores, kFloat32)}; }

  Results Both(Presence second) {
    const Expr scores = scores_.Combined(CombinationOf("SUM"));
    const Expr first_score = Column(node_, scores, 0), second_score = Column(node_, scores, 1);
    if (second == Presence::kNever) return Single(first_score, second_score);
    const Results with = Pair(first_score, second_score);
    if (second == Presence::kAlways) return with;
    const Results without = Single(first_score, second_score);
    const Expr has = Column(node_, scores_.HasVote(), 1);
    const Expr has_one = node_.Op("squeeze", {has}, {{"axis", V{1}}});
    return {node_.Op("where", {has_one, with[0], without[0]}), node_.Op("where", {has, with[1], without[1]})};
  }

  /// Labels and scores if both classes have votes.
  Results Pair(Expr first, Expr second) {
    if (base_.size() == 2) {
      second = Shifted(node_, first, base_[1]);
      first = node_.Op("negative", {second});
    } else if (base_.size() == 1) {
      first = Shifted(node_, first, base_[0]);
    }
    return Finished(Label(second), PostTransformed(node_, Concatenate(node_, {first, second}, 1), transform_));
  }

  /// Labels and scores if the second class has no votes.
  Results Single(Expr first, Expr second) {
    if (!base_.empty()) first = Shifted(node_, first, base_[0]);
    if (base_.size() == 2) {
      second = Shifted(node_, second, base_[1]);
      return Finished(Label(first), PostTransformed(node_, Concatenate(node_, {first, second}, 1), transform_));
    }
    const bool is_probability = IsOneClass() && IsPositive() && transform_ != "LOGISTIC";
    const Expr pair = BothScores(node_, first, is_probability);
    return Finished(Label(first), transform_ == "LOGISTIC" ? PostTransformed(node_, pair, transform_) : pair);
  }

  /// Whether all votes are for one class.
  bool IsOneClass() const {
    return std::ranges::all_of(forest_.votes, [&](const Vote& vote) { return vote.target == forest_.votes[0].target; });
  }
  bool IsPositive() const {
    return std::ranges::all_of(forest_.votes, [](const Vote& vote) { return vote.weight >= 0; });
  }

  /// [N]: the second label where `score` [N, 1] says so.
  Expr Label(const Expr& score) {
    const double bound = IsOneClass() && IsPositive() ? 0.5 : 0;
    const Expr flat = node_.Op("squeeze", {score}, {{"axis", V{1}}});
    return LabelsWhere(node_, node_.Op("greater", {flat, node_.ScalarLike(bound, flat)}), labels_[1], labels_[0]);
  }

  NodeContext& node_;
  V labels_;
  Forest forest_;
  ForestScores scores_;
  std::vector<double> base_;
  std::string transform_;
};

Results ConvertClassifier(NodeContext& node) { return Classifier(node).Run(); }

// ---- version 5 ----

/// Sets of attribute membership_values, one after the other, with not-a-number between them.
std::vector<std::vector<double>> MemberSets(NodeContext& node) {
  const std::optional<Tensor> values = node.TensorAttr("membership_values");
  std::vector<std::vector<double>> sets(values ? 1 : 0);
  for (int64_t i = 0; values && i < values->num_elements(); ++i) {
    if (std::isnan(values->At(i))) {
      sets.emplace_back();
    } else {
      sets.back().push_back(values->At(i));
    }
  }
  return sets;
}

Tensor WantedTensor(NodeContext& node, const char* name) {
  std::optional<Tensor> tensor = node.TensorAttr(name);
  if (!tensor) node.Invalid(fmt::format("has no attribute '{}'", name));
  return *tensor;
}

/// Nodes by their places; leaves are numbered by themselves.
Forest ReadCompactForest(NodeContext& node) {
  const Tensor modes = WantedTensor(node, "nodes_modes"), splits = WantedTensor(node, "nodes_splits");
  const auto count = static_cast<size_t>(modes.num_elements());
  CheckCount(node, "nodes_splits", static_cast<size_t>(splits.num_elements()), count);
  const V features = IntsOf(node, "nodes_featureids", count), tracks = NanTracks(node, count);
  const V yes = IntsOf(node, "nodes_truenodeids", count), no = IntsOf(node, "nodes_falsenodeids", count);
  const V yes_is_leaf = IntsOf(node, "nodes_trueleafs", count), no_is_leaf = IntsOf(node, "nodes_falseleafs", count);
  const V targets = node.Ints("leaf_targetids", {});
  const Tensor weights = WantedTensor(node, "leaf_weights");
  CheckCount(node, "leaf_weights", static_cast<size_t>(weights.num_elements()), targets.size());
  const auto place = [&](int64_t at, bool is_leaf) {
    const size_t limit = is_leaf ? targets.size() : count;
    if (at < 0 || at >= static_cast<int64_t>(limit))
      node.Invalid(fmt::format("there is no {} {}, there are {}", is_leaf ? "leaf" : "node", at, limit));
    return is_leaf ? TreeTable::Leaf(at) : static_cast<Place>(at);
  };
  const int64_t num_features = NumFeatures(node);
  const std::vector<std::vector<double>> sets = MemberSets(node);
  Forest forest(count, ComputedIn(node, "nodes_splits"));
  size_t next_set = 0;
  for (size_t i = 0; i < count; ++i) {
    CheckFeature(node, features[i], num_features);
    const double mode = modes.At(static_cast<int64_t>(i));
    if (mode < 0 || mode > static_cast<double>(TreeMode::kMember))
      node.Invalid(fmt::format("a tree has a node of mode {}, which does not exist", mode));
    const auto at = static_cast<Place>(i);
    const TreeTable::Ways ways{place(yes[i], yes_is_leaf[i] != 0), place(no[i], no_is_leaf[i] != 0), tracks[i] != 0};
    if (mode != static_cast<double>(TreeMode::kMember)) {
      forest.table.SetNode(at, static_cast<TreeMode>(mode), features[i], splits.At(at), ways);
      continue;
    }
    if (next_set >= sets.size()) node.Invalid("'membership_values' has fewer sets than there are nodes for them");
    forest.table.SetMember(at, features[i], sets[next_set++], ways);
  }
  for (const int64_t root : node.Ints("tree_roots", {})) forest.roots.push_back(place(root, /*is_leaf=*/false));
  if (forest.roots.empty()) node.Invalid("has no trees");
  forest.num_targets = node.PositiveInt("n_targets", 1);
  forest.num_leaves = static_cast<int64_t>(targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    forest.votes.push_back({static_cast<int64_t>(i), targets[i], weights.At(static_cast<int64_t>(i))});
  }
  return forest;
}

Results ConvertCompact(NodeContext& node) {
  constexpr const char* kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  constexpr const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const int64_t how = node.IntWithin("aggregate_function", 1, 0, 3);
  const int64_t transform = node.IntWithin("post_transform", 0, 0, 4);
  const Forest forest = ReadCompactForest(node);
  const Expr scores = ForestScores(node, forest).Combined(CombinationOf(kAggregates[how]));
  return {node.Cast(PostTransformed(node, scores, kTransforms[transform]), node.TypeOf(node.Input(0)).dtype())};
}

}  // namespace

void AddMlTrees(OnnxConverters& converters) {
  converters.Add("ai.onnx.ml.TreeEnsembleRegressor", ConvertRegressor, "X: number[1..2] -> Y");
  converters.Add("ai.onnx.ml.TreeEnsembleClassifier", ConvertClassifier, "X: number[1..2] -> Y, Z?",
                 NarrowUse::kItsOwn);
  converters.Add("ai.onnx.ml.TreeEnsemble", ConvertCompact, "X: float[1..2] -> Y");
}

}  // namespace collage
