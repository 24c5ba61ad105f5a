// describe.cc: what enters the builder, and what is made of its graphs.
#include "backends/onednn_graph/describe.h"

#include <algorithm>
#include <unordered_set>

#include "backends/onednn_graph/builder.h"
#include "backends/onednn_graph/operators.h"
#include "collage/ir/op.h"
#include "collage/ir/type.h"
#include "collage/ir/visitor.h"

namespace collage::onednn_graph {
namespace {

constexpr const char* kOrigin = "onednn_graph";

size_t NumTensors(const Type& type) { return FlattenTensorTypes(type).size(); }

bool IsReshape(const Expr& expr) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr && call->op()->is_reshape;
}

}  // namespace

Result<Description> Describe(const Function& function, const BoundaryLayouts& layouts) {
  try {
    Builder builder(&function);
    builder.ReadFunction(layouts, /*wildcards=*/false);
    return Description{std::move(builder.spec()), std::move(builder.constants())};
  } catch (const Refusal& refusal) {
    return Reason{refusal.text, kOrigin};
  }
}

Result<void> Supports(const CallNode& call) {
  if (call.op() == nullptr) return Reason{"calls no operator", kOrigin};
  if (call.op()->name == "transpose") return Reason{"computes transpositions behind products only", kOrigin};
  try {
    Builder builder(nullptr);
    Translate(builder, Call(Call(), &call));  // owned by the caller
    return {};
  } catch (const Refusal& refusal) {
    return Reason{refusal.text, kOrigin};
  }
}

Result<WholeDescription> DescribeWhole(const Function& function) {
  try {
    size_t num_inputs = 0;
    for (const Var& param : function->params()) {
      num_inputs += NumTensors(param->checked_type() ? param->checked_type() : param->type_annotation());
    }
    Builder builder(&function);
    builder.ReadFunction(PlainLayouts(num_inputs, NumTensors(function->body()->checked_type())), /*wildcards=*/true);
    return WholeDescription{builder.spec(), builder.calls()};
  } catch (const Refusal& refusal) {
    return Reason{refusal.text, kOrigin};
  }
}

std::vector<Expr> WithWhatIsBetween(const Function& function, const std::vector<Call>& calls) {
  std::unordered_set<const ExprNode*> inside;
  for (const Call& call : calls) inside.insert(call.get());
  const auto is_inside = [&](const Expr& expr) { return inside.contains(expr.get()); };
  std::vector<Expr> order;
  PostOrderInScope(function, [&](const Expr& expr) { order.push_back(expr); });
  // Nodes that the partition feeds through reshapes and tuples only, and nodes that feed it so.
  std::unordered_set<const ExprNode*> fed, feeding;
  for (const Expr& expr : order) {
    if (!IsReshape(expr) && As<TupleNode>(expr) == nullptr) continue;
    const std::vector<Expr> children = Children(expr);
    const bool is_fed =
        std::ranges::any_of(children, [&](const Expr& child) { return is_inside(child) || fed.contains(child.get()); });
    if (is_fed) fed.insert(expr.get());
  }
  for (auto expr = order.rbegin(); expr != order.rend(); ++expr) {
    if (!is_inside(*expr) && !feeding.contains(expr->get())) continue;
    for (const Expr& child : Children(*expr)) {
      if (fed.contains(child.get())) feeding.insert(child.get());
    }
  }
  std::vector<Expr> members;
  for (const Expr& expr : order) {
    if (is_inside(expr) || feeding.contains(expr.get())) members.push_back(expr);
  }
  return members;
}

}  // namespace collage::onednn_graph
