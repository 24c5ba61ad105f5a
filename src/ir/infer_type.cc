// infer_type.cc: forward inference, children before parents: every expression's type follows from its children's, from
// annotations and from definitions. Variables without annotation take the type of what they are bound to; type
// parameters are found by matching argument types. What needs knowledge from later uses asks for an annotation.
#include "collage/ir/infer_type.h"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"

namespace collage {
namespace {

using TypeBindings = std::unordered_map<const TypeNode*, Type>;

std::string Where(const Span& span) {
  return span.line > 0 ? fmt::format("{}:{}:{}", span.source, span.line, span.column) : span.source;
}

[[noreturn]] void Fail(const ExprNode& expr, const std::string& message, const std::string& hint = "") {
  throw Error(ErrorCategory::kInput, message, Where(expr.span()), hint);
}

// ---- type parameters ----

Type Replace(const Type& type, const TypeBindings& bindings);

std::vector<Type> ReplaceAll(const std::vector<Type>& types, const TypeBindings& bindings) {
  std::vector<Type> result;
  for (const Type& type : types) result.push_back(Replace(type, bindings));
  return result;
}

/// `type` with type variables replaced.
Type Replace(const Type& type, const TypeBindings& bindings) {
  if (!type || bindings.empty()) return type;
  switch (type->kind()) {
    case TypeKind::kTypeVar: {
      auto it = bindings.find(type.get());
      return it == bindings.end() ? type : it->second;
    }
    case TypeKind::kTuple: return TupleType(ReplaceAll(static_cast<const TupleTypeNode&>(*type).fields(), bindings));
    case TypeKind::kRef:
      return std::make_shared<RefTypeNode>(Replace(static_cast<const RefTypeNode&>(*type).value(), bindings));
    case TypeKind::kFunc: {
      const auto& function = static_cast<const FuncTypeNode&>(*type);
      return FuncType(ReplaceAll(function.args(), bindings), Replace(function.result(), bindings),
                      function.type_params());
    }
    case TypeKind::kTypeCall: {
      const auto& call = static_cast<const TypeCallNode&>(*type);
      return std::make_shared<TypeCallNode>(call.callee(), ReplaceAll(call.args(), bindings));
    }
    default: return type;
  }
}

/// Finds what the type variables among the keys of `bindings` must be so that `pattern` becomes `type`; null values are
/// filled in. False when the two cannot agree.
bool Unify(const Type& pattern, const Type& type, TypeBindings& bindings);

bool UnifyAll(const std::vector<Type>& patterns, const std::vector<Type>& types, TypeBindings& bindings) {
  if (patterns.size() != types.size()) return false;
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (!Unify(patterns[i], types[i], bindings)) return false;
  }
  return true;
}

bool Unify(const Type& pattern, const Type& type, TypeBindings& bindings) {
  if (!pattern || !type) return false;
  auto it = bindings.find(pattern.get());
  if (it != bindings.end()) {
    if (!it->second) it->second = type;
    return TypeEqual(it->second, type);
  }
  if (pattern->kind() != type->kind()) return false;
  switch (pattern->kind()) {
    case TypeKind::kTuple:
      return UnifyAll(static_cast<const TupleTypeNode&>(*pattern).fields(),
                      static_cast<const TupleTypeNode&>(*type).fields(), bindings);
    case TypeKind::kRef:
      return Unify(static_cast<const RefTypeNode&>(*pattern).value(), static_cast<const RefTypeNode&>(*type).value(),
                   bindings);
    case TypeKind::kTypeCall: {
      const auto& a = static_cast<const TypeCallNode&>(*pattern);
      const auto& b = static_cast<const TypeCallNode&>(*type);
      return a.callee()->name() == b.callee()->name() && UnifyAll(a.args(), b.args(), bindings);
    }
    case TypeKind::kFunc: {
      const auto& a = static_cast<const FuncTypeNode&>(*pattern);
      const auto& b = static_cast<const FuncTypeNode&>(*type);
      if (!a.type_params().empty() || !b.type_params().empty()) return TypeEqual(pattern, type);
      return UnifyAll(a.args(), b.args(), bindings) && Unify(a.result(), b.result(), bindings);
    }
    default: return TypeEqual(pattern, type);
  }
}

/// The type of a function as its annotations give it; null when one is missing.
Type AnnotatedType(const FunctionNode& function) {
  std::vector<Type> params;
  for (const Var& param : function.params()) {
    params.push_back(param->type_annotation());
    if (!params.back()) return nullptr;
  }
  return function.result_type() ? FuncType(std::move(params), function.result_type(), function.type_params()) : nullptr;
}

// ---- inference ----

class Inference {
 public:
  /// `module` gives the types of global functions and the definitions of algebraic types; may be null.
  explicit Inference(const IRModule* module) : module_(module) {}

  Type Of(const Expr& root) {
    if (root->checked_type()) return root->checked_type();
    const std::vector<Expr> order = UntypedInOrder(root);
    for (const Expr& expr : order) FindBinders(expr);
    for (const Expr& expr : order) Visit(expr);
    return root->checked_type();
  }

 private:
  /// Nodes without type, children before parents. What has a type is not entered, so that inferring again after a small
  /// change costs little; a node's type implies that its children have theirs.
  static std::vector<Expr> UntypedInOrder(const Expr& root) {
    struct Frame {
      Expr expr;
      std::vector<Expr> children;
      size_t next = 0;
    };
    std::vector<Expr> order;
    std::unordered_set<const ExprNode*> seen{root.get()};
    std::vector<Frame> stack;
    stack.push_back({root, Children(root), 0});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == frame.children.size()) {
        order.push_back(frame.expr);
        stack.pop_back();
        continue;
      }
      const Expr child = frame.children[frame.next++];
      const bool is_new = child && !child->checked_type() && child->kind() != ExprKind::kOp;
      if (is_new && seen.insert(child.get()).second) stack.push_back({child, Children(child), 0});
    }
    return order;
  }

  void FindBinders(const Expr& expr) {
    if (const LetNode* let = As<LetNode>(expr)) {
      lets_[let->var().get()] = let;
    } else if (const MatchNode* match = As<MatchNode>(expr)) {
      for (const Clause& clause : match->clauses()) FindPatternVars(clause.pattern, match, &clause);
    } else if (const FunctionNode* function = As<FunctionNode>(expr)) {
      for (const Var& param : function->params()) params_.insert(param.get());
    }
  }

  void FindPatternVars(const Pattern& pattern, const MatchNode* match, const Clause* clause) {
    if (pattern.var) clauses_[pattern.var.get()] = {match, clause};
    for (const Pattern& sub : pattern.sub_patterns) FindPatternVars(sub, match, clause);
  }

  void Visit(const Expr& expr) {
    if (expr->checked_type() || expr->kind() == ExprKind::kOp) return;
    Type type = Compute(expr);
    if (!type) Fail(*expr, "the type of this expression is not known");
    expr->set_checked_type(std::move(type));
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
        for (const Expr& field : static_cast<const TupleNode&>(*expr).fields()) fields.push_back(field->checked_type());
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
        return std::make_shared<RefTypeNode>(static_cast<const RefCreateNode&>(*expr).value()->checked_type());
      case ExprKind::kRefRead: return ReferencedType(*expr, static_cast<const RefReadNode&>(*expr).ref());
      case ExprKind::kRefWrite: {
        const auto& write = static_cast<const RefWriteNode&>(*expr);
        const Type wanted = ReferencedType(*expr, write.ref());
        if (!TypeEqual(wanted, write.value()->checked_type())) {
          Fail(*expr, fmt::format("a value of type {} is written to a reference to {}",
                                  ToString(write.value()->checked_type()), ToString(wanted)));
        }
        return TupleType({});
      }
      case ExprKind::kOp: return nullptr;
    }
    return nullptr;
  }

  static Type ReferencedType(const ExprNode& expr, const Expr& ref) {
    const Type& type = ref->checked_type();
    if (!type || type->kind() != TypeKind::kRef) Fail(expr, "expected a reference, got " + ToString(type));
    return static_cast<const RefTypeNode&>(*type).value();
  }

  // ---- variables ----

  Type VarType(const VarNode& var) {
    if (var.type_annotation()) return var.type_annotation();
    auto let = lets_.find(&var);
    if (let != lets_.end()) {
      const Expr& value = let->second->value();
      if (value->checked_type()) return value->checked_type();
      // The value is a function that calls itself.
      const FunctionNode* function = As<FunctionNode>(value);
      const Type annotated = function == nullptr ? nullptr : AnnotatedType(*function);
      if (!annotated) Fail(var, fmt::format("'%{}' is used in its own value", var.name()), "annotate the function");
      return annotated;
    }
    auto clause = clauses_.find(&var);
    if (clause != clauses_.end()) {
      BindPattern(clause->second.second->pattern, clause->second.first->data()->checked_type(), *clause->second.first);
      return var.checked_type();
    }
    const bool is_param = params_.count(&var) != 0;
    Fail(var, fmt::format("{} '%{}' has no type", is_param ? "parameter" : "variable", var.name()),
         "annotate it: %x: Tensor[(1, 3), float32]");
  }

  void BindPattern(const Pattern& pattern, const Type& type, const MatchNode& match) {
    switch (pattern.kind) {
      case Pattern::Kind::kWildcard: return;
      case Pattern::Kind::kVar: {
        const Type& annotation = pattern.var->type_annotation();
        if (annotation && !TypeEqual(annotation, type)) {
          Fail(*pattern.var, fmt::format("'%{}' is annotated {}, but matches {}", pattern.var->name(),
                                         ToString(annotation), ToString(type)));
        }
        pattern.var->set_checked_type(type);
        return;
      }
      case Pattern::Kind::kTuple: {
        const TupleTypeNode* tuple = AsTupleType(type);
        if (tuple == nullptr || tuple->fields().size() != pattern.sub_patterns.size()) {
          Fail(match, fmt::format("a pattern of {} fields cannot match {}", pattern.sub_patterns.size(), ToString(type)));
        }
        for (size_t i = 0; i < tuple->fields().size(); ++i) BindPattern(pattern.sub_patterns[i], tuple->fields()[i], match);
        return;
      }
      case Pattern::Kind::kConstructor: {
        const ConstructorNode& constructor = *pattern.constructor;
        const bool fits = type && type->kind() == TypeKind::kTypeCall &&
                          static_cast<const TypeCallNode&>(*type).callee()->name() == constructor.belongs_to()->name();
        if (!fits) Fail(match, fmt::format("constructor '{}' cannot match {}", constructor.name(), ToString(type)));
        const std::vector<TypeVar>& vars = Definition(constructor).type_vars;
        TypeBindings bindings;
        for (size_t i = 0; i < vars.size(); ++i) {
          bindings[vars[i].get()] = static_cast<const TypeCallNode&>(*type).args().at(i);
        }
        if (constructor.inputs().size() != pattern.sub_patterns.size()) {
          Fail(match, fmt::format("constructor '{}' has {} fields, its pattern {}", constructor.name(),
                                  constructor.inputs().size(), pattern.sub_patterns.size()));
        }
        for (size_t i = 0; i < pattern.sub_patterns.size(); ++i) {
          BindPattern(pattern.sub_patterns[i], Replace(constructor.inputs()[i], bindings), match);
        }
        return;
      }
    }
  }

  const TypeData& Definition(const ConstructorNode& constructor) const {
    if (module_ != nullptr) {
      auto it = module_->types().find(constructor.belongs_to()->name());
      if (it != module_->types().end()) return it->second;
    }
    Fail(constructor, fmt::format("the module does not define type '{}' of constructor '{}'",
                                  constructor.belongs_to()->name(), constructor.name()));
  }

  Type GlobalType(const GlobalVarNode& global) const {
    if (module_ == nullptr || !module_->Has(global.name())) {
      Fail(global, fmt::format("the module has no function '@{}'", global.name()));
    }
    const Function& function = module_->Lookup(global.name());
    if (function->checked_type()) return function->checked_type();
    const Type annotated = AnnotatedType(*function);
    if (!annotated) {
      Fail(global, fmt::format("'@{}' is called before its type is known", global.name()),
           "annotate its parameters and its result");
    }
    return annotated;
  }

  // ---- calls ----

  Type CallType(const CallNode& call) const {
    if (const OpDef* op = call.op()) return OpCallType(call, *op);
    const FuncTypeNode* type = AsFuncType(call.callee()->checked_type());
    if (type == nullptr) Fail(call, "calls something that is no function: " + ToString(call.callee()->checked_type()));
    if (type->args().size() != call.args().size()) {
      Fail(call, fmt::format("a function of {} parameters is called with {} arguments", type->args().size(),
                             call.args().size()));
    }
    TypeBindings bindings;
    for (size_t i = 0; i < type->type_params().size(); ++i) {
      bindings[type->type_params()[i].get()] = i < call.type_args().size() ? call.type_args()[i] : nullptr;
    }
    for (size_t i = 0; i < call.args().size(); ++i) {
      const Type& arg = call.args()[i]->checked_type();
      if (!Unify(type->args()[i], arg, bindings)) {
        Fail(call, fmt::format("argument {} has type {}, the parameter {}", i, ToString(arg),
                               ToString(Replace(type->args()[i], Known(bindings)))));
      }
    }
    for (const TypeVar& param : type->type_params()) {
      if (bindings[param.get()]) continue;
      Fail(call, fmt::format("the arguments do not say what type variable '{}' is", param->name()));
    }
    return Replace(type->result(), bindings);
  }

  static TypeBindings Known(TypeBindings bindings) {
    std::erase_if(bindings, [](const auto& binding) { return !binding.second; });
    return bindings;
  }

  static Type OpCallType(const CallNode& call, const OpDef& op) {
    std::vector<Type> args;
    for (const Expr& arg : call.args()) args.push_back(arg->checked_type());
    const auto least = op.min_args < 0 ? op.args.size() : static_cast<size_t>(op.min_args);
    if (args.size() < least || args.size() > op.args.size()) {
      const std::string wanted = least == op.args.size() ? std::to_string(least)
                                                         : fmt::format("{} to {}", least, op.args.size());
      Fail(call, fmt::format("'{}' expects {} arguments, got {}", op.name, wanted, args.size()));
    }
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

  static Type ProjectionType(const TupleGetItemNode& item) {
    const TupleTypeNode* tuple = AsTupleType(item.tuple()->checked_type());
    if (tuple == nullptr || item.index() < 0 || item.index() >= static_cast<int>(tuple->fields().size())) {
      Fail(item, fmt::format("field {} of {} does not exist", item.index(), ToString(item.tuple()->checked_type())));
    }
    return tuple->fields()[static_cast<size_t>(item.index())];
  }

  // ---- scopes ----

  Type FunctionType(const FunctionNode& function) {
    std::vector<Type> params;
    for (const Var& param : function.params()) {
      // Parameters that the body does not use.
      if (!param->checked_type()) param->set_checked_type(VarType(*param));
      params.push_back(param->checked_type());
    }
    const Type& result = function.body()->checked_type();
    if (function.result_type() && !TypeEqual(function.result_type(), result)) {
      Fail(function, fmt::format("the function's result has type {}, not {}", ToString(result),
                                 ToString(function.result_type())));
    }
    return FuncType(std::move(params), result, function.type_params());
  }

  Type LetType(const LetNode& let) const {
    const Type& value = let.value()->checked_type();
    const Type& wanted = let.var()->type_annotation();
    if (wanted && !TypeEqual(wanted, value)) {
      Fail(let, fmt::format("'%{}' is annotated {}, its value has type {}", let.var()->name(), ToString(wanted),
                            ToString(value)));
    }
    if (!let.var()->checked_type()) let.var()->set_checked_type(value);
    return let.body()->checked_type();
  }

  static Type IfType(const IfNode& branch) {
    const TensorTypeNode* condition = AsTensorType(branch.condition()->checked_type());
    if (condition == nullptr || condition->rank() != 0 || !condition->dtype().is_bool()) {
      Fail(branch, "the condition of 'if' must be bool, got " + ToString(branch.condition()->checked_type()));
    }
    if (!TypeEqual(branch.then_branch()->checked_type(), branch.else_branch()->checked_type())) {
      Fail(branch, fmt::format("the branches of 'if' have types {} and {}",
                               ToString(branch.then_branch()->checked_type()),
                               ToString(branch.else_branch()->checked_type())));
    }
    return branch.then_branch()->checked_type();
  }

  Type MatchType(const MatchNode& match) {
    Type result;
    for (const Clause& clause : match.clauses()) {
      BindPattern(clause.pattern, match.data()->checked_type(), match);
      const Type& type = clause.body->checked_type();
      if (!result) result = type;
      if (!TypeEqual(result, type)) {
        Fail(match, fmt::format("the clauses of 'match' have types {} and {}", ToString(result), ToString(type)));
      }
    }
    if (!result) Fail(match, "'match' has no clauses");
    return result;
  }

  const IRModule* module_;
  std::unordered_map<const ExprNode*, const LetNode*> lets_;
  std::unordered_map<const ExprNode*, std::pair<const MatchNode*, const Clause*>> clauses_;
  std::unordered_set<const ExprNode*> params_;
};

/// The functions of `module`, each behind those it calls as far as there is no cycle, so that results without annotation
/// are known when they are needed.
std::vector<std::string> CalleesFirst(const IRModule& module) {
  std::map<std::string, std::vector<std::string>> callees;
  for (const auto& [name, function] : module.functions()) {
    std::vector<std::string>& list = callees[name];
    if (function->checked_type()) continue;
    PostOrder(function, [&](const Expr& expr) {
      const GlobalVarNode* global = As<GlobalVarNode>(expr);
      if (global != nullptr && module.Has(global->name())) list.push_back(global->name());
    });
  }
  std::vector<std::string> order;
  std::unordered_set<std::string> seen;
  std::vector<std::pair<std::string, size_t>> stack;  // function, next callee
  for (const auto& [root, list] : callees) {
    if (seen.insert(root).second) stack.emplace_back(root, 0);
    while (!stack.empty()) {
      const std::vector<std::string>& called = callees[stack.back().first];
      if (stack.back().second == called.size()) {
        order.push_back(stack.back().first);
        stack.pop_back();
        continue;
      }
      const std::string& next = called[stack.back().second++];
      if (seen.insert(next).second) stack.emplace_back(next, 0);
    }
  }
  return order;
}

}  // namespace

Type InferType(const Expr& expr) { return Inference(nullptr).Of(expr); }

Type InferType(const Expr& expr, const IRModule& module) { return Inference(&module).Of(expr); }

IRModule InferTypes(IRModule module) {
  for (const std::string& name : CalleesFirst(module)) Inference(&module).Of(module.Lookup(name));
  return module;
}

}  // namespace collage
