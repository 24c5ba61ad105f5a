// legalize.cc: operators that few toolchains know become others that all know; one row each.
#include <algorithm>
#include <array>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "support/edit_distance.h"
#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

using Ints = std::vector<int64_t>;

const TensorTypeNode* ArgType(const CallNode& call, size_t index) {
  return AsTensorType(InferType(call.args()[index]));
}

/// matmul → dense, with the transposes that it needs.
Expr MatmulToDense(const CallNode& call) {
  Expr a = call.args()[0];
  Expr b = call.args()[1];
  if (call.attrs().Bool("transpose_a")) a = TypedCall("transpose", {a}, call, {{"axes", Ints{1, 0}}});
  if (!call.attrs().Bool("transpose_b")) b = TypedCall("transpose", {b}, call, {{"axes", Ints{1, 0}}});
  return TypedCall("nn.dense", {a, b}, call, {{"out_dtype", call.attrs().String("out_dtype")}});
}

/// batch_flatten → reshape; the first dimension may be unknown.
Expr FlattenToReshape(const CallNode& call) {
  const TensorTypeNode* type = ArgType(call, 0);
  if (type->rank() == 0) return nullptr;
  return TypedCall("reshape", {call.args()[0]}, call, {{"newshape", Ints{0, -1}}});
}

/// A global pool → a reduction of all but the first two dimensions.
Expr PoolToReduction(const CallNode& call, const char* reduction) {
  if (!call.attrs().StringOr("layout", "NC").starts_with("NC")) return nullptr;
  Ints axes;
  for (int axis = 2; axis < ArgType(call, 0)->rank(); ++axis) axes.push_back(axis);
  return TypedCall(reduction, {call.args()[0]}, call, {{"axis", axes}, {"keepdims", true}});
}

/// log_softmax → x - max - log(sum(exp(x - max))).
Expr UnpackLogSoftmax(const CallNode& call) {
  const Attrs over{{"axis", Ints{call.attrs().Int("axis")}}, {"keepdims", true}};
  const Expr& x = call.args()[0];
  const Expr shifted = TypedCall("subtract", {x, TypedCall("max", {x}, call, over)}, call);
  const Expr sum = TypedCall("sum", {TypedCall("exp", {shifted}, call)}, call, over);
  return TypedCall("subtract", {shifted, TypedCall("log", {sum}, call)}, call);
}

/// conv1d → conv2d over a height of 1.
Expr Conv1dToConv2d(const CallNode& call) {
  const Attrs& attrs = call.attrs();
  if (attrs.String("data_layout") != "NCW" || attrs.String("kernel_layout") != "OIW") return nullptr;
  const auto raise = [&](const Expr& expr) {
    return TypedCall("expand_dims", {expr}, call, {{"axis", 2}, {"num_newaxis", 1}});
  };
  const Ints padding = attrs.Ints("padding");
  const Attrs raised{{"strides", Ints{1, attrs.Ints("strides")[0]}},
                     {"padding", Ints{0, padding[0], 0, padding.back()}},
                     {"dilation", Ints{1, attrs.Ints("dilation")[0]}},
                     {"groups", attrs.Get("groups")},
                     {"out_dtype", attrs.Get("out_dtype")}};
  const Expr conv = TypedCall("nn.conv2d", {raise(call.args()[0]), raise(call.args()[1])}, call, raised);
  return TypedCall("squeeze", {conv}, call, {{"axis", Ints{2}}});
}

struct Rule {
  const char* op;
  Expr (*rewrite)(const CallNode& call);  ///< null when this call cannot be rewritten
};

constexpr std::array kRules{
    Rule{"nn.batch_flatten", FlattenToReshape},
    Rule{"nn.conv1d", Conv1dToConv2d},
    Rule{"nn.global_avg_pool1d", [](const CallNode& call) { return PoolToReduction(call, "mean"); }},
    Rule{"nn.global_avg_pool2d", [](const CallNode& call) { return PoolToReduction(call, "mean"); }},
    Rule{"nn.global_avg_pool3d", [](const CallNode& call) { return PoolToReduction(call, "mean"); }},
    Rule{"nn.global_max_pool1d", [](const CallNode& call) { return PoolToReduction(call, "max"); }},
    Rule{"nn.global_max_pool2d", [](const CallNode& call) { return PoolToReduction(call, "max"); }},
    Rule{"nn.global_max_pool3d", [](const CallNode& call) { return PoolToReduction(call, "max"); }},
    Rule{"nn.log_softmax", UnpackLogSoftmax},
    Rule{"nn.matmul", MatmulToDense},
};

/// The rules for the operators that `text` lists by comma; all for an empty text.
std::vector<const Rule*> ChooseRules(const std::string& text) {
  std::vector<const Rule*> rules;
  std::vector<std::string> names;
  for (const Rule& rule : kRules) {
    names.emplace_back(rule.op);
    if (text.empty()) rules.push_back(&rule);
  }
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, comma - at);
    const auto rule = std::find_if(kRules.begin(), kRules.end(), [&](const Rule& other) { return other.op == name; });
    if (rule == kRules.end()) {
      throw Error(ErrorCategory::kInput, "Legalize has no rule for operator '" + name + "'", "relay.Legalize.operators",
                  DidYouMean(name, names));
    }
    rules.push_back(rule);
    at = comma + 1;
  }
  return rules;
}

}  // namespace

Function Legalize(const Function& function, const IRModule&, const PassContext& context) {
  const std::vector<const Rule*> rules = ChooseRules(context.ConfigString("relay.Legalize.operators"));
  return AsShared<FunctionNode>(
      RewriteNodes(function, IsOrdinary, [&](const Expr&, const Expr& expr, const Rewritten&) -> Expr {
        const OpDef* op = CalledOp(expr);
        if (op == nullptr) return expr;
        const auto rule =
            std::find_if(rules.begin(), rules.end(), [&](const Rule* other) { return other->op == op->name; });
        if (rule == rules.end()) return expr;
        const Expr result = (*rule)->rewrite(*As<CallNode>(expr));
        return result ? result : expr;
      }));
}

}  // namespace collage
