// lambda_lift.cc: functions within functions become global ones. Captured values become their first parameters, and
// the place where they were made calls a maker that returns them: `fn (captured) { fn (params) { body } }`, attribute
// Closure. Functions that capture nothing are plain references to the global function.
#include <fmt/format.h>

#include <set>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

/// The type of a function without global functions to look up: from its annotations and what inference left.
Type TypeOfVar(const VarNode& var) { return var.checked_type() ? var.checked_type() : var.type_annotation(); }

class Lifter {
 public:
  Lifter(const IRModule& module, std::string outer) : result_(module), outer_(std::move(outer)) {}

  void Run() {
    const Function function = result_.Lookup(outer_);
    FindRecursion(function);
    const Expr lifted =
        RewriteNodes(function, IsOrdinary, [&](const Expr& original, const Expr& expr, const Rewritten&) {
          const FunctionNode* inner = As<FunctionNode>(original);
          if (inner == nullptr || inner == function.get() || !IsOrdinary(*inner)) return expr;
          return Lift(AsShared<FunctionNode>(original), AsShared<FunctionNode>(expr));
        });
    result_.Set(outer_, AsShared<FunctionNode>(DropBindings(lifted)));
  }

  IRModule result() && { return std::move(result_); }

 private:
  /// Which variable a recursive function calls itself by.
  void FindRecursion(const Function& function) {
    PostOrder(function, [&](const Expr& expr) {
      const LetNode* let = As<LetNode>(expr);
      if (let != nullptr && let->value()->kind() == ExprKind::kFunction) own_var_[let->value().get()] = let->var();
    });
  }

  Expr Lift(const Function& original, const Function& function) {
    std::vector<Var> captured;
    bool is_recursive = false;
    auto own = own_var_.find(original.get());
    for (const Var& var : FreeVars(function)) {
      const bool is_own = own != own_var_.end() && own->second == var;
      is_recursive = is_recursive || is_own;
      if (!is_own) captured.push_back(var);
    }
    const GlobalVar global = std::make_shared<GlobalVarNode>(FreshName());
    global->share_span(*original);
    if (captured.empty()) {
      result_.Set(global->name(),
                  is_recursive ? Renamed(function, own->second, global, original) : WithResult(function, original));
      return global;
    }
    // Captured variables become parameters of the maker; inside, the function calls itself through the maker.
    std::vector<Var> params;
    std::vector<Expr> inside;
    std::unordered_map<const ExprNode*, Expr> replacements;
    for (const Var& var : captured) {
      params.push_back(MakeVar(var->name(), TypeOfVar(*var)));
      inside.push_back(params.back());
      replacements[var.get()] = params.back();
    }
    if (is_recursive) replacements[own->second.get()] = MakeCall(global, inside);
    const Function body = AsShared<FunctionNode>(Substitute(WithResult(function, original), replacements));
    const Type type = original->checked_type();
    result_.Set(global->name(), MakeFunction(std::move(params), body, type, {{"Closure", 1}}));
    const Expr closure = MakeCall(global, {captured.begin(), captured.end()});
    closure->share_span(*original);
    return closure;
  }

  static Function Renamed(const Function& function, const Var& own, const GlobalVar& global, const Function& original) {
    return AsShared<FunctionNode>(Substitute(WithResult(function, original), {{own.get(), global}}));
  }

  /// `function` with its result annotated, since global functions may call each other in circles.
  static Function WithResult(const Function& function, const Function& original) {
    const FuncTypeNode* type = AsFuncType(original->checked_type());
    std::vector<Var> params;
    std::unordered_map<const ExprNode*, Expr> replacements;
    for (const Var& param : function->params()) {
      params.push_back(MakeVar(param->name(), TypeOfVar(*param)));
      replacements[param.get()] = params.back();
    }
    return MakeFunction(std::move(params), Substitute(function->body(), replacements),
                        type == nullptr ? function->result_type() : type->result(), function->attrs(),
                        function->type_params());
  }

  /// Bindings of variables to global functions vanish.
  static Expr DropBindings(const Expr& root) {
    std::unordered_map<const ExprNode*, Expr> globals;
    PostOrder(root, [&](const Expr& expr) {
      const LetNode* let = As<LetNode>(expr);
      if (let != nullptr && let->value()->kind() == ExprKind::kGlobalVar) globals[let->var().get()] = let->value();
    });
    return RewriteNodes(root, [&](const Expr& original, const Expr& expr, const Rewritten&) {
      if (auto it = globals.find(original.get()); it != globals.end()) return it->second;
      const LetNode* let = As<LetNode>(expr);
      return let != nullptr && globals.contains(let->var().get()) ? let->body() : expr;
    });
  }

  std::string FreshName() {
    std::string name;
    do {
      name = fmt::format("{}_lifted_{}", outer_, next_++);
    } while (result_.Has(name));
    return name;
  }

  IRModule result_;
  std::string outer_;
  int next_ = 0;
  std::unordered_map<const ExprNode*, Var> own_var_;
};

}  // namespace

IRModule LambdaLift(IRModule module, const PassContext&) {
  const IRModule before = module;
  for (const auto& [name, function] : before.functions()) {
    if (!IsOrdinary(*function) || function->attrs().IntOr("Closure", 0) != 0) continue;
    if (!function->type_params().empty()) continue;  // functions within may mention its type variables
    Lifter lifter(module, name);
    lifter.Run();
    module = std::move(lifter).result();
  }
  return module;
}

}  // namespace collage
