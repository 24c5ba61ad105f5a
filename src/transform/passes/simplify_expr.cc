// simplify_expr.cc: operators that do nothing vanish; a zero padding in front of a convolution becomes its own.
#include <algorithm>

#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "transform/passes.h"

namespace collage {
namespace {

const CallNode* AsOpCall(const Expr& expr, std::string_view name) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr && call->op()->name == name ? call : nullptr;
}

/// Whether `expr` is a constant whose elements all are `value`.
bool IsFilledWith(const Expr& expr, double value) {
  const ConstantNode* constant = As<ConstantNode>(expr);
  if (constant == nullptr || !constant->value().dtype().is_floating()) return false;
  for (int64_t i = 0; i < constant->value().num_elements(); ++i) {
    if (constant->value().At(i) != value) return false;
  }
  return constant->value().num_elements() > 0;
}

Expr DropIdentity(const Expr& expr, const CallNode& call) {
  const std::string& name = call.op()->name;
  const auto same_type = [&](const Expr& other) { return TypeEqual(InferType(expr), InferType(other)); };
  if (call.op()->is_reshape) {
    // Types that are equal say nothing where sizes are open.
    if (!AsTensorType(InferType(expr))->is_static()) return expr;
    const CallNode* inner = As<CallNode>(call.args()[0]);
    if (same_type(call.args()[0])) return call.args()[0];
    if (inner != nullptr && inner->op() != nullptr && inner->op()->is_reshape) {
      if (same_type(inner->args()[0])) return inner->args()[0];
      const Expr merged = MakeCall("reshape", {inner->args()[0]},
                                   {{"newshape", AsTensorType(InferType(expr))->static_shape()}, {"allowzero", true}});
      merged->share_span(*expr);
      return merged;
    }
    return expr;
  }
  if ((name == "cast" || name == "copy") && same_type(call.args()[0])) return call.args()[0];
  if (name == "transpose") {
    const std::vector<int64_t> axes = call.attrs().IsNone("axes") ? std::vector<int64_t>{} : call.attrs().Ints("axes");
    if (!axes.empty() && std::is_sorted(axes.begin(), axes.end())) return call.args()[0];
  }
  if ((name == "multiply" || name == "divide") && IsFilledWith(call.args()[1], 1) && same_type(call.args()[0]))
    return call.args()[0];
  if ((name == "add" || name == "subtract") && IsFilledWith(call.args()[1], 0) && same_type(call.args()[0]))
    return call.args()[0];
  return expr;
}

/// conv(pad(x, 0)) with spatial padding only → conv(x) with more padding.
Expr MergePadding(const Expr& expr, const CallNode& conv) {
  if (!conv.op()->name.starts_with("nn.conv") || conv.op()->name.ends_with("_transpose")) return expr;
  const CallNode* pad = AsOpCall(conv.args()[0], "nn.pad");
  if (pad == nullptr || pad->attrs().String("pad_mode") != "constant" || !IsFilledWith(pad->args()[1], 0)) return expr;
  const AttrValue::List& widths = *pad->attrs().Get("pad_width").as_list();
  const size_t rank = widths.size() - 2;
  std::vector<int64_t> padding = conv.attrs().Ints("padding");
  if (padding.size() == rank)
    padding.insert(padding.end(), padding.begin(), padding.begin() + static_cast<int64_t>(rank));
  if (padding.size() != 2 * rank) return expr;
  for (size_t i = 0; i < widths.size(); ++i) {
    const int64_t before = *(*widths[i].as_list())[0].as_int();
    const int64_t after = *(*widths[i].as_list())[1].as_int();
    if (i < 2 && (before != 0 || after != 0)) return expr;
    if (before < 0 || after < 0) return expr;
    if (i < 2) continue;
    padding[i - 2] += before;
    padding[i - 2 + rank] += after;
  }
  Attrs attrs = conv.attrs();
  attrs.Set("padding", padding);
  const Expr merged = MakeCall(conv.callee(), {pad->args()[0], conv.args()[1]}, std::move(attrs));
  merged->share_span(*expr);
  return merged;
}

}  // namespace

Function SimplifyExpr(const Function& function) {
  const Expr result = Rewrite(function, [](const Expr& expr) -> Expr {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr || call->args().empty()) return expr;
    const Expr simpler = DropIdentity(expr, *call);
    return simpler != expr ? simpler : MergePadding(expr, *call);
  });
  return AsShared<FunctionNode>(result);
}

}  // namespace collage
