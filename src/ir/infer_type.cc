// infer_type.cc: forward inference, children before parents.
#include "collage/ir/infer_type.h"

#include <fmt/format.h>

#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"

namespace collage {
namespace {

[[noreturn]] void Fail(const ExprNode& expr, const std::string& message) {
  throw Error(ErrorCategory::kInput, message, expr.span().source);
}

Type OpCallType(const CallNode& call, const OpDef& op) {
  std::vector<Type> args;
  for (const Expr& arg : call.args()) args.push_back(arg->checked_type());
  const auto least = op.min_args < 0 ? op.args.size() : static_cast<size_t>(op.min_args);
  if (args.size() < least || args.size() > op.args.size()) {
    Fail(call, fmt::format("'{}' expects {} arguments, got {}", op.name, op.args.size(), args.size()));
  }
  const Result<Type> type = op.relation({args, call.attrs()});
  if (type.ok()) return *type;
  std::string types;
  for (const Type& arg : args) types += (types.empty() ? "" : ", ") + ToString(arg);
  Fail(call, fmt::format("'{}' {} (arguments: {})", op.name, type.reason().text, types));
}

Type CallType(const CallNode& call) {
  if (const OpDef* op = call.op()) return OpCallType(call, *op);
  const FuncTypeNode* type = AsFuncType(call.callee()->checked_type());
  if (type == nullptr) Fail(call, "calls something that is no function: " + ToString(call.callee()->checked_type()));
  if (type->args().size() != call.args().size()) {
    Fail(call, fmt::format("a function of {} parameters is called with {} arguments", type->args().size(),
                           call.args().size()));
  }
  for (size_t i = 0; i < call.args().size(); ++i) {
    if (!TypeEqual(type->args()[i], call.args()[i]->checked_type())) {
      Fail(call, fmt::format("argument {} has type {}, the parameter {}", i, ToString(call.args()[i]->checked_type()),
                             ToString(type->args()[i])));
    }
  }
  return type->result();
}

Type FunctionType(const FunctionNode& function) {
  std::vector<Type> params;
  for (const Var& param : function.params()) {
    if (!param->checked_type()) param->set_checked_type(param->type_annotation());
    params.push_back(param->checked_type());
    if (!params.back()) Fail(function, fmt::format("parameter '%{}' has no type", param->name()));
  }
  const Type& result = function.body()->checked_type();
  if (function.result_type() && !TypeEqual(function.result_type(), result)) {
    Fail(function, fmt::format("the function's result has type {}, not {}", ToString(result),
                               ToString(function.result_type())));
  }
  return FuncType(std::move(params), result, function.type_params());
}

Type ComputeType(const Expr& expr) {
  switch (expr->kind()) {
    case ExprKind::kVar: return static_cast<const VarNode&>(*expr).type_annotation();
    case ExprKind::kConstant: {
      const Tensor& value = static_cast<const ConstantNode&>(*expr).value();
      return TensorType(value.shape(), value.dtype());
    }
    case ExprKind::kTuple: {
      std::vector<Type> fields;
      for (const Expr& field : static_cast<const TupleNode&>(*expr).fields()) fields.push_back(field->checked_type());
      return TupleType(std::move(fields));
    }
    case ExprKind::kTupleGetItem: {
      const auto& item = static_cast<const TupleGetItemNode&>(*expr);
      const TupleTypeNode* tuple = AsTupleType(item.tuple()->checked_type());
      if (tuple == nullptr || item.index() < 0 || item.index() >= static_cast<int>(tuple->fields().size())) {
        Fail(*expr, fmt::format("field {} of {} does not exist", item.index(), ToString(item.tuple()->checked_type())));
      }
      return tuple->fields()[static_cast<size_t>(item.index())];
    }
    case ExprKind::kCall: return CallType(static_cast<const CallNode&>(*expr));
    case ExprKind::kFunction: return FunctionType(static_cast<const FunctionNode&>(*expr));
    case ExprKind::kLet: return static_cast<const LetNode&>(*expr).body()->checked_type();
    case ExprKind::kIf: {
      const auto& branch = static_cast<const IfNode&>(*expr);
      if (!TypeEqual(branch.then_branch()->checked_type(), branch.else_branch()->checked_type())) {
        Fail(*expr, fmt::format("the branches of 'if' have types {} and {}",
                                ToString(branch.then_branch()->checked_type()),
                                ToString(branch.else_branch()->checked_type())));
      }
      return branch.then_branch()->checked_type();
    }
    default:
      throw Error(ErrorCategory::kUnsupported, "type inference does not cover this kind of expression yet",
                  expr->span().source);
  }
}

}  // namespace

Type InferType(const Expr& expr) {
  PostOrder(expr, [](const Expr& node) {
    if (node->checked_type() || node->kind() == ExprKind::kOp) return;
    // A let's variable gets the type of its value; the body comes after the value in this order.
    Type type = ComputeType(node);
    if (!type) Fail(*node, "a variable without a type annotation");
    node->set_checked_type(std::move(type));
  });
  return expr->checked_type();
}

IRModule InferTypes(IRModule module) {
  for (const auto& [name, function] : module.functions()) InferType(function);
  return module;
}

}  // namespace collage
