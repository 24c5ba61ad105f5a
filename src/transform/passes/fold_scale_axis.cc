// fold_scale_axis.cc: y = conv(x, w) * s + b becomes y = conv(x, w * s) + b: a factor per output channel costs nothing
// in the weights. Also through additions: (conv + a) * s = conv' + a * s.
#include <cmath>
#include <unordered_map>

#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "ir/eval/evaluate.h"
#include "transform/passes.h"

namespace collage {
namespace {

using Uses = std::unordered_map<const ExprNode*, int>;

Expr Multiply(const Expr& a, const Expr& b, const ExprNode& origin) {
  const ConstantNode* x = As<ConstantNode>(a);
  const ConstantNode* y = As<ConstantNode>(b);
  const Expr call = MakeCall("multiply", {a, b});
  call->share_span(origin);
  InferType(call);
  if (x == nullptr || y == nullptr) return call;
  const std::vector<Type> types{a->checked_type(), b->checked_type()};
  const std::vector<Tensor> inputs{x->value(), y->value()};
  const CallNode* node = As<CallNode>(call);
  return MakeConstant(EvaluateOp(*node->op(), node->attrs(), types, inputs)[0]);
}

/// Axes of output channels in the result and in the weight of an anchor.
struct Anchor {
  int result_axis;
  int weight_axis;
};

/// False for operators that are no anchor with constant weights.
bool FindAnchor(const CallNode& call, Anchor* anchor) {
  const std::string& name = call.op()->name;
  if (As<ConstantNode>(call.args().size() == 2 ? call.args()[1] : nullptr) == nullptr) return false;
  if (name == "nn.dense") {
    *anchor = {1, 0};
    return true;
  }
  if (name.starts_with("nn.conv") && !name.ends_with("_transpose")) {
    *anchor = {1, 0};
    return true;
  }
  if (name.starts_with("nn.conv") && call.attrs().Int("groups") == 1) {
    *anchor = {1, 1};
    return true;
  }
  return false;
}

/// The factor per channel when constant `factor`, broadcast against `rank` dimensions, varies along `axis` only: a
/// vector of one or `channels` elements. Undefined tensor otherwise.
Tensor ChannelFactor(const Tensor& factor, int rank, int axis, int64_t channels) {
  for (int i = 0; i < factor.rank(); ++i) {
    const int64_t size = factor.shape()[i];
    const bool is_axis = i + rank - factor.rank() == axis;
    if (size != 1 && !(is_axis && size == channels)) return {};
  }
  if (factor.rank() > rank) return {};
  return factor.Reshaped({factor.num_elements()});
}

class Folder {
 public:
  explicit Folder(const Function& function) {
    PostOrder(function, [&](const Expr& expr) {
      for (const Expr& child : Children(expr)) ++uses_[child.get()];
    });
  }

  Expr operator()(const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr || call->op()->name != "multiply") return expr;
    for (int side : {0, 1}) {
      const ConstantNode* factor = As<ConstantNode>(call->args()[1 - side]);
      if (factor == nullptr) continue;
      const Expr folded = Scale(call->args()[side], factor->value());
      if (!folded || !TypeEqual(InferType(folded), InferType(expr))) continue;
      return folded;
    }
    return expr;
  }

 private:
  /// `expr` times `factor`, with the factor moved into weights; null when it cannot be.
  Expr Scale(const Expr& expr, const Tensor& factor) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr || uses_[expr.get()] != 1) return nullptr;
    Anchor anchor{};
    if (FindAnchor(*call, &anchor)) return ScaleWeight(expr, anchor, factor);
    if (call->op()->name != "add") return nullptr;
    for (size_t side : {size_t{0}, size_t{1}}) {
      const Expr& other = call->args()[1 - side];
      if (As<ConstantNode>(other) == nullptr) continue;
      const Expr scaled = Scale(call->args()[side], factor);
      if (!scaled) continue;
      const Expr result = MakeCall("add", {scaled, Multiply(other, MakeConstant(factor), *expr)});
      result->share_span(*expr);
      return result;
    }
    return nullptr;
  }

  static Expr ScaleWeight(const Expr& expr, const Anchor& anchor, const Tensor& factor) {
    const CallNode& call = *As<CallNode>(expr);
    const TensorTypeNode* type = AsTensorType(InferType(expr));
    const Tensor vector =
        ChannelFactor(factor, type->rank(), anchor.result_axis, type->shape()[anchor.result_axis].size());
    if (!vector.defined()) return nullptr;
    const Expr& weight = call.args()[1];
    Shape shape(static_cast<size_t>(AsTensorType(InferType(weight))->rank()), 1);
    shape[anchor.weight_axis] = vector.num_elements();
    const Expr scaled = Multiply(weight, MakeConstant(vector.Reshaped(shape)), call);
    const Expr result = MakeCall(call.callee(), {call.args()[0], scaled}, call.attrs());
    result->share_span(call);
    return result;
  }

  Uses uses_;
};

}  // namespace

Function FoldScaleAxis(const Function& function) {
  // A fold makes new nodes, whose uses only the next round knows; factors one behind the other take a round each.
  Function result = function;
  for (Function before; before != result;) {
    before = result;
    Folder folder(before);
    result = AsShared<FunctionNode>(Rewrite(before, [&](const Expr& expr) { return folder(expr); }));
  }
  return result;
}

}  // namespace collage
