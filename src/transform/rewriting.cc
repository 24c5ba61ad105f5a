// rewriting.cc: explicit stacks throughout: graphs may be 100,000 nodes deep.
#include "transform/rewriting.h"

#include <unordered_set>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"

namespace collage {

Expr RewriteNodes(const Expr& root, const std::function<Expr(const Expr&, const Expr&, const Rewritten&)>& rewrite) {
  return RewriteNodes(
      root, [](const FunctionNode&) { return true; }, rewrite);
}

Expr RewriteNodes(const Expr& root, const std::function<bool(const FunctionNode&)>& enters,
                  const std::function<Expr(const Expr&, const Expr&, const Rewritten&)>& rewrite) {
  const auto is_entered = [&](const Expr& expr) {
    const FunctionNode* function = As<FunctionNode>(expr);
    return function == nullptr || enters(*function);
  };
  Rewritten done;
  PostOrder(root, {.visits = nullptr, .enters = is_entered}, [&](const Expr& expr) {
    if (!is_entered(expr)) {
      done[expr.get()] = rewrite(expr, expr, done);
      return;
    }
    std::vector<Expr> children = Children(expr);
    bool changed = false;
    for (Expr& child : children) {
      if (!child) continue;
      const Expr& replacement = done.at(child.get());
      changed = changed || replacement != child;
      child = replacement;
    }
    Expr result = rewrite(expr, changed ? WithChildren(expr, children) : expr, done);
    done[expr.get()] = std::move(result);
  });
  return done.at(root.get());
}

bool IsOrdinary(const FunctionNode& function) {
  const Attrs& attrs = function.attrs();
  return attrs.IntOr("Primitive", 0) == 0 && !attrs.Has("Composite") && !attrs.Has("Compiler");
}

const OpDef* CalledOp(const Expr& expr) {
  const CallNode* call = As<CallNode>(expr);
  return call == nullptr ? nullptr : call->op();
}

const CallNode* AsCallOf(const Expr& expr, std::string_view name) {
  const OpDef* op = CalledOp(expr);
  return op != nullptr && op->name == name ? As<CallNode>(expr) : nullptr;
}

Expr TypedCall(std::string_view op, std::vector<Expr> args, const ExprNode& origin, Attrs attrs) {
  Expr call = MakeCall(op, std::move(args), std::move(attrs));
  call->share_span(origin);
  InferType(call);
  return call;
}

std::unordered_map<const ExprNode*, int> CountUses(const Expr& root) {
  std::unordered_map<const ExprNode*, int> uses;
  PostOrder(root, [&](const Expr& expr) {
    for (const Expr& child : Children(expr)) {
      if (child) ++uses[child.get()];
    }
  });
  ++uses[root.get()];
  return uses;
}

namespace {

Pattern FreshPattern(const Pattern& pattern, std::unordered_map<const ExprNode*, Expr>& fresh) {
  Pattern result = pattern;
  if (pattern.var) {
    result.var = MakeVar(pattern.var->name(), pattern.var->type_annotation());
    fresh[pattern.var.get()] = result.var;
  }
  for (Pattern& sub : result.sub_patterns) sub = FreshPattern(sub, fresh);
  return result;
}

}  // namespace

Function WithFreshVars(const Function& function) {
  std::unordered_map<const ExprNode*, Expr> fresh;
  std::unordered_map<const ExprNode*, std::vector<Pattern>> patterns;
  const auto renew = [&](const Var& var) {
    const Var copy = MakeVar(var->name(), var->type_annotation() ? var->type_annotation() : var->checked_type());
    copy->share_span(*var);
    if (!(var->virtual_device() == VirtualDevice())) copy->set_virtual_device(var->virtual_device());
    fresh[var.get()] = copy;
  };
  PostOrder(function, [&](const Expr& expr) {
    if (const FunctionNode* inner = As<FunctionNode>(expr)) {
      for (const Var& param : inner->params()) renew(param);
    } else if (const LetNode* let = As<LetNode>(expr)) {
      renew(let->var());
    } else if (const MatchNode* match = As<MatchNode>(expr)) {
      for (const Clause& clause : match->clauses()) patterns[match].push_back(FreshPattern(clause.pattern, fresh));
    }
  });
  const auto fresh_var = [&](const Var& var) { return AsShared<VarNode>(fresh.at(var.get())); };
  return AsShared<FunctionNode>(RewriteNodes(function, [&](const Expr& original, const Expr& expr, const Rewritten&) {
    auto it = fresh.find(original.get());
    if (it != fresh.end()) return it->second;
    Expr result = expr;
    if (const FunctionNode* inner = As<FunctionNode>(expr)) {
      std::vector<Var> params;
      for (const Var& param : inner->params()) params.push_back(fresh_var(param));
      result =
          MakeFunction(std::move(params), inner->body(), inner->result_type(), inner->attrs(), inner->type_params());
    } else if (const LetNode* let = As<LetNode>(expr)) {
      result = std::make_shared<LetNode>(fresh_var(let->var()), let->value(), let->body());
    } else if (const MatchNode* match = As<MatchNode>(expr)) {
      std::vector<Clause> clauses = match->clauses();
      for (size_t i = 0; i < clauses.size(); ++i) clauses[i].pattern = patterns.at(original.get())[i];
      result = std::make_shared<MatchNode>(match->data(), std::move(clauses), match->complete());
    }
    result->share_span(*original);
    if (!(original->virtual_device() == VirtualDevice())) result->set_virtual_device(original->virtual_device());
    return result;
  }));
}

Expr InlinedCall(const Function& function, const std::vector<Expr>& args) {
  const Function copy = WithFreshVars(function);  // it may be called in several places
  std::unordered_map<const ExprNode*, Expr> arguments;
  for (size_t i = 0; i < args.size(); ++i) arguments[copy->params()[i].get()] = args[i];
  return Substitute(copy->body(), arguments);
}

bool WritesReferences(const Expr& root) {
  bool found = false;
  PostOrder(root, [&](const Expr& expr) { found = found || expr->kind() == ExprKind::kRefWrite; });
  return found;
}

bool WritesReferences(const IRModule& module) {
  for (const auto& [name, function] : module.functions()) {
    if (WritesReferences(Expr(function))) return true;
  }
  return false;
}

}  // namespace collage
