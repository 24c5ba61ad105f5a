// products.cc: products of matrices.
#include <fmt/format.h>

#include <algorithm>

#include "backends/cudnn/anchors.h"
#include "collage/ir/op.h"

namespace collage::cudnn {
namespace {

/// `shape` of a batch of matrices as [batch, rows, columns].
Shape AsBatch(Shape shape) {
  if (shape.size() == 2) shape.insert(shape.begin(), 1);
  return shape;
}

int AddMatrix(Reading& reading, const Operand& operand, bool is_transposed) {
  if (operand.layout != Layout::kPlain) throw Refusal{"multiplies plain matrices only"};
  Shape dims = AsBatch(operand.shape);
  Shape strides = StridesOf(dims, /*channels_last=*/false);
  if (is_transposed) {
    std::swap(dims[1], dims[2]);
    std::swap(strides[1], strides[2]);
  }
  return reading.Add(operand, dims, strides);
}

}  // namespace

/// A product with weights [N, K] is a convolution of one pixel, for which the library has algorithms in float32.
Anchor ReadDense(Reading& reading, size_t number) {
  const Call& call = reading.calls()[number];
  const Operand data = reading.OperandOf(call->args()[0]);
  const Operand weights = reading.OperandOf(call->args()[1]);
  if (weights.dtype != data.dtype) throw Refusal{"multiplies values of one type only"};
  if (data.layout != Layout::kPlain) throw Refusal{"multiplies plain matrices only"};
  const int64_t k = data.shape.back(), n = weights.shape[0], m = NumElements(data.shape) / k;
  const Shape x{m, k, 1, 1}, w{n, k, 1, 1}, y{m, n, 1, 1};
  Operation operation{.kind = Kind::kConvolution};
  operation.window = {.kernel = {}, .strides = {1, 1}, .dilation = {1, 1}, .before = {0, 0}, .after = {0, 0}};
  operation.x = reading.Add(data, x, StridesOf(x, /*channels_last=*/true));
  operation.b = reading.Add(weights, w, StridesOf(w, /*channels_last=*/true));
  operation.y = reading.AddInside(y, StridesOf(y, /*channels_last=*/true));
  reading.graph().operations.push_back(operation);
  return {.call = number, .y = operation.y, .fuses = true, .wants_bias = true};
}

Anchor ReadProduct(Reading& reading, size_t number) {
  const Call& call = reading.calls()[number];
  const Operand a = reading.OperandOf(call->args()[0]), b = reading.OperandOf(call->args()[1]);
  if (a.dtype != b.dtype) throw Refusal{"multiplies values of one type only"};
  Operation operation{.kind = Kind::kProduct};
  operation.x = AddMatrix(reading, a, call->attrs().Bool("transpose_a"));
  operation.b = AddMatrix(reading, b, call->attrs().Bool("transpose_b"));
  const Shape dims = AsBatch(ShapeOf(call));
  operation.y = reading.AddInside(dims, StridesOf(dims, /*channels_last=*/false));
  reading.graph().operations.push_back(operation);
  return {.call = number, .y = operation.y, .channel = 2, .fuses = true};
}

}  // namespace collage::cudnn
