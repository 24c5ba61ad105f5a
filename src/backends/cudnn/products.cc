// products.cc: products of matrices, attention and layer normalisation.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backends/cudnn/anchors.h"
#include "backends/fused_matches/activation.h"
#include "collage/ir/op.h"

namespace collage::cudnn {
namespace {

using matches::ScalarValue;

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

/// The call of `op` that `expr` is, behind reshapes; null where it is something else.
const CallNode* CallBehindReshapes(Expr expr, std::string_view op) {
  for (;;) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr) return nullptr;
    if (call->op()->name == op) return call;
    if (!call->op()->is_reshape) return nullptr;
    expr = call->args()[0];
  }
}

/// The factor that `expr`, a product with a number or without, has, and what it multiplies.
std::pair<double, Expr> ScaleOf(Expr expr) {
  for (;;) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr) return {1, expr};
    const std::string& name = call->op()->name;
    if (name == "multiply" || name == "divide") {
      const size_t which = name == "divide" || ScalarValue(call->args()[1]) ? 1 : 0;
      const auto factor = ScalarValue(call->args()[which]);
      if (!factor) throw Refusal{"scales scores by a number only"};
      return {name == "divide" ? 1 / *factor : *factor, call->args()[1 - which]};
    }
    if (!call->op()->is_reshape) return {1, expr};
    expr = call->args()[0];
  }
}

/// [B, rows, columns] as heads of one sample: [1, B, rows, columns].
int AddHeads(Reading& reading, const Operand& operand) {
  if (operand.layout != Layout::kPlain) throw Refusal{"multiplies plain matrices only"};
  Shape dims = operand.shape;
  dims.insert(dims.begin(), 1);
  return reading.Add(operand, dims, StridesOf(dims, /*channels_last=*/false));
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

Anchor ReadLayerNorm(Reading& reading, size_t number) {
  const Call& call = reading.calls()[number];
  const Operand data = reading.OperandOf(call->args()[0]);
  const auto rank = static_cast<int64_t>(data.shape.size());
  const int64_t axis = call->attrs().Int("axis");
  if ((axis < 0 ? axis + rank : axis) != rank - 1) throw Refusal{"normalises the last axis only"};
  if (!call->attrs().Bool("scale") || !call->attrs().Bool("center")) throw Refusal{"expects scale and shift"};
  if (data.layout != Layout::kPlain) throw Refusal{"normalises plain tensors only"};
  const int64_t columns = data.shape.back();
  const Shape x{NumElements(data.shape) / columns, columns, 1, 1}, vector{1, columns, 1, 1};
  const auto add_vector = [&](const Expr& expr) {
    const Operand operand = reading.OperandOf(expr);
    if (operand.input >= 0) throw Refusal{"takes constant scales and shifts only"};
    return reading.AddConstant(operand.constant.Cast(kFloat32), vector, StridesOf(vector, /*channels_last=*/false));
  };
  Operation operation{.kind = Kind::kLayerNorm};
  operation.x = reading.Add(data, x, StridesOf(x, /*channels_last=*/false));
  operation.b = add_vector(call->args()[1]);
  operation.c = add_vector(call->args()[2]);
  operation.d = reading.AddNumber(static_cast<float>(call->attrs().Double("epsilon")), x.size());
  operation.y = reading.AddInside(x, StridesOf(x, /*channels_last=*/false));
  reading.graph().operations.push_back(operation);
  return {.call = number, .y = operation.y};
}

Anchor ReadAttention(Reading& reading, size_t number) {
  const Call& softmax = reading.calls()[number];
  const auto rank = static_cast<int64_t>(ShapeOf(softmax).size());
  const int64_t axis = softmax->attrs().Int("axis");
  if ((axis < 0 ? axis + rank : axis) != rank - 1) throw Refusal{"normalises the last axis only"};
  const Call& last = reading.calls().back();
  const auto [scale, scores] = ScaleOf(softmax->args()[0]);
  const CallNode* first = CallBehindReshapes(scores, "nn.batch_matmul");
  const bool is_attention = first != nullptr && last->op()->name == "nn.batch_matmul" &&
                            CallBehindReshapes(last->args()[0], "nn.softmax") == softmax.get();
  if (!is_attention) throw Refusal{"has softmax within attention only"};
  const auto has_usual_order = [](const CallNode& call, bool is_b_transposed) {
    return !call.attrs().Bool("transpose_a") && call.attrs().Bool("transpose_b") == is_b_transposed;
  };
  if (!has_usual_order(*first, true) || !has_usual_order(*last, false)) {
    throw Refusal{"attends to keys and values that lie as [batch, sequence, depth] only"};
  }
  const Shape scored = ShapeOf(scores), weighed = ShapeOf(last->args()[0]);
  if (ShapeOf(softmax).back() != weighed.back() || scored.back() != weighed.back()) {
    throw Refusal{"reshapes scores by whole rows only"};
  }
  const Operand q = reading.OperandOf(first->args()[0]), k = reading.OperandOf(first->args()[1]);
  const Operand v = reading.OperandOf(last->args()[1]);
  if (q.shape[0] != k.shape[0] || q.shape[0] != v.shape[0]) throw Refusal{"attends with one batch size only"};
  Operation operation{.kind = Kind::kAttention};
  operation.x = AddHeads(reading, q);
  operation.b = AddHeads(reading, k);
  operation.c = AddHeads(reading, v);
  operation.d = reading.AddNumber(static_cast<float>(scale), 4);
  Shape dims = ShapeOf(last);
  dims.insert(dims.begin(), 1);
  operation.y = reading.AddInside(dims, StridesOf(dims, /*channels_last=*/false));
  reading.graph().operations.push_back(operation);
  return {.call = reading.calls().size() - 1, .y = operation.y};
}

}  // namespace collage::cudnn
