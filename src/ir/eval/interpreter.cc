// interpreter.cc: an abstract machine. A stack of activations, each with the tail expression whose value it will return
// and, above it, the expressions whose values are needed first; so neither depth of expressions nor of calls uses the
// machine's own stack, and a call in tail position takes its caller's place.
#include "ir/eval/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "collage/ir/named_dimensions.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/eval/evaluate.h"
#include "ir/eval/interpreter_scope.h"
#include "ir/eval/random_draws.h"
#include "ir/place.h"

namespace collage {
namespace {

[[noreturn]] void Fail(const ExprNode& expr, const std::string& message) {
  throw Error(ErrorCategory::kInput, message, PlaceOf(expr.span()));
}

/// State of one call of a function: its parameters, let-bound variables, and the nodes evaluated so far.
struct Frame {
  const ScopeAnalysis* scopes = nullptr;
  std::unordered_map<const ExprNode*, Value> values;
};

/// A function's body, or an `if`, `let` or `match` inside an expression (which shares its function's frame).
struct Activation {
  std::shared_ptr<Frame> frame;
  Expr tail;
  bool tail_is_entered;       ///< not to be evaluated aside for being shared: this activation does that
  std::vector<Expr> pending;  ///< each is needed by the one below
};

bool IsBlock(const Expr& expr) {
  return expr->kind() == ExprKind::kLet || expr->kind() == ExprKind::kIf || expr->kind() == ExprKind::kMatch;
}

class Interpreter {
 public:
  Interpreter(const IRModule& module, const InterpretOptions& options) : module_(module), options_(options) {}
  ~Interpreter() { references_.EmptyAllBut(result_); }

  Value Run(std::string_view name, std::vector<Value> args) {
    const Function& function = module_.Lookup(name);
    CheckArgs(name, *function, args);
    Enter(function, AnalysisOf(function), {}, args);
    while (!stack_.empty()) Step();
    return result_;
  }

 private:
  static void CheckArgs(std::string_view name, const FunctionNode& function, const std::vector<Value>& args) {
    const std::vector<Var>& params = function.params();
    if (args.size() != params.size()) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("'@{}' has {} parameters, got {} arguments", name, params.size(), args.size()));
    }
    for (size_t i = 0; i < params.size(); ++i) {
      const Result<void> fits = CheckFits(args[i], params[i]->type_annotation());
      if (fits.ok()) continue;
      throw Error(ErrorCategory::kInput, fmt::format("parameter '{}' {}", params[i]->name(), fits.reason().text));
    }
    std::vector<std::string> names;
    for (const Var& param : params) names.push_back(param->name());
    const Result<void> agree = NamedDimensions(function.attrs(), std::move(names)).Check(args);
    if (!agree.ok()) throw Error(ErrorCategory::kInput, agree.reason().text);
  }

  /// Functions of the module are analysed when first called.
  int AnalysisOf(const Function& global) {
    auto [it, is_new] = analysis_index_.emplace(global.get(), static_cast<int>(analyses_.size()));
    if (is_new) analyses_.push_back(std::make_unique<ScopeAnalysis>(global));
    return it->second;
  }

  /// Opens a call of `function`; `captured` as its analysis lists them.
  void Enter(const Function& function, int analysis, const std::vector<Value>& captured,
             const std::vector<Value>& args) {
    CheckDepth(*function);
    auto frame = std::make_shared<Frame>();
    frame->scopes = analyses_[analysis].get();
    const std::vector<Expr>& captures = frame->scopes->Captures(*function);
    for (size_t i = 0; i < captures.size(); ++i) frame->values[captures[i].get()] = captured[i];
    if (args.size() != function->params().size()) {
      Fail(*function, fmt::format("a function of {} parameters is called with {} arguments", function->params().size(),
                                  args.size()));
    }
    for (size_t i = 0; i < args.size(); ++i) frame->values[function->params()[i].get()] = args[i];
    stack_.push_back({std::move(frame), function->body(), false, {}});
  }

  void CheckDepth(const ExprNode& expr) const {
    if (stack_.size() < options_.max_depth) return;
    throw Error(ErrorCategory::kResource, fmt::format("calls nest more than {} deep", options_.max_depth),
                PlaceOf(expr.span()), "recursion in tail position needs no depth");
  }

  void Return(Value value) {
    stack_.pop_back();
    if (stack_.empty()) {
      result_ = std::move(value);
      return;
    }
    Activation& caller = stack_.back();
    caller.frame->values[caller.pending.back().get()] = std::move(value);
    caller.pending.pop_back();
  }

  /// One small step of the innermost activation.
  void Step() {
    Activation& now = stack_.back();
    if (now.pending.empty()) {
      StepTail(now);
    } else if (now.frame->values.count(now.pending.back().get()) != 0) {
      now.pending.pop_back();
    } else {
      StepPending(now);
    }
  }

  /// The value if `expr` has one by now; else it becomes pending.
  const Value* Need(Activation& now, const Expr& expr) {
    switch (expr->kind()) {
      case ExprKind::kConstant: return Keep(Value(static_cast<const ConstantNode&>(*expr).value()));
      case ExprKind::kConstructor: return Keep(Value::Function(expr, -1, {}));
      case ExprKind::kGlobalVar: {
        const Function& function = module_.Lookup(static_cast<const GlobalVarNode&>(*expr).name());
        return Keep(Value::Function(function, AnalysisOf(function), {}));
      }
      case ExprKind::kOp:
        Fail(*expr, fmt::format("operator '{}' is used as a value", static_cast<const OpNode&>(*expr).name()));
      default: break;
    }
    auto it = now.frame->values.find(expr.get());
    if (it != now.frame->values.end()) return &it->second;
    if (const VarNode* var = As<VarNode>(expr))
      Fail(*expr, fmt::format("variable '%{}' has no value here", var->name()));
    now.pending.push_back(expr);
    return nullptr;
  }

  const Value* Keep(Value value) {
    leaf_ = std::move(value);
    return &leaf_;
  }

  /// The values of all, or nothing when one of them must be evaluated first.
  std::optional<std::vector<Value>> NeedAll(Activation& now, const std::vector<Expr>& exprs) {
    std::vector<Value> values;
    values.reserve(exprs.size());
    for (const Expr& expr : exprs) {
      const Value* value = Need(now, expr);
      if (value == nullptr) return std::nullopt;
      values.push_back(*value);
    }
    return values;
  }

  // ---- tail expressions ----

  void StepTail(Activation& now) {
    const Expr tail = now.tail;
    const bool must_be_kept = !now.tail_is_entered && now.frame->scopes->IsShared(*tail);
    if (IsBlock(tail) && !must_be_kept) {
      if (const Expr* next = Advance(now, tail)) {
        now.tail = Expr(*next);
        now.tail_is_entered = false;
      }
    } else if (tail->kind() == ExprKind::kCall && !must_be_kept) {
      StepTailCall(now, static_cast<const CallNode&>(*tail));
    } else if (const Value* value = Need(now, tail)) {
      Return(Value(*value));
    }
  }

  /// The part of a block that gives its value, once what precedes it is evaluated; else null.
  const Expr* Advance(Activation& now, const Expr& block) {
    switch (block->kind()) {
      case ExprKind::kLet: {
        const auto& let = static_cast<const LetNode&>(*block);
        const Value* value = Need(now, let.value());
        if (value == nullptr) return nullptr;
        Value copy = *value;
        now.frame->values[let.var().get()] = std::move(copy);
        return &let.body();
      }
      case ExprKind::kIf: {
        const auto& branch = static_cast<const IfNode&>(*block);
        const Value* condition = Need(now, branch.condition());
        if (condition == nullptr) return nullptr;
        const bool is_scalar = condition->kind() == Value::Kind::kTensor && condition->tensor().num_elements() == 1;
        if (!is_scalar) Fail(*block, "the condition of 'if' must be bool, got " + ToString(*condition));
        return condition->tensor().At(0) != 0 ? &branch.then_branch() : &branch.else_branch();
      }
      default: {
        const auto& match = static_cast<const MatchNode&>(*block);
        const Value* data = Need(now, match.data());
        if (data == nullptr) return nullptr;
        const Value value = *data;
        for (const Clause& clause : match.clauses()) {
          if (Matches(clause.pattern, value, *block, now.frame.get())) return &clause.body;
        }
        Fail(*block, "no clause of 'match' fits " + ToString(value));
      }
    }
  }

  /// Whether `pattern` fits; binds its variables (also those of patterns that turn out not to fit, which nobody reads).
  bool Matches(const Pattern& pattern, const Value& value, const ExprNode& match, Frame* frame) {
    switch (pattern.kind) {
      case Pattern::Kind::kWildcard: return true;
      case Pattern::Kind::kVar: frame->values[pattern.var.get()] = value; return true;
      case Pattern::Kind::kConstructor:
        if (value.kind() != Value::Kind::kData) Fail(match, "a constructor is matched with " + ToString(value));
        if (value.constructor()->name() != pattern.constructor->name()) return false;
        break;
      case Pattern::Kind::kTuple:
        if (value.kind() != Value::Kind::kTuple) Fail(match, "a tuple is matched with " + ToString(value));
        break;
    }
    if (value.fields().size() != pattern.sub_patterns.size()) {
      Fail(match,
           fmt::format("a pattern of {} fields is matched with {}", pattern.sub_patterns.size(), ToString(value)));
    }
    for (size_t i = 0; i < pattern.sub_patterns.size(); ++i) {
      if (!Matches(pattern.sub_patterns[i], value.fields()[i], match, frame)) return false;
    }
    return true;
  }

  void StepTailCall(Activation& now, const CallNode& call) {
    std::optional<std::vector<Value>> values = CallValues(now, call);
    if (!values) return;
    if (call.op() != nullptr || IsConstructor((*values)[0])) return Return(Apply(call, std::move(*values)));
    const Value callee = std::move(values->front());
    values->erase(values->begin());
    const Expr keep_alive = now.tail;
    stack_.pop_back();
    Open(call, callee, *values);
  }

  // ---- other expressions ----

  void StepPending(Activation& now) {
    const Expr expr = now.pending.back();
    if (IsBlock(expr)) {
      CheckDepth(*expr);
      stack_.push_back({now.frame, expr, true, {}});
      return;
    }
    if (const CallNode* call = As<CallNode>(expr)) {
      std::optional<std::vector<Value>> values = CallValues(now, *call);
      if (!values) return;
      if (call->op() == nullptr && !IsConstructor((*values)[0])) {
        const Value callee = std::move(values->front());
        values->erase(values->begin());
        Open(*call, callee, *values);
        return;
      }
      return Finish(now, Apply(*call, std::move(*values)));
    }
    if (const FunctionNode* function = As<FunctionNode>(expr)) {
      std::optional<std::vector<Value>> captured = NeedAll(now, now.frame->scopes->Captures(*function));
      if (!captured) return;
      return Finish(now, Value::Function(expr, IndexOf(now.frame->scopes), std::move(*captured)));
    }
    if (std::optional<std::vector<Value>> values = NeedAll(now, Children(expr))) {
      Finish(now, Compute(*expr, std::move(*values)));
    }
  }

  static void Finish(Activation& now, Value value) {
    const Expr expr = std::move(now.pending.back());
    now.pending.pop_back();
    now.frame->values[expr.get()] = std::move(value);
  }

  int IndexOf(const ScopeAnalysis* scopes) const {
    for (size_t i = 0; i < analyses_.size(); ++i) {
      if (analyses_[i].get() == scopes) return static_cast<int>(i);
    }
    return -1;
  }

  Value Compute(const ExprNode& expr, std::vector<Value> values) {
    switch (expr.kind()) {
      case ExprKind::kTuple: return Value::Tuple(std::move(values));
      case ExprKind::kTupleGetItem: {
        const int index = static_cast<const TupleGetItemNode&>(expr).index();
        const bool exists = values[0].kind() == Value::Kind::kTuple && index >= 0 &&
                            static_cast<size_t>(index) < values[0].fields().size();
        if (!exists) Fail(expr, fmt::format("field {} of {} does not exist", index, ToString(values[0])));
        return values[0].fields()[index];
      }
      case ExprKind::kRefCreate: return references_.Create(std::move(values[0]));
      case ExprKind::kRefRead: CheckReference(expr, values[0]); return values[0].content();
      case ExprKind::kRefWrite:
        CheckReference(expr, values[0]);
        values[0].set_content(std::move(values[1]));
        return Value::Tuple({});
      default: Fail(expr, "this expression cannot be evaluated");
    }
  }

  static void CheckReference(const ExprNode& expr, const Value& value) {
    if (value.kind() != Value::Kind::kReference) Fail(expr, "expected a reference, got " + ToString(value));
  }

  // ---- calls ----

  static bool IsConstructor(const Value& callee) {
    return callee.kind() == Value::Kind::kFunction && callee.code()->kind() == ExprKind::kConstructor;
  }

  /// Callee (unless an operator) and arguments.
  std::optional<std::vector<Value>> CallValues(Activation& now, const CallNode& call) {
    std::vector<Expr> exprs = call.args();
    if (call.op() == nullptr) exprs.insert(exprs.begin(), call.callee());
    return NeedAll(now, exprs);
  }

  void Open(const CallNode& call, const Value& callee, const std::vector<Value>& args) {
    if (callee.kind() != Value::Kind::kFunction) Fail(call, "calls something that is no function: " + ToString(callee));
    const Function function = AsShared<FunctionNode>(callee.code());
    Enter(function, callee.index(), callee.fields(), args);
    const ScopeAnalysis& scopes = *analyses_[callee.index()];
    if (const VarNode* self = scopes.SelfOf(*function)) stack_.back().frame->values[self] = callee;
  }

  /// A call that needs no activation: of an operator or a constructor.
  Value Apply(const CallNode& call, std::vector<Value> values) {
    const OpDef* op = call.op();
    if (op == nullptr) {
      const Constructor constructor = AsShared<ConstructorNode>(values[0].code());
      values.erase(values.begin());
      return Value::Data(constructor, std::move(values));
    }
    try {
      const bool is_fixed = std::all_of(call.args().begin(), call.args().end(),
                                        [](const Expr& arg) { return arg->kind() == ExprKind::kConstant; });
      if (is_fixed) {
        return ApplyOp(*op, call.attrs(), values,
                       {.on_operator = options_.evaluate.on_operator, .draws = options_.evaluate.draws});
      }
      ++options_.evaluate.seed;
      return ApplyOp(*op, call.attrs(), values, options_.evaluate);
    } catch (const Error& error) {
      if (!error.where().empty()) throw;
      throw Error(error.category(), error.message(), PlaceOf(call.span()), error.hint());
    }
  }

  const IRModule& module_;
  InterpretOptions options_;
  std::vector<std::unique_ptr<ScopeAnalysis>> analyses_;
  std::unordered_map<const FunctionNode*, int> analysis_index_;
  std::vector<Activation> stack_;
  ReferencePool references_;
  Value leaf_;
  Value result_;
};

}  // namespace

Value ApplyOp(const OpDef& op, const Attrs& attrs, const std::vector<Value>& args, const EvaluateOptions& options) {
  std::vector<Type> types;
  std::vector<Tensor> inputs;
  for (const Value& arg : args) {
    types.push_back(TypeOf(arg));
    if (!types.back())
      throw Error(ErrorCategory::kInput, fmt::format("'{}' is called with {}", op.name, ToString(arg)));
    for (Tensor& tensor : FlattenTensors(arg)) inputs.push_back(std::move(tensor));
  }
  const Result<Type> type = op.relation({types, attrs});
  if (!type.ok()) throw Error(ErrorCategory::kInput, fmt::format("'{}' {}", op.name, type.reason().text));
  // A reshape keeps the elements.
  const TensorTypeNode* tensor = op.is_reshape ? AsTensorType(*type) : nullptr;
  if (tensor != nullptr && tensor->is_static()) return Value(inputs[0].Reshaped(tensor->static_shape()));
  const std::vector<Tensor> outputs = EvaluateOp(op, attrs, types, inputs, options);
  size_t next = 0;
  return UnflattenTensors(*type, [&] { return outputs[next++]; });
}

Value Interpret(const IRModule& module, std::string_view name, std::vector<Value> args,
                const InterpretOptions& options) {
  RandomDraws of_new_run;
  InterpretOptions own = options;
  if (own.evaluate.draws == nullptr) own.evaluate.draws = &of_new_run;
  return Interpreter(module, own).Run(name, std::move(args));
}

}  // namespace collage
