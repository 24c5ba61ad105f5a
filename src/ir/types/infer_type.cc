// infer_type.cc: children before parents: an expression's type follows from its children's, from annotations and from
// definitions. What only later uses tell (parameters without annotation, the element type of an empty list) is a hole
// until then; operators wait for the types of their arguments. Models have no holes, and pay nothing for them.
#include "collage/ir/infer_type.h"

#include <fmt/format.h>

#include <optional>

#include "collage/support/error.h"
#include "ir/place.h"
#include "ir/types/inference.h"
#include "ir/types/match_coverage.h"

namespace collage {
namespace {

/// The type of a function as its annotations give it; null when one is missing.
Type AnnotatedType(const FunctionNode& function) {
  const auto is_known = [](const Type& type) { return type && !type->has_holes(); };
  std::vector<Type> params;
  for (const Var& param : function.params()) {
    params.push_back(param->type_annotation());
    if (!is_known(params.back())) return nullptr;
  }
  if (!is_known(function.result_type())) return nullptr;
  return FuncType(std::move(params), function.result_type(), function.type_params());
}

}  // namespace

void FailInference(const ExprNode& expr, const std::string& message, const std::string& hint) {
  throw Error(ErrorCategory::kInput, message, PlaceOf(expr.span()), hint);
}

Type Inference::Of(const Expr& root) {
  if (root->checked_type()) return root->checked_type();
  root_ = root.get();
  const std::vector<Expr> order = UntypedInOrder(root);
  for (const Expr& expr : order) binders_.Add(expr);
  for (const Expr& expr : order) {
    Visit(expr);
    Retry();
  }
  FinishDeferred();
  for (const ExprNode* expr : open_) Finish(*expr);
  return root->checked_type();
}

// ---- types of nodes ----

Type Inference::TypeOf(const ExprNode& expr) const {
  if (expr.kind() == ExprKind::kOp) {
    const std::string& name = static_cast<const OpNode&>(expr).name();
    FailInference(expr, fmt::format("operator '{}' is used as a value", name), "wrap it: fn (%x) { " + name + "(%x) }");
  }
  if (expr.checked_type()) return expr.checked_type();
  auto it = partial_.find(&expr);
  return it == partial_.end() ? nullptr : solver_.Resolve(it->second);
}
void Inference::SetType(const ExprNode& expr, Type type) {
  type = solver_.Resolve(type);
  if (type->is_oversized()) FailInference(expr, "the type of this expression is too large");
  if (!type->has_holes()) return expr.set_checked_type(std::move(type));
  if (partial_.emplace(&expr, std::move(type)).second) open_.push_back(&expr);
}

void Inference::Finish(const ExprNode& expr) const {
  const Type type = TypeOf(expr);
  if (type->is_oversized()) FailInference(expr, "the type of this expression is too large");
  if (!type->has_holes()) return expr.set_checked_type(type);
  if (binders_.params.Contains(&expr)) {
    FailInference(expr, fmt::format("parameter '%{}' has no type", static_cast<const VarNode&>(expr).name()),
                  "annotate it: %x: Tensor[(1, 3), float32]");
  }
  if (type->kind() == TypeKind::kIncomplete) FailInference(expr, "the type of this expression is not known");
  FailInference(expr, "the type of this expression is not known beyond " + ToString(type),
                "annotate the variable or the function's result: let %x: List[float32] = Nil;");
}

void Inference::Visit(const Expr& expr) {
  if (expr->checked_type() || expr->kind() == ExprKind::kOp) return;
  if (Type type = Compute(expr)) SetType(*expr, std::move(type));
}

Type Inference::Compute(const Expr& expr) {
  switch (expr->kind()) {
    case ExprKind::kVar: return VarType(static_cast<const VarNode&>(*expr));
    case ExprKind::kGlobalVar: return GlobalType(static_cast<const GlobalVarNode&>(*expr));
    case ExprKind::kConstant: {
      const Tensor& value = static_cast<const ConstantNode&>(*expr).value();
      return TensorType(value.shape(), value.dtype());
    }
    case ExprKind::kTuple: {
      std::vector<Type> fields;
      for (const Expr& field : static_cast<const TupleNode&>(*expr).fields()) fields.push_back(TypeOf(field));
      return TupleType(std::move(fields));
    }
    case ExprKind::kTupleGetItem: return ProjectionType(static_cast<const TupleGetItemNode&>(*expr));
    case ExprKind::kCall: return CallType(static_cast<const CallNode&>(*expr));
    case ExprKind::kFunction: return FunctionType(static_cast<const FunctionNode&>(*expr));
    case ExprKind::kLet: return LetType(static_cast<const LetNode&>(*expr));
    case ExprKind::kIf: return IfType(static_cast<const IfNode&>(*expr));
    case ExprKind::kConstructor: return ConstructorType(static_cast<const ConstructorNode&>(*expr));
    case ExprKind::kMatch: return MatchType(static_cast<const MatchNode&>(*expr));
    case ExprKind::kRefCreate:
      return std::make_shared<RefTypeNode>(TypeOf(static_cast<const RefCreateNode&>(*expr).value()));
    case ExprKind::kRefRead: return ReferencedType(*expr, static_cast<const RefReadNode&>(*expr).ref());
    case ExprKind::kRefWrite: {
      const auto& write = static_cast<const RefWriteNode&>(*expr);
      const Type wanted = ReferencedType(*expr, write.ref());
      const Type written = TypeOf(write.value());
      if (!solver_.Fit(wanted, written)) {
        FailInference(
            *expr, fmt::format("a value of type {} is written to a reference to {}", TextOf(written), TextOf(wanted)));
      }
      return TupleType({});
    }
    case ExprKind::kOp: return nullptr;
  }
  return nullptr;
}

Type Inference::ReferencedType(const ExprNode& expr, const Expr& ref) {
  const Type type = TypeOf(ref);
  if (type->kind() == TypeKind::kRef) return static_cast<const RefTypeNode&>(*type).value();
  const Type value = TypeSolver::Fresh();
  if (!solver_.Fit(std::make_shared<RefTypeNode>(value), type))
    FailInference(expr, "expected a reference, got " + TextOf(type));
  return value;
}

// ---- variables ----

Type Inference::VarType(const VarNode& var) {
  if (const Type known = TypeOf(var)) return known;
  if (var.type_annotation()) return var.type_annotation();
  if (const LetNode* const* let = binders_.lets.Find(&var)) {
    const Expr& value = (*let)->value();
    if (const Type known = TypeOf(value)) return known;
    // The value is a function that calls itself.
    const FunctionNode* function = As<FunctionNode>(value);
    if (function == nullptr) FailInference(var, fmt::format("'%{}' is used in its own value", var.name()));
    return ProvisionalType(*function);
  }
  if (const auto* binder = binders_.clauses.Find(&var)) {
    const auto [match, clause] = *binder;
    BindPattern(clause->pattern, TypeOf(match->data()), *match);
    return TypeOf(var);
  }
  if (binders_.params.Contains(&var)) return TypeSolver::Fresh();
  FailInference(var, fmt::format("variable '%{}' has no type", var.name()), "annotate it: %x: Tensor[(1, 3), float32]");
}

Type Inference::ProvisionalType(const FunctionNode& function) {
  Type& type = provisional_[&function];
  if (!type) {
    std::vector<Type> params;
    for (const Var& param : function.params()) {
      params.push_back(VarType(*param));
      SetType(*param, params.back());
    }
    type = FuncType(std::move(params), function.result_type() ? function.result_type() : TypeSolver::Fresh(),
                    function.type_params());
  }
  return type;
}

void Inference::BindPattern(const Pattern& pattern, const Type& type, const MatchNode& match) {
  switch (pattern.kind) {
    case Pattern::Kind::kWildcard: return;
    case Pattern::Kind::kVar: {
      const Type& annotation = pattern.var->type_annotation();
      if (annotation && !solver_.Fit(annotation, type)) {
        FailInference(*pattern.var, fmt::format("'%{}' is annotated {}, but matches {}", pattern.var->name(),
                                                ToString(annotation), TextOf(type)));
      }
      if (!TypeOf(*pattern.var)) SetType(*pattern.var, annotation ? annotation : type);
      return;
    }
    case Pattern::Kind::kTuple: {
      std::vector<Type> fields;
      for (size_t i = 0; i < pattern.sub_patterns.size(); ++i) fields.push_back(TypeSolver::Fresh());
      if (!solver_.Fit(TupleType(fields), type)) {
        FailInference(match,
                      fmt::format("a pattern of {} fields cannot match {}", pattern.sub_patterns.size(), TextOf(type)));
      }
      for (size_t i = 0; i < fields.size(); ++i) BindPattern(pattern.sub_patterns[i], fields[i], match);
      return;
    }
    case Pattern::Kind::kConstructor: BindConstructor(pattern, type, match); return;
  }
}

void Inference::BindConstructor(const Pattern& pattern, const Type& type, const MatchNode& match) {
  const ConstructorNode& constructor = *pattern.constructor;
  const Type instance = TypeSolver::Instantiate(*AsFuncType(ConstructorType(constructor)), {});
  if (!solver_.Fit(AsFuncType(instance)->result(), type)) {
    FailInference(match, fmt::format("constructor '{}' cannot match {}", constructor.name(), TextOf(type)));
  }
  const std::vector<Type>& fields = AsFuncType(instance)->args();
  if (fields.size() != pattern.sub_patterns.size()) {
    FailInference(match, fmt::format("constructor '{}' has {} fields, its pattern {}", constructor.name(),
                                     fields.size(), pattern.sub_patterns.size()));
  }
  for (size_t i = 0; i < fields.size(); ++i) BindPattern(pattern.sub_patterns[i], fields[i], match);
}

const TypeData& Inference::Definition(const ConstructorNode& constructor) const {
  if (module_ != nullptr) {
    auto it = module_->types().find(constructor.belongs_to()->name());
    if (it != module_->types().end()) return it->second;
  }
  FailInference(constructor, fmt::format("the module does not define type '{}' of constructor '{}'",
                                         constructor.belongs_to()->name(), constructor.name()));
}

Type Inference::GlobalType(const GlobalVarNode& global) {
  if (module_ == nullptr || !module_->Has(global.name())) {
    FailInference(global, fmt::format("the module has no function '@{}'", global.name()));
  }
  const Function& function = module_->Lookup(global.name());
  if (function->checked_type()) return function->checked_type();
  if (function.get() == root_) return ProvisionalType(*function);
  const Type annotated = AnnotatedType(*function);
  if (annotated) return annotated;
  FailInference(global, fmt::format("'@{}' is called before its type is known", global.name()),
                "annotate its parameters and its result");
}

// ---- scopes ----

Type Inference::FunctionType(const FunctionNode& function) {
  std::vector<Type> params;
  for (const Var& param : function.params()) {
    // Parameters that the body does not use have no type yet.
    if (!TypeOf(*param)) SetType(*param, VarType(*param));
    params.push_back(TypeOf(*param));
  }
  Type result = TypeOf(function.body());
  if (function.result_type()) {
    if (!solver_.Fit(function.result_type(), result)) {
      FailInference(function, fmt::format("the function's result has type {}, not {}", TextOf(result),
                                          ToString(function.result_type())));
    }
    result = function.result_type();
  }
  auto provisional = provisional_.find(&function);
  if (provisional != provisional_.end()) {
    const Type& assumed = AsFuncType(provisional->second)->result();
    if (!solver_.Fit(assumed, result)) {
      FailInference(function, fmt::format("the function's result has type {}, but is used as {}", TextOf(result),
                                          TextOf(assumed)));
    }
  }
  return FuncType(std::move(params), std::move(result), function.type_params());
}

Type Inference::LetType(const LetNode& let) {
  const Type value = TypeOf(let.value());
  const Type& wanted = let.var()->type_annotation();
  if (wanted && !solver_.Fit(wanted, value)) {
    FailInference(let, fmt::format("'%{}' is annotated {}, its value has type {}", let.var()->name(), ToString(wanted),
                                   TextOf(value)));
  }
  if (!TypeOf(*let.var())) SetType(*let.var(), wanted ? wanted : value);
  return TypeOf(let.body());
}

Type Inference::IfType(const IfNode& branch) {
  const Type condition = TypeOf(branch.condition());
  if (!solver_.Fit(TensorType(std::vector<Dim>{}, kBool), condition)) {
    FailInference(branch, "the condition of 'if' must be bool, got " + TextOf(condition));
  }
  Type result = solver_.Join(TypeOf(branch.then_branch()), TypeOf(branch.else_branch()));
  if (result) return result;
  FailInference(branch, fmt::format("the branches of 'if' have types {} and {}", TextOf(TypeOf(branch.then_branch())),
                                    TextOf(TypeOf(branch.else_branch()))));
}

Type Inference::MatchType(const MatchNode& match) {
  Type result;
  for (const Clause& clause : match.clauses()) {
    BindPattern(clause.pattern, TypeOf(match.data()), match);
    const Type type = TypeOf(clause.body);
    const Type joined = result ? solver_.Join(result, type) : type;
    if (!joined) {
      FailInference(match, fmt::format("the clauses of 'match' have types {} and {}", TextOf(result), TextOf(type)));
    }
    result = joined;
  }
  if (!result) FailInference(match, "'match' has no clauses");
  if (match.complete() && module_ != nullptr) {
    if (const std::optional<std::string> unmatched = FindUnmatched(match.clauses(), *module_)) {
      FailInference(match, fmt::format("no clause of 'match' fits {}", *unmatched), "add one, or write 'match?'");
    }
  }
  return result;
}

Type InferType(const Expr& expr) { return Inference(nullptr).Of(expr); }

Type InferType(const Expr& expr, const IRModule& module) { return Inference(&module).Of(expr); }

IRModule InferTypes(IRModule module) {
  for (const std::string& name : CalleesFirst(module)) Inference(&module).Of(module.Lookup(name));
  return module;
}

}  // namespace collage
