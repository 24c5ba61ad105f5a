// builders.cc: expressions that converters of several families build.
#include "frontend/onnx/builders.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collage/ir/infer_type.h"
#include "ir/ops/relations.h"

namespace collage {

using V = std::vector<int64_t>;

int64_t NormalAxis(NodeContext& node, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) node.Invalid(fmt::format("axis {} is out of range for rank {}", axis, rank));
  return axis < 0 ? axis + rank : axis;
}

Expr Filled(double value, const Shape& shape, DataType dtype) {
  const std::optional<size_t> bytes = CheckedBytes(shape, dtype);
  if (!bytes || *bytes > static_cast<size_t>(kLargestFoldedBytes)) {
    const Expr call = MakeCall("full", {MakeScalar(value, dtype)}, {{"shape", shape}});
    InferType(call);
    return call;
  }
  Tensor tensor = Tensor::Empty(shape, dtype);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, value);
  return MakeConstant(tensor);
}

V CountedUp(NodeContext& node, int64_t begin, int64_t end) {
  if (end - begin > kLargestFoldedBytes / static_cast<int64_t>(sizeof(int64_t)))
    node.Unsupported(fmt::format("{} positions that are constants", end - begin));
  V values;
  for (int64_t i = begin; i < end; ++i) values.push_back(i);
  return values;
}

Tensor ZerosOf(NodeContext& node, const Shape& shape, DataType dtype) {
  const std::optional<size_t> bytes = CheckedBytes(shape, dtype);
  if (!bytes || *bytes > static_cast<size_t>(kLargestFoldedBytes))
    node.Unsupported("a constant of shape " + ToString(shape));
  return Tensor::Zeros(shape, dtype);
}

Expr Int64s(const V& values) {
  return MakeConstant(Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, kInt64, values));
}

Expr Scaled(NodeContext& node, const Expr& x, double factor) {
  return node.Op("multiply", {x, node.ScalarLike(factor, x)});
}

Expr Shifted(NodeContext& node, const Expr& x, double term) { return node.Op("add", {x, node.ScalarLike(term, x)}); }

Expr Concatenate(NodeContext& node, std::vector<Expr> parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  return node.Op("concatenate", {node.Tuple(std::move(parts))}, {{"axis", axis}});
}

Expr Slice(NodeContext& node, const Expr& x, int64_t axis, int64_t begin, int64_t end) {
  return node.Op("strided_slice", {x}, {{"begin", V{begin}}, {"end", V{end}}, {"axes", V{axis}}});
}

Expr SliceBetween(NodeContext& node, const Expr& x, int64_t axis, const SymbolicSize& begin, const SymbolicSize& end) {
  if (begin.is_known() && end.is_known()) return Slice(node, x, axis, begin.known(), end.known());
  const Sizes shape = node.SizesOf(x);
  const Expr sliced =
      node.Op("dyn.strided_slice", {x, node.Compute({begin}), node.Compute({end}), Int64s({1})}, {{"axes", V{axis}}});
  return node.WithSizeAlong(sliced, shape, axis, SlicedSize(begin, end, 1, shape[static_cast<size_t>(axis)]));
}

Expr PadBy(NodeContext& node, const Expr& data, const Sizes& before, const Sizes& after, const Expr& value,
           const std::string& mode) {
  if (before.is_known() && after.is_known()) {
    AttrValue::List widths;
    for (size_t i = 0; i < before.size(); ++i) widths.emplace_back(V{before[i].known(), after[i].known()});
    return node.Op("nn.pad", {data, value}, {{"pad_width", std::move(widths)}, {"pad_mode", mode}});
  }
  const Sizes shape = node.SizesOf(data);
  Sizes pairs;
  PartialSizes sizes;
  for (size_t i = 0; i < shape.size(); ++i) {
    pairs.insert(pairs.end(), {before[i], after[i]});
    sizes.emplace_back(shape[i] + before[i] + after[i]);
  }
  const Expr widths = node.Reshape(node.Compute(pairs), {static_cast<int64_t>(shape.size()), 2});
  return node.WithSizes(node.Op("dyn.nn.pad", {data, widths, value}, {{"pad_mode", mode}}), sizes);
}

Expr Reversed(NodeContext& node, const Expr& x, int64_t axis) { return node.Op("reverse", {x}, {{"axis", axis}}); }

Expr Transpose(NodeContext& node, const Expr& x, const V& axes) { return node.Op("transpose", {x}, {{"axes", axes}}); }

Expr ChannelsFirst(NodeContext& node, const Expr& x) {
  V axes(static_cast<size_t>(node.Rank(x)));
  std::iota(axes.begin(), axes.end(), 0);
  std::rotate(axes.begin() + 1, axes.end() - 1, axes.end());
  return Transpose(node, x, axes);
}

Expr ChannelsLast(NodeContext& node, const Expr& x) {
  V axes(static_cast<size_t>(node.Rank(x)));
  std::iota(axes.begin(), axes.end(), 0);
  std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end());
  return Transpose(node, x, axes);
}

Expr Swish(NodeContext& node, const Expr& x, double alpha) {
  return node.Op("multiply", {x, node.Op("sigmoid", {alpha == 1 ? x : Scaled(node, x, alpha)})});
}

Expr GeluByTanh(NodeContext& node, const Expr& x) {
  const Expr cube = node.Op("multiply", {node.Op("multiply", {x, x}), x});
  const Expr sum = node.Op("add", {x, Scaled(node, cube, 0.044715)});
  const Expr inner = node.Op("tanh", {Scaled(node, sum, std::sqrt(2 / M_PI))});
  return node.Op("multiply", {Scaled(node, x, 0.5), Shifted(node, inner, 1)});
}

}  // namespace collage
