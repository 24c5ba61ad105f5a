// infer_type.cc: children before parents: an expression's type follows from its children's, from annotations and from
// definitions. What only later uses tell (parameters without annotation, the element type of an empty list) is a hole
// until then; operators wait for the types of their arguments. Models have no holes, and pay nothing for them.
#include "collage/ir/infer_type.h"

#include <fmt/format.h>

#include <optional>
#include <unordered_map>

#include "collage/ir/op.h"
#include "collage/support/error.h"
#include "ir/infer_order.h"
#include "ir/match_coverage.h"
#include "ir/type_solver.h"

namespace collage {
namespace {

std::string Where(const Span& span) {
  return span.line > 0 ? fmt::format("{}:{}:{}", span.source, span.line, span.column) : span.source;
}

[[noreturn]] void Fail(const ExprNode& expr, const std::string& message, const std::string& hint = "") {
  throw Error(ErrorCategory::kInput, message, Where(expr.span()), hint);
}

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

// ---- inference ----

class Inference {
 public:
  /// `module` gives the types of global functions and the definitions of algebraic types; may be null.
  explicit Inference(const IRModule* module) : module_(module) {}

  Type Of(const Expr& root) {
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

 private:
  // ---- types of nodes ----

  /// The type as far as it is known; null when nothing is.
  Type TypeOf(const ExprNode& expr) const {
    if (expr.kind() == ExprKind::kOp) {
      const std::string& name = static_cast<const OpNode&>(expr).name();
      Fail(expr, fmt::format("operator '{}' is used as a value", name), "wrap it: fn (%x) { " + name + "(%x) }");
    }
    if (expr.checked_type()) return expr.checked_type();
    auto it = partial_.find(&expr);
    return it == partial_.end() ? nullptr : solver_.Resolve(it->second);
  }
  Type TypeOf(const Expr& expr) const { return TypeOf(*expr); }
  std::string TextOf(const Type& type) const { return ToString(solver_.Resolve(type)); }

  void SetType(const ExprNode& expr, Type type) {
    type = solver_.Resolve(type);
    if (type->is_oversized()) Fail(expr, "the type of this expression is too large");
    if (!type->has_holes()) return expr.set_checked_type(std::move(type));
    if (partial_.emplace(&expr, std::move(type)).second) open_.push_back(&expr);
  }

  /// What was open must be known by now.
  void Finish(const ExprNode& expr) const {
    const Type type = TypeOf(expr);
    if (type->is_oversized()) Fail(expr, "the type of this expression is too large");
    if (!type->has_holes()) return expr.set_checked_type(type);
    if (binders_.params.count(&expr) != 0) {
      Fail(expr, fmt::format("parameter '%{}' has no type", static_cast<const VarNode&>(expr).name()),
           "annotate it: %x: Tensor[(1, 3), float32]");
    }
    if (type->kind() == TypeKind::kIncomplete) Fail(expr, "the type of this expression is not known");
    Fail(expr, "the type of this expression is not known beyond " + ToString(type),
         "annotate the variable or the function's result: let %x: List[float32] = Nil;");
  }

  void Visit(const Expr& expr) {
    if (expr->checked_type() || expr->kind() == ExprKind::kOp) return;
    if (Type type = Compute(expr)) SetType(*expr, std::move(type));
  }

  Type Compute(const Expr& expr) {
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
          Fail(*expr,
               fmt::format("a value of type {} is written to a reference to {}", TextOf(written), TextOf(wanted)));
        }
        return TupleType({});
      }
      case ExprKind::kOp: return nullptr;
    }
    return nullptr;
  }

  Type ReferencedType(const ExprNode& expr, const Expr& ref) {
    const Type type = TypeOf(ref);
    if (type->kind() == TypeKind::kRef) return static_cast<const RefTypeNode&>(*type).value();
    const Type value = TypeSolver::Fresh();
    if (!solver_.Fit(std::make_shared<RefTypeNode>(value), type))
      Fail(expr, "expected a reference, got " + TextOf(type));
    return value;
  }

  // ---- variables ----

  Type VarType(const VarNode& var) {
    if (const Type known = TypeOf(var)) return known;
    if (var.type_annotation()) return var.type_annotation();
    auto let = binders_.lets.find(&var);
    if (let != binders_.lets.end()) {
      const Expr& value = let->second->value();
      if (const Type known = TypeOf(value)) return known;
      // The value is a function that calls itself.
      const FunctionNode* function = As<FunctionNode>(value);
      if (function == nullptr) Fail(var, fmt::format("'%{}' is used in its own value", var.name()));
      return ProvisionalType(*function);
    }
    auto clause = binders_.clauses.find(&var);
    if (clause != binders_.clauses.end()) {
      BindPattern(clause->second.second->pattern, TypeOf(clause->second.first->data()), *clause->second.first);
      return TypeOf(var);
    }
    if (binders_.params.count(&var) != 0) return TypeSolver::Fresh();
    Fail(var, fmt::format("variable '%{}' has no type", var.name()), "annotate it: %x: Tensor[(1, 3), float32]");
  }

  /// The type of a function before its body is known: what is annotated, holes for the rest.
  Type ProvisionalType(const FunctionNode& function) {
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

  void BindPattern(const Pattern& pattern, const Type& type, const MatchNode& match) {
    switch (pattern.kind) {
      case Pattern::Kind::kWildcard: return;
      case Pattern::Kind::kVar: {
        const Type& annotation = pattern.var->type_annotation();
        if (annotation && !solver_.Fit(annotation, type)) {
          Fail(*pattern.var, fmt::format("'%{}' is annotated {}, but matches {}", pattern.var->name(),
                                         ToString(annotation), TextOf(type)));
        }
        if (!TypeOf(*pattern.var)) SetType(*pattern.var, annotation ? annotation : type);
        return;
      }
      case Pattern::Kind::kTuple: {
        std::vector<Type> fields;
        for (size_t i = 0; i < pattern.sub_patterns.size(); ++i) fields.push_back(TypeSolver::Fresh());
        if (!solver_.Fit(TupleType(fields), type)) {
          Fail(match, fmt::format("a pattern of {} fields cannot match {}", pattern.sub_patterns.size(), TextOf(type)));
        }
        for (size_t i = 0; i < fields.size(); ++i) BindPattern(pattern.sub_patterns[i], fields[i], match);
        return;
      }
      case Pattern::Kind::kConstructor: BindConstructor(pattern, type, match); return;
    }
  }

  void BindConstructor(const Pattern& pattern, const Type& type, const MatchNode& match) {
    const ConstructorNode& constructor = *pattern.constructor;
    const Type instance = TypeSolver::Instantiate(*AsFuncType(ConstructorType(constructor)), {});
    if (!solver_.Fit(AsFuncType(instance)->result(), type)) {
      Fail(match, fmt::format("constructor '{}' cannot match {}", constructor.name(), TextOf(type)));
    }
    const std::vector<Type>& fields = AsFuncType(instance)->args();
    if (fields.size() != pattern.sub_patterns.size()) {
      Fail(match, fmt::format("constructor '{}' has {} fields, its pattern {}", constructor.name(), fields.size(),
                              pattern.sub_patterns.size()));
    }
    for (size_t i = 0; i < fields.size(); ++i) BindPattern(pattern.sub_patterns[i], fields[i], match);
  }

  const TypeData& Definition(const ConstructorNode& constructor) const {
    if (module_ != nullptr) {
      auto it = module_->types().find(constructor.belongs_to()->name());
      if (it != module_->types().end()) return it->second;
    }
    Fail(constructor, fmt::format("the module does not define type '{}' of constructor '{}'",
                                  constructor.belongs_to()->name(), constructor.name()));
  }

  Type GlobalType(const GlobalVarNode& global) {
    if (module_ == nullptr || !module_->Has(global.name())) {
      Fail(global, fmt::format("the module has no function '@{}'", global.name()));
    }
    const Function& function = module_->Lookup(global.name());
    if (function->checked_type()) return function->checked_type();
    if (function.get() == root_) return ProvisionalType(*function);
    const Type annotated = AnnotatedType(*function);
    if (annotated) return annotated;
    Fail(global, fmt::format("'@{}' is called before its type is known", global.name()),
         "annotate its parameters and its result");
  }

  // ---- calls ----

  Type CallType(const CallNode& call) {
    if (const OpDef* op = call.op()) return OpCallType(call, *op);
    Type callee = TypeOf(call.callee());
    if (callee->kind() == TypeKind::kIncomplete) {
      std::vector<Type> args;
      for (const Expr& arg : call.args()) args.push_back(TypeOf(arg));
      const Type result = TypeSolver::Fresh();
      if (!solver_.Fit(callee, FuncType(std::move(args), result))) Fail(call, "this function is called with itself");
      return result;
    }
    const FuncTypeNode* type = AsFuncType(callee);
    if (type == nullptr) Fail(call, "calls something that is no function: " + TextOf(callee));
    if (type->args().size() != call.args().size()) {
      Fail(call, fmt::format("a function of {} parameters is called with {} arguments", type->args().size(),
                             call.args().size()));
    }
    if (!type->type_params().empty()) {
      callee = TypeSolver::Instantiate(*type, call.type_args());
      type = AsFuncType(callee);
    }
    for (size_t i = 0; i < call.args().size(); ++i) {
      const Type arg = TypeOf(call.args()[i]);
      if (solver_.Fit(type->args()[i], arg)) continue;
      Fail(call, fmt::format("argument {} has type {}, the parameter {}", i, TextOf(arg), TextOf(type->args()[i])));
    }
    return type->result();
  }

  /// The result's type, or a hole when an argument's type is not known yet.
  Type OpCallType(const CallNode& call, const OpDef& op) {
    const auto least = op.min_args < 0 ? op.args.size() : static_cast<size_t>(op.min_args);
    if (call.args().size() < least || call.args().size() > op.args.size()) {
      const std::string wanted =
          least == op.args.size() ? std::to_string(least) : fmt::format("{} to {}", least, op.args.size());
      Fail(call, fmt::format("'{}' expects {} arguments, got {}", op.name, wanted, call.args().size()));
    }
    if (const TypeNode* hole = OpenArg(call)) return Defer(call, hole);
    return Apply(call, op);
  }

  const TypeNode* OpenArg(const CallNode& call) const {
    for (const Expr& arg : call.args()) {
      if (const TypeNode* hole = solver_.FirstHole(TypeOf(arg))) return hole;
    }
    return nullptr;
  }

  Type Apply(const CallNode& call, const OpDef& op) const {
    std::vector<Type> args;
    for (const Expr& arg : call.args()) args.push_back(TypeOf(arg));
    const Result<Type> type = op.relation({args, call.attrs()});
    if (type.ok()) return *type;
    std::string types;
    for (const Type& arg : args) types += (types.empty() ? "" : ", ") + ToString(arg);
    Fail(call, fmt::format("'{}' {} (arguments: {})", op.name, type.reason().text, types));
  }

  Type ConstructorType(const ConstructorNode& constructor) const {
    const TypeData& data = Definition(constructor);
    std::vector<Type> args(data.type_vars.begin(), data.type_vars.end());
    return FuncType(constructor.inputs(), std::make_shared<TypeCallNode>(constructor.belongs_to(), std::move(args)),
                    data.type_vars);
  }

  Type ProjectionType(const TupleGetItemNode& item) {
    const Type type = TypeOf(item.tuple());
    if (type->kind() == TypeKind::kIncomplete) return Defer(item, type.get());
    const TupleTypeNode* tuple = AsTupleType(type);
    if (tuple == nullptr || item.index() < 0 || item.index() >= static_cast<int>(tuple->fields().size())) {
      Fail(item, fmt::format("field {} of {} does not exist", item.index(), ToString(type)));
    }
    return tuple->fields()[static_cast<size_t>(item.index())];
  }

  // ---- what must wait ----

  /// `expr` is typed when `hole` is solved; until then its type is the hole that this returns.
  Type Defer(const ExprNode& expr, const TypeNode* hole) {
    waiting_[hole].push_back(&expr);
    auto [it, is_new] = deferred_.emplace(&expr, nullptr);
    if (is_new) {
      it->second = TypeSolver::Fresh();
      deferred_order_.push_back(&expr);
    }
    return it->second;
  }

  /// Types what waited for the holes that were solved since.
  void Retry() {
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

  void RetryOne(const ExprNode& expr) {
    const Type wanted = deferred_.at(&expr);
    const bool is_call = expr.kind() == ExprKind::kCall;
    const auto* call = is_call ? static_cast<const CallNode*>(&expr) : nullptr;
    const Type type =
        is_call ? OpCallType(*call, *call->op()) : ProjectionType(static_cast<const TupleGetItemNode&>(expr));
    if (type == wanted) return;  // waits for another hole
    deferred_[&expr] = nullptr;
    if (!solver_.Fit(wanted, type)) {
      Fail(expr, fmt::format("has type {}, but is used as {}", TextOf(type), TextOf(wanted)));
    }
  }

  void FinishDeferred() const {
    for (const ExprNode* expr : deferred_order_) {
      if (!deferred_.at(expr)) continue;
      // What it waits for is a parameter in most cases, and the message says which.
      for (const ExprNode* open : open_) {
        if (binders_.params.count(open) != 0) Finish(*open);
      }
      Finish(*expr);
    }
  }

  // ---- scopes ----

  Type FunctionType(const FunctionNode& function) {
    std::vector<Type> params;
    for (const Var& param : function.params()) {
      // Parameters that the body does not use have no type yet.
      if (!TypeOf(*param)) SetType(*param, VarType(*param));
      params.push_back(TypeOf(*param));
    }
    Type result = TypeOf(function.body());
    if (function.result_type()) {
      if (!solver_.Fit(function.result_type(), result)) {
        Fail(function, fmt::format("the function's result has type {}, not {}", TextOf(result),
                                   ToString(function.result_type())));
      }
      result = function.result_type();
    }
    auto provisional = provisional_.find(&function);
    if (provisional != provisional_.end()) {
      const Type& assumed = AsFuncType(provisional->second)->result();
      if (!solver_.Fit(assumed, result)) {
        Fail(function,
             fmt::format("the function's result has type {}, but is used as {}", TextOf(result), TextOf(assumed)));
      }
    }
    return FuncType(std::move(params), std::move(result), function.type_params());
  }

  Type LetType(const LetNode& let) {
    const Type value = TypeOf(let.value());
    const Type& wanted = let.var()->type_annotation();
    if (wanted && !solver_.Fit(wanted, value)) {
      Fail(let, fmt::format("'%{}' is annotated {}, its value has type {}", let.var()->name(), ToString(wanted),
                            TextOf(value)));
    }
    if (!TypeOf(*let.var())) SetType(*let.var(), wanted ? wanted : value);
    return TypeOf(let.body());
  }

  Type IfType(const IfNode& branch) {
    const Type condition = TypeOf(branch.condition());
    if (!solver_.Fit(TensorType(std::vector<Dim>{}, kBool), condition)) {
      Fail(branch, "the condition of 'if' must be bool, got " + TextOf(condition));
    }
    Type result = solver_.Join(TypeOf(branch.then_branch()), TypeOf(branch.else_branch()));
    if (result) return result;
    Fail(branch, fmt::format("the branches of 'if' have types {} and {}", TextOf(TypeOf(branch.then_branch())),
                             TextOf(TypeOf(branch.else_branch()))));
  }

  Type MatchType(const MatchNode& match) {
    Type result;
    for (const Clause& clause : match.clauses()) {
      BindPattern(clause.pattern, TypeOf(match.data()), match);
      const Type type = TypeOf(clause.body);
      const Type joined = result ? solver_.Join(result, type) : type;
      if (!joined) {
        Fail(match, fmt::format("the clauses of 'match' have types {} and {}", TextOf(result), TextOf(type)));
      }
      result = joined;
    }
    if (!result) Fail(match, "'match' has no clauses");
    if (match.complete() && module_ != nullptr) {
      if (const std::optional<std::string> unmatched = FindUnmatched(match.clauses(), *module_)) {
        Fail(match, fmt::format("no clause of 'match' fits {}", *unmatched), "add one, or write 'match?'");
      }
    }
    return result;
  }

  const IRModule* module_;
  const ExprNode* root_ = nullptr;
  TypeSolver solver_;
  std::unordered_map<const ExprNode*, Type> partial_;  // types with holes
  std::vector<const ExprNode*> open_;                  // their nodes, in the order in which they were met
  std::unordered_map<const FunctionNode*, Type> provisional_;
  std::unordered_map<const TypeNode*, std::vector<const ExprNode*>> waiting_;  // hole → calls and projections
  std::unordered_map<const ExprNode*, Type> deferred_;                         // → its type's hole; null when done
  std::vector<const ExprNode*> deferred_order_;
  Binders binders_;
};

}  // namespace

Type InferType(const Expr& expr) { return Inference(nullptr).Of(expr); }

Type InferType(const Expr& expr, const IRModule& module) { return Inference(&module).Of(expr); }

IRModule InferTypes(IRModule module) {
  for (const std::string& name : CalleesFirst(module)) Inference(&module).Of(module.Lookup(name));
  return module;
}

}  // namespace collage
