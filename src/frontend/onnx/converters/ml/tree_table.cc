// tree_table.cc: all comparisons of ONNX as "at most": strict ones by the number next to the threshold, equality by
// two.
#include "frontend/onnx/converters/ml/tree_table.h"

#include <algorithm>
#include <limits>

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

TreeTable::TreeTable(size_t num_nodes, DataType dtype) : nodes_(num_nodes), dtype_(dtype) {}

TreeTable::Place TreeTable::Added(const Node& node) {
  nodes_.push_back(node);
  return static_cast<Place>(nodes_.size() - 1);
}

double TreeTable::Below(double value) const {
  if (dtype_ == kFloat64) return std::nextafter(value, -kInfinity);
  return std::nextafter(static_cast<float>(value), -std::numeric_limits<float>::infinity());
}

TreeTable::Node TreeTable::Equals(int64_t feature, double value, Place when_true, Place when_false, Place nan) {
  if (std::isnan(value)) return {feature, 0, when_false, when_false, nan};
  const Node upper{feature, value, when_true, when_false, nan};
  if (value == -kInfinity) return upper;
  return {feature, Below(value), when_false, Added(upper), nan};
}

void TreeTable::SetNode(Place node, TreeMode mode, int64_t feature, double value, const Ways& ways) {
  const auto [yes, no, nan_is_true] = ways;
  // "Not equal" is the one comparison that holds for what is not a number.
  const Place nan = nan_is_true || mode == TreeMode::kNotEqual ? yes : no;
  const bool is_equality = mode == TreeMode::kEqual || mode == TreeMode::kNotEqual;
  const bool is_strict = mode == TreeMode::kLess || mode == TreeMode::kAtLeast;
  const bool is_upward = mode == TreeMode::kAtLeast || mode == TreeMode::kGreater;
  Node result{feature, 0, no, no, nan};  // comparisons with what is not a number
  if (is_equality) {
    result = mode == TreeMode::kEqual ? Equals(feature, value, yes, no, nan) : Equals(feature, value, no, yes, nan);
  } else if (is_strict && value == -kInfinity) {
    // Nothing is less, all is at least as much.
    result.at_most = result.greater = is_upward ? yes : no;
  } else if (!std::isnan(value)) {
    result = {feature, is_strict ? Below(value) : value, is_upward ? no : yes, is_upward ? yes : no, nan};
  }
  nodes_[static_cast<size_t>(node)] = result;
}

void TreeTable::SetMember(Place node, int64_t feature, std::vector<double> values, const Ways& ways) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  std::ranges::sort(values);
  const auto repeated = std::ranges::unique(values);
  values.erase(repeated.begin(), repeated.end());
  const Place nan = ways.nan_is_true ? ways.when_true : ways.when_false;
  const Node never{feature, 0, ways.when_false, ways.when_false, nan};
  // Halves of the values, down to one.
  const std::function<Node(size_t, size_t)> search = [&](size_t begin, size_t end) {
    if (end - begin == 1) return Equals(feature, values[begin], ways.when_true, ways.when_false, nan);
    const size_t middle = begin + (end - begin) / 2;
    const Place low = Added(search(begin, middle)), high = Added(search(middle, end));
    return Node{feature, values[middle - 1], low, high, nan};
  };
  const Node found = values.empty() ? never : search(0, values.size());
  nodes_[static_cast<size_t>(node)] = found;
}

std::optional<int64_t> TreeTable::Depth(const std::vector<Place>& roots) const {
  constexpr int64_t kUnknown = -1, kEntered = -2;
  std::vector<int64_t> depths(nodes_.size(), kUnknown);
  std::vector<Place> stack(roots.begin(), roots.end());
  const auto depth_of = [&](Place place) { return place < 0 ? 0 : depths[static_cast<size_t>(place)]; };
  while (!stack.empty()) {
    const Place place = stack.back();
    if (depth_of(place) >= 0) {
      stack.pop_back();
      continue;
    }
    int64_t& own = depths[static_cast<size_t>(place)];
    const Node& node = nodes_[static_cast<size_t>(place)];
    const Place children[] = {node.at_most, node.greater, node.nan};
    if (own == kUnknown) {
      own = kEntered;
      for (const Place child : children) {
        if (depth_of(child) == kEntered) return std::nullopt;
        if (depth_of(child) == kUnknown) stack.push_back(child);
      }
      continue;
    }
    // All children are known by now.
    own = 1 + std::max({depth_of(children[0]), depth_of(children[1]), depth_of(children[2])});
    stack.pop_back();
  }
  int64_t depth = 0;
  for (const Place root : roots) depth = std::max(depth, depth_of(root));
  return depth;
}

Expr TreeTable::Leaves(NodeContext& node, const Expr& data, const std::vector<Place>& roots, int64_t depth) const {
  // There is at least one node, also if all trees are leaves.
  const auto count = std::max<int64_t>(static_cast<int64_t>(nodes_.size()), 1);
  const Tensor features = Tensor::Zeros({count}, kInt32), thresholds = Tensor::Zeros({count}, dtype_);
  const Tensor children = Tensor::Zeros({count, 3}, kInt32);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    features.data<int32_t>()[i] = static_cast<int32_t>(nodes_[i].feature);
    thresholds.Set(static_cast<int64_t>(i), nodes_[i].threshold);
    children.data<int32_t>()[3 * i] = nodes_[i].at_most;
    children.data<int32_t>()[3 * i + 1] = nodes_[i].greater;
    children.data<int32_t>()[3 * i + 2] = nodes_[i].nan;
  }
  const Tensor starts =
      Tensor::Of<int32_t>({static_cast<int64_t>(roots.size())}, kInt32, std::span<const int32_t>(roots));
  return node.Op("ml.tree_leaves",
                 {data, MakeConstant(starts), MakeConstant(features), MakeConstant(thresholds), MakeConstant(children)},
                 {{"depth", depth}});
}

}  // namespace collage
