// partial_evaluate.cc: what can be decided now is decided now: operators on constants, branches on known conditions,
// clauses of known data, fields of known tuples, calls of known functions. Recursive functions are unrolled as long as
// an argument is known, up to a bound, so that a loop with a known number of rounds becomes straight code.
#include <unordered_set>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "ir/eval/evaluate.h"
#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

// Calls of named functions that may be expanded in one function: a loop that needs more stays a loop. Loops of models
// have tens of rounds.
constexpr int kMostExpansions = 256;
// Nodes by which a function may grow: functions of which each calls the one before twice double with each.
constexpr size_t kMostGrowth = 20000;
// Nodes that may be looked at again and again, and how often all of a large function's may: functions that are passed
// to themselves as data go on for ever. A loop of 256 rounds of 30 nodes takes a million.
constexpr size_t kMostWork = 2000000;
constexpr size_t kMostRounds = 32;
// A constant larger than this is not made, unless its arguments were as large.
constexpr size_t kLargestGrowth = size_t{16} << 20;

/// Constructors applied to arguments, or without any.
bool IsData(const Expr& expr, const ConstructorNode** constructor, std::vector<Expr>* fields) {
  if (const ConstructorNode* alone = As<ConstructorNode>(expr)) {
    *constructor = alone;
    return alone->inputs().empty();
  }
  const CallNode* call = As<CallNode>(expr);
  *constructor = call == nullptr ? nullptr : As<ConstructorNode>(call->callee());
  if (*constructor != nullptr) *fields = call->args();
  return *constructor != nullptr;
}

enum class Match : uint8_t { kYes, kNo, kUnknown };

Match TryMatch(const Pattern& pattern, const Expr& value, std::unordered_map<const ExprNode*, Expr>& bindings) {
  switch (pattern.kind) {
    case Pattern::Kind::kWildcard: return Match::kYes;
    case Pattern::Kind::kVar: bindings[pattern.var.get()] = value; return Match::kYes;
    case Pattern::Kind::kTuple:
    case Pattern::Kind::kConstructor: break;
  }
  std::vector<Expr> fields;
  if (const TupleNode* tuple = As<TupleNode>(value)) {
    fields = tuple->fields();
  } else {
    const ConstructorNode* constructor = nullptr;
    if (pattern.kind == Pattern::Kind::kTuple || !IsData(value, &constructor, &fields)) return Match::kUnknown;
    if (constructor->name() != pattern.constructor->name()) return Match::kNo;
  }
  Match result = Match::kYes;
  for (size_t i = 0; i < pattern.sub_patterns.size() && i < fields.size(); ++i) {
    const Match field = TryMatch(pattern.sub_patterns[i], fields[i], bindings);
    if (field == Match::kNo) return field;
    if (field == Match::kUnknown) result = field;
  }
  return result;
}

/// Limit and count of steps for evaluating one function.
struct Effort {
  size_t most_nodes;
  size_t most_work;
  int expansions = 0;  // calls of named functions
  size_t work = 0;     // nodes visited or copied

  explicit Effort(const Function& function) {
    const size_t size = CountNodes(function);
    most_nodes = size + kMostGrowth;
    most_work = size * kMostRounds + kMostWork;
  }
  bool IsSpent() const { return expansions > kMostExpansions || work > most_work; }
};

/// One round: known things at the leaves make more known above them; what an expansion reveals waits for the next
/// round.
class Round {
 public:
  Round(const IRModule& module, Effort* effort, bool expand) : module_(module), effort_(effort), expand_(expand) {}

  Function Run(const Function& function) {
    FindBindings(function);
    return AsShared<FunctionNode>(
        RewriteNodes(function, IsOrdinary, [&](const Expr& original, const Expr& expr, const Rewritten& done) {
          const Expr result = Simplify(original, expr, done);
          changed_ = changed_ || result != original;
          return result;
        }));
  }
  bool changed() const { return changed_; }

 private:
  void FindBindings(const Function& function) {
    PostOrder(function, [&](const Expr& expr) {
      const LetNode* let = As<LetNode>(expr);
      if (let == nullptr) return;
      lets_[let->var().get()] = let->value();
      if (let->value()->kind() != ExprKind::kFunction) return;
      for (const Var& var : FreeVars(let->value())) {
        if (var == let->var()) recursive_.insert(var.get());
      }
    });
  }

  Expr Simplify(const Expr& original, const Expr& expr, const Rewritten& done) {
    switch (expr->kind()) {
      case ExprKind::kVar: return KnownValue(original, done);
      case ExprKind::kTupleGetItem: {
        const auto& item = static_cast<const TupleGetItemNode&>(*expr);
        const TupleNode* tuple = As<TupleNode>(item.tuple());
        return tuple == nullptr ? expr : tuple->fields()[item.index()];
      }
      case ExprKind::kIf: {
        const auto& branch = static_cast<const IfNode&>(*expr);
        const ConstantNode* condition = As<ConstantNode>(branch.condition());
        if (condition == nullptr) return expr;
        return condition->value().At(0) != 0 ? branch.then_branch() : branch.else_branch();
      }
      case ExprKind::kMatch: return ChooseClause(expr);
      case ExprKind::kCall: return SimplifyCall(expr);
      default: return expr;
    }
  }

  /// Returns the value of a variable if it is more informative than the variable: constants, other names, tuples, data,
  /// and functions that do not call themselves. The node is shared, so that nothing is computed twice.
  Expr KnownValue(const Expr& var, const Rewritten& done) const {
    auto it = lets_.find(var.get());
    if (it == lets_.end() || recursive_.contains(var.get())) return var;
    auto value = done.find(it->second.get());
    return value != done.end() && IsKnown(value->second) ? value->second : var;
  }

  static bool IsKnown(const Expr& expr) {
    switch (expr->kind()) {
      case ExprKind::kConstant:
      case ExprKind::kVar:
      case ExprKind::kGlobalVar:
      case ExprKind::kConstructor:
      case ExprKind::kFunction:
      case ExprKind::kTuple: return true;
      case ExprKind::kCall: return As<ConstructorNode>(static_cast<const CallNode&>(*expr).callee()) != nullptr;
      default: return false;
    }
  }

  Expr ChooseClause(const Expr& expr) const {
    const auto& match = static_cast<const MatchNode&>(*expr);
    for (const Clause& clause : match.clauses()) {
      std::unordered_map<const ExprNode*, Expr> bindings;
      const Match result = TryMatch(clause.pattern, match.data(), bindings);
      if (result == Match::kUnknown) return expr;
      if (result == Match::kYes) return bindings.empty() ? clause.body : Substitute(clause.body, bindings);
    }
    return expr;
  }

  Expr SimplifyCall(const Expr& expr) {
    const auto& call = static_cast<const CallNode&>(*expr);
    if (call.op() != nullptr) return Fold(call, expr);
    Function callee = AsShared<FunctionNode>(call.callee());
    bool is_named = false;  // and may call itself
    if (const GlobalVarNode* global = As<GlobalVarNode>(call.callee());
        global != nullptr && module_.Has(global->name())) {
      callee = module_.Lookup(global->name());
      is_named = true;
    } else if (auto it = lets_.find(call.callee().get()); it != lets_.end()) {
      callee = AsShared<FunctionNode>(it->second);
      is_named = true;
    }
    if (!callee || !IsOrdinary(*callee) || !callee->type_params().empty()) return expr;
    if (is_named && (!expand_ || !SomeArgumentIsKnown(call))) return expr;
    const size_t size = CountNodes(callee);
    if (copied_ + size > effort_->most_nodes || effort_->IsSpent()) return expr;
    copied_ += size;
    effort_->work += size;
    if (is_named) ++effort_->expansions;
    const Function copy = WithFreshVars(callee);
    Expr body = copy->body();
    for (size_t i = call.args().size(); i-- > 0;) {
      body = std::make_shared<LetNode>(copy->params()[i], call.args()[i], body);
      body->share_span(call);
    }
    return body;
  }

  /// Whether unrolling can come to an end: an argument on which the function may decide is known.
  static bool SomeArgumentIsKnown(const CallNode& call) {
    for (const Expr& arg : call.args()) {
      const ConstructorNode* constructor = nullptr;
      std::vector<Expr> fields;
      const ConstantNode* constant = As<ConstantNode>(arg);
      if ((constant != nullptr && constant->is_scalar()) || IsData(arg, &constructor, &fields)) return true;
    }
    return false;
  }

  static Expr Fold(const CallNode& call, const Expr& expr) {
    std::vector<Tensor> inputs;
    std::vector<Type> types;
    size_t bytes = 0;
    for (const Expr& arg : call.args()) {
      const TupleNode* tuple = As<TupleNode>(arg);
      for (const Expr& leaf : tuple != nullptr ? tuple->fields() : std::vector<Expr>{arg}) {
        const ConstantNode* constant = As<ConstantNode>(leaf);
        if (constant == nullptr) return expr;
        inputs.push_back(constant->value());
        bytes += constant->value().size_bytes();
      }
      types.push_back(InferType(arg));
    }
    if (inputs.empty() || !ShouldFold(*call.op(), inputs)) return expr;
    const Result<Type> type = call.op()->relation({types, call.attrs()});
    const TensorTypeNode* tensor = type.ok() ? AsTensorType(*type) : nullptr;
    if (tensor == nullptr || !tensor->is_static()) return expr;
    const size_t result_bytes = static_cast<size_t>(NumElements(tensor->static_shape())) * tensor->dtype().size_bytes();
    if (result_bytes > kLargestGrowth && result_bytes > bytes) return expr;
    const Expr constant = MakeConstant(EvaluateOp(*call.op(), call.attrs(), types, inputs)[0]);
    constant->share_span(*expr);
    return constant;
  }

  const IRModule& module_;
  Effort* effort_;
  bool expand_;
  bool changed_ = false;
  size_t copied_ = 0;  // in this round
  std::unordered_map<const ExprNode*, Expr> lets_;
  std::unordered_set<const ExprNode*> recursive_;
};

}  // namespace

Function PartialEvaluate(const Function& function, const IRModule& module, const PassContext& context) {
  // No effect may be moved, doubled or dropped.
  if (WritesReferences(module)) return function;
  const auto evaluate = [&](bool expand) -> Function {
    Effort effort(function);
    Function result = function;
    for (bool changed = true; changed;) {
      Round round(module, &effort, expand);
      result = round.Run(result);
      changed = round.changed();
      const size_t size = CountNodes(result);
      effort.work += size;
      if (effort.IsSpent() || size > effort.most_nodes) return nullptr;
    }
    return result;
  };
  Function result = evaluate(/*expand=*/true);
  if (!result) result = evaluate(/*expand=*/false);
  return result ? DeadCodeElimination(result, module, context) : function;
}

}  // namespace collage
