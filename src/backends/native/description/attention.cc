// attention.cc: from the last product up to the softmax, and from that up to the first.
#include "backends/native/description/attention.h"

#include <fmt/format.h>

#include <optional>

#include "backends/native/operators.h"
#include "collage/ir/visitor.h"

namespace collage::native {
namespace {

const CallNode* AsOp(const Expr& expr) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr ? call : nullptr;
}

/// Whether `type` holds floats that float32 holds, one for each element of [B, M, N], in rows of N.
bool IsLike(const Type& type, const Shape& like) {
  const TensorTypeNode* tensor = AsTensorType(type);
  if (tensor == nullptr || !tensor->is_static() || !tensor->dtype().is_floating() || tensor->dtype().bits > 32) {
    return false;
  }
  const Shape shape = tensor->static_shape();
  return !shape.empty() && shape.back() == like[2] && NumElements(shape) == NumElements(like);
}

/// Whether the elements of the result lie in memory in the order of those that they are made from.
bool KeepsOrder(const OpDef& op) { return KeepsPlaces(op) || op.is_reshape; }

/// The argument of `call` that `scores` is in; none for those whose results need not be minus infinity where that
/// argument was.
std::optional<size_t> CarrierOf(const CallNode& call, const Expr& scores) {
  size_t carrier = 0;
  for (size_t i = 0; i < call.args().size(); ++i) {
    PostOrder(call.args()[i], [&](const Expr& expr) {
      if (expr == scores) carrier = i;
    });
  }
  const std::string& name = call.op()->name;
  const bool carries = name == "add" || name == "subtract" || name == "multiply" || name == "tanh" ||
                       (name == "divide" && carrier == 0) || (name == "where" && carrier > 0) || call.op()->is_reshape;
  return carries ? std::optional(carrier) : std::nullopt;
}

}  // namespace

bool MasksKeys(const Attention& attention) {
  bool has_mask = false;
  for (Expr expr = attention.logits(); expr != attention.scores;) {
    const CallNode& call = *As<CallNode>(expr);
    const std::optional<size_t> carrier = CarrierOf(call, attention.scores);
    if (!carrier) return false;
    const std::string& name = call.op()->name;
    has_mask = has_mask || name == "add" || name == "subtract" || name == "where";
    expr = call.args()[*carrier];
  }
  return has_mask;
}

AttentionFinder::AttentionFinder(const Expr& root) {
  ++uses_[root.get()];
  PostOrder(root, [&](const Expr& expr) {
    for (const Expr& child : Children(expr)) {
      if (child != nullptr) ++uses_[child.get()];
    }
  });
}

/// The call of `op` that all elements of `expr` are made from, each from the one in its place; null where there is no
/// such call, or several.
Expr AttentionFinder::SourceOf(const Expr& expr, std::string_view op, const Shape& like) const {
  const CallNode* call = AsOp(expr);
  if (call == nullptr || !IsLike(call->checked_type(), like) || uses_.at(expr.get()) != 1) return nullptr;
  if (call->op()->name == op) return expr;
  if (!KeepsOrder(*call->op())) return nullptr;
  Expr found;
  for (const Expr& arg : call->args()) {
    const Expr source = SourceOf(arg, op, like);
    if (source != nullptr && found != nullptr) return nullptr;
    if (source != nullptr) found = source;
  }
  return found;
}

Result<Attention> AttentionFinder::Find(const Expr& result) const {
  const auto no = [](std::string text) { return Reason{std::move(text), "native"}; };
  const CallNode* last = AsOp(result);
  if (last == nullptr || last->op()->name != "nn.batch_matmul") return no("does not end in a batch of products");
  const TensorTypeNode* weights = AsTensorType(last->args()[0]->checked_type());
  if (weights == nullptr || !weights->is_static() || weights->rank() != 3 || last->attrs().Bool("transpose_a")) {
    return no("the weights of its last product are not as the softmax gives them");
  }
  const Shape like = weights->static_shape();
  const Expr softmax = SourceOf(last->args()[0], "nn.softmax", like);
  if (softmax == nullptr) return no("its last product has no softmax on the left that nobody else reads");
  const CallNode& softmax_call = *As<CallNode>(softmax);
  const int64_t axis = softmax_call.attrs().Int("axis");
  const auto rank = static_cast<int64_t>(AsTensorType(softmax->checked_type())->rank());
  if ((axis < 0 ? axis + rank : axis) != rank - 1) return no(fmt::format("its softmax is along axis {}", axis));
  const Expr scores = SourceOf(softmax_call.args()[0], "nn.batch_matmul", like);
  if (scores == nullptr) return no("its softmax is of no product that nobody else reads");
  if (As<CallNode>(scores)->attrs().Bool("transpose_a")) return no("its first left matrices are transposed");
  const TensorTypeNode* made = AsTensorType(result->checked_type());
  const bool is_float = made != nullptr && made->is_static() && made->dtype().is_floating() && made->dtype().bits <= 32;
  if (!is_float || made->static_shape()[0] != like[0] || NumElements(made->static_shape()) * NumElements(like) == 0) {
    return no("its result is not of the size that the weights say");
  }
  return Attention{scores, softmax, result};
}

}  // namespace collage::native
