// builders.cc: expressions that converters of several families build.
#include "frontend/onnx/builders.h"

#include <fmt/format.h>

namespace collage {

using V = std::vector<int64_t>;

int64_t NormalAxis(NodeContext& node, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) node.Invalid(fmt::format("axis {} is out of range for rank {}", axis, rank));
  return axis < 0 ? axis + rank : axis;
}

Expr Filled(double value, const Shape& shape, DataType dtype) {
  Tensor tensor = Tensor::Empty(shape, dtype);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, value);
  return MakeConstant(tensor);
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

Expr Reversed(NodeContext& node, const Expr& x, int64_t axis) { return node.Op("reverse", {x}, {{"axis", axis}}); }

Expr Transpose(NodeContext& node, const Expr& x, const V& axes) { return node.Op("transpose", {x}, {{"axes", axes}}); }

}  // namespace collage
