// trees.cc: walks through decision trees.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

constexpr int64_t kChildren = 3;

Type TreeRelation(const OpCall& call) {
  const TensorTypeNode& data = TensorArg(call, 0, 2);
  const TensorTypeNode& roots = TensorArg(call, 1, 1);
  const TensorTypeNode& features = TensorArg(call, 2, 1);
  const TensorTypeNode& thresholds = TensorArg(call, 3, 1);
  const TensorTypeNode& children = TensorArg(call, 4, 2);
  if (data.dtype().is_bool()) throw RelationFailure{"expects numbers to compare, got " + ToString(call.args[0])};
  CheckDTypeOfFirst(call, 3);
  for (const size_t i : {size_t{1}, size_t{2}, size_t{4}}) {
    const DataType dtype = TensorArg(call, i).dtype();
    if (!dtype.is_integer() || dtype.is_bool())
      throw RelationFailure{"expects integers to say how nodes hang together, got " + ToString(call.args[i])};
  }
  if (data.shape()[1] == Dim(0)) throw RelationFailure{"has no features, got " + ToString(call.args[0])};
  if (features.shape()[0] == Dim(0)) throw RelationFailure{"has no nodes, got " + ToString(call.args[2])};
  const bool is_one_count = MayEqual(features.shape()[0], thresholds.shape()[0]) &&
                            MayEqual(features.shape()[0], children.shape()[0]) &&
                            MayEqual(children.shape()[1], Dim(kChildren));
  if (!is_one_count) {
    throw RelationFailure{fmt::format("expects a feature, a threshold and {} children per node, got {}, {} and {}",
                                      kChildren, ToString(call.args[2]), ToString(call.args[3]),
                                      ToString(call.args[4]))};
  }
  CheckRange("depth", {call.attrs.Int("depth")}, 0);
  return TensorType(std::vector<Dim>{data.shape()[0], roots.shape()[0]}, kInt32);
}

/// Which child follows: 0 where `x` is at most `threshold`, 1 where it is greater, 2 where they cannot be compared.
template <typename T>
int64_t Branch(T x, T threshold) {
  return x <= threshold ? 0 : x > threshold ? 1 : 2;
}

int64_t BranchAt(const Tensor& data, int64_t x, const Tensor& thresholds, int64_t node) {
  // Integers of 64 bits are more than a double holds.
  if (data.dtype() == kInt64) return Branch(data.data<int64_t>()[x], thresholds.data<int64_t>()[node]);
  if (data.dtype() == DataType::UInt(64)) return Branch(data.data<uint64_t>()[x], thresholds.data<uint64_t>()[node]);
  return Branch(data.At(x), thresholds.At(node));
}

void TreeReference(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& data = inputs[0];
  const Tensor& thresholds = inputs[3];
  const V roots = inputs[1].ToInts(), features = inputs[2].ToInts(), children = inputs[4].ToInts();
  const auto num_trees = static_cast<int64_t>(roots.size()), num_nodes = static_cast<int64_t>(features.size());
  const int64_t num_features = data.shape()[1], depth = attrs.Int("depth");
  InParallel(outputs[0].num_elements(), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      int64_t node = roots[static_cast<size_t>(o % num_trees)];
      for (int64_t step = 0; step < depth && node >= 0; ++step) {
        node = std::min(node, num_nodes - 1);
        const int64_t feature = std::clamp<int64_t>(features[static_cast<size_t>(node)], 0, num_features - 1);
        const int64_t branch = BranchAt(data, o / num_trees * num_features + feature, thresholds, node);
        node = children[static_cast<size_t>(node * kChildren + branch)];
      }
      outputs[0].data<int32_t>()[o] = static_cast<int32_t>(node < 0 ? -1 - node : 0);
    }
  });
}

Type I32(Shape shape) { return TensorType(std::move(shape), kInt32); }

OpDef TreeLeaves() {
  OpDef op;
  op.name = "ml.tree_leaves";
  op.is_exact = true;
  op.doc =
      "For each row and decision tree the number of the leaf where a walk from the tree's root ends. Node n leads to "
      "children[n, 0] where the row's feature features[n] is at most thresholds[n], to children[n, 1] where it is "
      "greater, to children[n, 2] where it is not a number. Leaf k is child -1 - k. Numbers of nodes and features "
      "beyond the last one are clipped, and a walk that does not end is at leaf 0.";
  op.args = {"data", "roots", "features", "thresholds", "children"};
  op.attrs = {{"depth", AttrKind::kInt, {}, "comparisons that a walk makes, at most", true}};
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.relation = Relation(TreeRelation);
  op.keeps_rows = RowsOfFirst;
  op.equal_dims = [](const OpCall&, const Type&, DimEquations& equations) {
    equations.Equal({DimRef::kResult, 0, 0}, {0, 0, 0});
    equations.Equal({DimRef::kResult, 0, 1}, {1, 0, 0});
    equations.Equal({2, 0, 0}, {3, 0, 0});
    equations.Equal({2, 0, 0}, {4, 0, 0});
  };
  op.index_limit = [](const OpCall& call, size_t argument) -> std::optional<int64_t> {
    if (argument == 2) return KnownSize(call, 0, 1);
    if (argument == 1 || argument == 4) return KnownSize(call, 2, 0);
    return std::nullopt;
  };
  op.reference = TreeReference;
  op.examples = {{{F32({5, 4}), I32({3}), I32({7}), F32({7}), I32({7, 3})}, {{"depth", 6}}, -4, 8},
                 {{I64({3, 2}), I64({9}), I64({5}), I64({5}), I64({5, 3})}, {{"depth", 20}}, -3, 6}};
  return op;
}

}  // namespace

void AddTreeOps(std::vector<OpDef>& rows) { rows.push_back(TreeLeaves()); }

}  // namespace collage
