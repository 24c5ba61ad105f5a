// infer_call.cc: types of calls and projections, which wait until the types that they need are known.
#include <fmt/format.h>

#include "collage/ir/op.h"
#include "ir/types/inference.h"

namespace collage {

Type Inference::CallType(const CallNode& call) {
  if (const OpDef* op = call.op()) return OpCallType(call, *op);
  Type callee = TypeOf(call.callee());
  if (callee->kind() == TypeKind::kIncomplete) {
    std::vector<Type> args;
    for (const Expr& arg : call.args()) args.push_back(TypeOf(arg));
    const Type result = TypeSolver::Fresh();
    if (!solver_.Fit(callee, FuncType(std::move(args), result)))
      FailInference(call, "this function is called with itself");
    return result;
  }
  const FuncTypeNode* type = AsFuncType(callee);
  if (type == nullptr) FailInference(call, "calls something that is no function: " + TextOf(callee));
  if (type->args().size() != call.args().size()) {
    FailInference(call, fmt::format("a function of {} parameters is called with {} arguments", type->args().size(),
                                    call.args().size()));
  }
  if (!type->type_params().empty()) {
    callee = TypeSolver::Instantiate(*type, call.type_args());
    type = AsFuncType(callee);
  }
  for (size_t i = 0; i < call.args().size(); ++i) {
    const Type arg = TypeOf(call.args()[i]);
    if (solver_.Fit(type->args()[i], arg)) continue;
    FailInference(call,
                  fmt::format("argument {} has type {}, the parameter {}", i, TextOf(arg), TextOf(type->args()[i])));
  }
  return type->result();
}

Type Inference::OpCallType(const CallNode& call, const OpDef& op) {
  const auto least = op.min_args < 0 ? op.args.size() : static_cast<size_t>(op.min_args);
  if (call.args().size() < least || call.args().size() > op.args.size()) {
    const std::string wanted =
        least == op.args.size() ? std::to_string(least) : fmt::format("{} to {}", least, op.args.size());
    FailInference(call, fmt::format("'{}' expects {} arguments, got {}", op.name, wanted, call.args().size()));
  }
  if (const TypeNode* hole = OpenArg(call)) return Defer(call, hole);
  return Apply(call, op);
}

const TypeNode* Inference::OpenArg(const CallNode& call) const {
  for (const Expr& arg : call.args()) {
    if (const TypeNode* hole = solver_.FirstHole(TypeOf(arg))) return hole;
  }
  return nullptr;
}

Type Inference::Apply(const CallNode& call, const OpDef& op) const {
  std::vector<Type> args;
  for (const Expr& arg : call.args()) args.push_back(TypeOf(arg));
  const Result<Type> type = op.relation({args, call.attrs()});
  if (type.ok()) return *type;
  std::string types;
  for (const Type& arg : args) types += (types.empty() ? "" : ", ") + ToString(arg);
  FailInference(call, fmt::format("'{}' {} (arguments: {})", op.name, type.reason().text, types));
}

Type Inference::ConstructorType(const ConstructorNode& constructor) const {
  const TypeData& data = Definition(constructor);
  std::vector<Type> args(data.type_vars.begin(), data.type_vars.end());
  return FuncType(constructor.inputs(), std::make_shared<TypeCallNode>(constructor.belongs_to(), std::move(args)),
                  data.type_vars);
}

Type Inference::ProjectionType(const TupleGetItemNode& item) {
  const Type type = TypeOf(item.tuple());
  if (type->kind() == TypeKind::kIncomplete) return Defer(item, type.get());
  const TupleTypeNode* tuple = AsTupleType(type);
  if (tuple == nullptr || item.index() < 0 || item.index() >= static_cast<int>(tuple->fields().size())) {
    FailInference(item, fmt::format("field {} of {} does not exist", item.index(), ToString(type)));
  }
  return tuple->fields()[item.index()];
}

// ---- what must wait ----

Type Inference::Defer(const ExprNode& expr, const TypeNode* hole) {
  waiting_[hole].push_back(&expr);
  auto [it, is_new] = deferred_.emplace(&expr, nullptr);
  if (is_new) {
    it->second = TypeSolver::Fresh();
    deferred_order_.push_back(&expr);
  }
  return it->second;
}

void Inference::Retry() {
  for (std::vector<const TypeNode*> solved = solver_.TakeSolved(); !solved.empty(); solved = solver_.TakeSolved()) {
    for (const TypeNode* hole : solved) {
      auto it = waiting_.find(hole);
      if (it == waiting_.end()) continue;
      const std::vector<const ExprNode*> exprs = std::move(it->second);
      waiting_.erase(it);
      for (const ExprNode* expr : exprs) RetryOne(*expr);
    }
  }
}

void Inference::RetryOne(const ExprNode& expr) {
  const Type wanted = deferred_.at(&expr);
  const bool is_call = expr.kind() == ExprKind::kCall;
  const auto* call = is_call ? static_cast<const CallNode*>(&expr) : nullptr;
  const Type type =
      is_call ? OpCallType(*call, *call->op()) : ProjectionType(static_cast<const TupleGetItemNode&>(expr));
  if (type == wanted) return;  // waits for another hole
  deferred_[&expr] = nullptr;
  if (!solver_.Fit(wanted, type)) {
    FailInference(expr, fmt::format("has type {}, but is used as {}", TextOf(type), TextOf(wanted)));
  }
}

void Inference::FinishDeferred() const {
  for (const ExprNode* expr : deferred_order_) {
    if (!deferred_.at(expr)) continue;
    // It mostly waits for a parameter, which the message names.
    for (const ExprNode* open : open_) {
      if (binders_.params.Contains(open)) Finish(*open);
    }
    Finish(*expr);
  }
}

}  // namespace collage
