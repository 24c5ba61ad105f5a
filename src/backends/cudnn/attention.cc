// attention.cc: softmax of scaled scores, with a mask or without, as weights of values.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "backends/cudnn/anchors.h"
#include "backends/fused_matches/activation.h"
#include "collage/ir/op.h"

namespace collage::cudnn {
namespace {

using matches::ScalarValue;

/// The call of `op` that `expr` is, behind reshapes; null where it is something else.
Call CallBehindReshapes(Expr expr, std::string_view op) {
  for (;;) {
    Call call = AsShared<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr) return nullptr;
    if (call->op()->name == op) return call;
    if (!call->op()->is_reshape) return nullptr;
    expr = call->args()[0];
  }
}

/// Scores as softmax reads them: `scale` times the product of queries and keys, plus `mask`.
struct Scores {
  Call product;  ///< null where there is none
  double scale = 1;
  Expr scaled;  ///< the product with its scale, to which the mask is added
  Expr mask;    ///< null without one
};

/// A product of matrices, times a number or not.
Scores ScaledScores(const Expr& expr) {
  Scores scores{.scaled = expr};
  Expr inner = expr;
  for (;;) {
    const CallNode* call = As<CallNode>(inner);
    if (call == nullptr || call->op() == nullptr) return scores;
    const std::string& name = call->op()->name;
    if (name == "multiply" || name == "divide") {
      const size_t which = name == "divide" || ScalarValue(call->args()[1]) ? 1 : 0;
      const auto factor = ScalarValue(call->args()[which]);
      if (!factor) throw Refusal{"scales scores by a number only"};
      scores.scale = name == "divide" ? 1 / *factor : *factor;
      inner = call->args()[1 - which];
      break;
    }
    if (!call->op()->is_reshape) break;
    inner = call->args()[0];
  }
  scores.product = CallBehindReshapes(inner, "nn.batch_matmul");
  return scores;
}

Scores ScoresOf(const Expr& expr) {
  const Call sum = CallBehindReshapes(expr, "add");
  if (sum == nullptr) return ScaledScores(expr);
  for (const size_t which : {0, 1}) {
    Scores scores = ScaledScores(sum->args()[which]);
    if (scores.product == nullptr) continue;
    if (ShapeOf(sum) != ShapeOf(scores.scaled)) throw Refusal{"adds a mask to all scores only"};
    scores.mask = sum->args()[1 - which];
    return scores;
  }
  return {};
}

/// [B * H, rows, columns] as [B, H, rows, columns].
int AddHeads(Reading& reading, const Operand& operand, int64_t batch) {
  if (operand.layout != Layout::kPlain) throw Refusal{"multiplies plain matrices only"};
  const Shape dims{batch, operand.shape[0] / batch, operand.shape[1], operand.shape[2]};
  return reading.Add(operand, dims, StridesOf(dims, /*channels_last=*/false));
}

/// A mask that is added to scores of the shape `scored`, [B, H, rows, columns] or [B * H, rows, columns].
int AddMask(Reading& reading, const Operand& mask, const Shape& scored) {
  if (mask.layout != Layout::kPlain) throw Refusal{"adds plain masks only"};
  if (mask.shape.empty() || mask.shape.back() != scored.back()) throw Refusal{"adds a number for each key only"};
  Shape dims = mask.shape;
  dims.insert(dims.begin(), scored.size() - dims.size(), 1);
  if (dims.size() == 3) dims.insert(dims.begin(), 1);
  return reading.Add(mask, dims, StridesOf(dims, /*channels_last=*/false));
}

void RequireRows(const Call& softmax) {
  const auto rank = static_cast<int64_t>(ShapeOf(softmax).size());
  const int64_t axis = softmax->attrs().Int("axis");
  if ((axis < 0 ? axis + rank : axis) != rank - 1) throw Refusal{"normalises the last axis only"};
}

/// Whether `call` multiplies matrices that lie as [batch, sequence, depth].
bool HasUsualOrder(const CallNode& call, bool is_b_transposed) {
  return !call.attrs().Bool("transpose_a") && call.attrs().Bool("transpose_b") == is_b_transposed;
}

/// How many samples the scores of `product`, [B * H, rows, columns], are of where a mask is added to them as `scored`;
/// 1 where heads and samples are one dimension.
int64_t BatchOf(const Shape& scored, const Shape& product) {
  if (scored == product) return 1;
  const bool are_heads = scored.size() == 4 && scored[0] * scored[1] == product[0] && scored[2] == product[1];
  if (!are_heads) throw Refusal{"adds a mask to [batch, heads, queries, keys] only, got " + ToString(scored)};
  return scored[0];
}

}  // namespace

Anchor ReadAttention(Reading& reading, size_t number) {
  const Call& softmax = reading.calls()[number];
  RequireRows(softmax);
  const Call& last = reading.calls().back();
  const Scores scores = ScoresOf(softmax->args()[0]);
  const bool is_attention = scores.product != nullptr && last->op()->name == "nn.batch_matmul" &&
                            CallBehindReshapes(last->args()[0], "nn.softmax") == softmax;
  if (!is_attention) throw Refusal{"has softmax within attention only"};
  if (!HasUsualOrder(*scores.product, true) || !HasUsualOrder(*last, false)) {
    throw Refusal{"attends to keys and values that lie as [batch, sequence, depth] only"};
  }
  const Shape scored = ShapeOf(scores.scaled), weighed = ShapeOf(last->args()[0]);
  if (ShapeOf(softmax).back() != weighed.back() || scored.back() != weighed.back()) {
    throw Refusal{"reshapes scores by whole rows only"};
  }
  const Operand q = reading.OperandOf(scores.product->args()[0]), k = reading.OperandOf(scores.product->args()[1]);
  const Operand v = reading.OperandOf(last->args()[1]);
  if (q.shape[0] != k.shape[0] || q.shape[0] != v.shape[0]) throw Refusal{"attends with one batch size only"};
  const int64_t batch = scores.mask == nullptr ? 1 : BatchOf(scored, ShapeOf(scores.product));
  Operation operation{.kind = Kind::kAttention};
  operation.x = AddHeads(reading, q, batch);
  operation.b = AddHeads(reading, k, batch);
  operation.c = AddHeads(reading, v, batch);
  operation.d = reading.AddNumber(static_cast<float>(scores.scale), 4);
  if (scores.mask != nullptr) {
    operation.e = AddMask(reading, reading.OperandOf(scores.mask), scored);
    operation.sums = reading.AddScratch({batch, q.shape[0] / batch, q.shape[1], 1});
  }
  const Shape dims{batch, q.shape[0] / batch, q.shape[1], v.shape[2]};
  operation.y = reading.AddInside(dims, StridesOf(dims, /*channels_last=*/false));
  reading.graph().operations.push_back(operation);
  return {.call = reading.calls().size() - 1, .y = operation.y};
}

}  // namespace collage::cudnn
