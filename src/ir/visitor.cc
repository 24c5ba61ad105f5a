// visitor.cc: post-order traversal and bottom-up rewriting.
#include "collage/ir/visitor.h"

#include <cstdint>
#include <initializer_list>
#include <unordered_set>

#include "collage/support/error.h"
#include "ir/node_map.h"

namespace collage {

const Expr* ChildAt(const ExprNode& expr, size_t index) {
  const auto one_of = [index](std::initializer_list<const Expr*> children) {
    return index < children.size() ? *(children.begin() + index) : nullptr;
  };
  switch (expr.kind()) {
    case ExprKind::kVar:
    case ExprKind::kGlobalVar:
    case ExprKind::kConstant:
    case ExprKind::kOp:
    case ExprKind::kConstructor: return nullptr;
    case ExprKind::kTuple: {
      const std::vector<Expr>& fields = static_cast<const TupleNode&>(expr).fields();
      return index < fields.size() ? &fields[index] : nullptr;
    }
    case ExprKind::kTupleGetItem: return one_of({&static_cast<const TupleGetItemNode&>(expr).tuple()});
    case ExprKind::kCall: {
      const auto& call = static_cast<const CallNode&>(expr);
      if (index == 0) return &call.callee();
      return index <= call.args().size() ? &call.args()[index - 1] : nullptr;
    }
    case ExprKind::kFunction: return one_of({&static_cast<const FunctionNode&>(expr).body()});
    case ExprKind::kLet: {
      const auto& let = static_cast<const LetNode&>(expr);
      return one_of({&let.value(), &let.body()});
    }
    case ExprKind::kIf: {
      const auto& branch = static_cast<const IfNode&>(expr);
      return one_of({&branch.condition(), &branch.then_branch(), &branch.else_branch()});
    }
    case ExprKind::kMatch: {
      const auto& match = static_cast<const MatchNode&>(expr);
      if (index == 0) return &match.data();
      return index <= match.clauses().size() ? &match.clauses()[index - 1].body : nullptr;
    }
    case ExprKind::kRefCreate: return one_of({&static_cast<const RefCreateNode&>(expr).value()});
    case ExprKind::kRefRead: return one_of({&static_cast<const RefReadNode&>(expr).ref()});
    case ExprKind::kRefWrite: {
      const auto& write = static_cast<const RefWriteNode&>(expr);
      return one_of({&write.ref(), &write.value()});
    }
  }
  return nullptr;
}

std::vector<Expr> Children(const Expr& expr) {
  std::vector<Expr> children;
  for (size_t i = 0; const Expr* child = ChildAt(*expr, i); ++i) children.push_back(*child);
  return children;
}

void PostOrder(const Expr& root, const WalkLimits& limits, const std::function<void(const Expr&)>& visit) {
  // Nodes keep what they refer to, so that pointers to children stay valid as long as `root` lives.
  struct Frame {
    const Expr* expr;
    size_t next;
  };
  constexpr size_t kNone = SIZE_MAX;
  const auto first_child = [&](const Expr& expr) { return !limits.enters || limits.enters(expr) ? 0 : kNone; };
  const Expr kept = root;
  struct Seen {};
  NodeMap<Seen> seen;
  seen.Emplace(root.get(), {});
  std::vector<Frame> stack{{&kept, first_child(root)}};
  while (!stack.empty()) {
    Frame& frame = stack.back();
    const Expr* child = frame.next == kNone ? nullptr : ChildAt(**frame.expr, frame.next++);
    if (child == nullptr) {
      visit(*frame.expr);
      stack.pop_back();
    } else if (*child && (!limits.visits || limits.visits(*child)) && seen.Emplace(child->get(), {}).second) {
      stack.push_back({child, first_child(*child)});
    }
  }
}

void PostOrder(const Expr& root, const std::function<void(const Expr&)>& visit) {
  PostOrder(root, WalkLimits{}, visit);
}

void PostOrderInScope(const Expr& root, const std::function<void(const Expr&)>& visit) {
  const ExprNode* scope = root.get();
  const auto enters = [scope](const Expr& expr) { return expr.get() == scope || expr->kind() != ExprKind::kFunction; };
  PostOrder(root, {.visits = nullptr, .enters = enters}, visit);
}

void PostOrderWithValues(const Expr& root, const std::function<void(const Expr&, const Expr&)>& visit) {
  std::unordered_map<const ExprNode*, Expr> bound;
  PostOrderInScope(root, [&](const Expr& expr) {
    if (const LetNode* let = As<LetNode>(expr)) bound[let->var().get()] = let->value();
  });
  PostOrderInScope(root, [&](const Expr& expr) {
    const auto value = bound.find(expr.get());
    visit(expr, value == bound.end() ? Expr() : value->second);
  });
}

Expr WithChildren(const Expr& expr, const std::vector<Expr>& children) {
  Expr result;
  switch (expr->kind()) {
    case ExprKind::kTuple: result = MakeTuple(children); break;
    case ExprKind::kTupleGetItem:
      result = MakeTupleGetItem(children[0], static_cast<const TupleGetItemNode&>(*expr).index());
      break;
    case ExprKind::kCall: {
      const auto& call = static_cast<const CallNode&>(*expr);
      result = MakeCall(children[0], {children.begin() + 1, children.end()}, call.attrs(), call.type_args());
      break;
    }
    case ExprKind::kFunction: {
      const auto& function = static_cast<const FunctionNode&>(*expr);
      result = MakeFunction(function.params(), children[0], function.result_type(), function.attrs(),
                            function.type_params());
      break;
    }
    case ExprKind::kLet:
      result = std::make_shared<LetNode>(static_cast<const LetNode&>(*expr).var(), children[0], children[1]);
      break;
    case ExprKind::kIf: result = std::make_shared<IfNode>(children[0], children[1], children[2]); break;
    case ExprKind::kMatch: {
      const auto& match = static_cast<const MatchNode&>(*expr);
      std::vector<Clause> clauses = match.clauses();
      for (size_t i = 0; i < clauses.size(); ++i) clauses[i].body = children[i + 1];
      result = std::make_shared<MatchNode>(children[0], std::move(clauses), match.complete());
      break;
    }
    case ExprKind::kRefCreate: result = std::make_shared<RefCreateNode>(children[0]); break;
    case ExprKind::kRefRead: result = std::make_shared<RefReadNode>(children[0]); break;
    case ExprKind::kRefWrite: result = std::make_shared<RefWriteNode>(children[0], children[1]); break;
    default: COLLAGE_CHECK(children.empty()) << "a leaf has no children"; return expr;
  }
  result->share_span(*expr);
  if (!(expr->virtual_device() == VirtualDevice())) result->set_virtual_device(expr->virtual_device());
  return result;
}

Expr Rewrite(const Expr& root, const std::function<Expr(const Expr&)>& rewrite) {
  NodeMap<Expr> done;
  PostOrder(root, [&](const Expr& expr) {
    std::vector<Expr> children = Children(expr);
    bool changed = false;
    for (Expr& child : children) {
      if (!child) continue;
      const Expr& replacement = *done.Find(child.get());
      changed = changed || replacement != child;
      child = replacement;
    }
    done.Emplace(expr.get(), rewrite(changed ? WithChildren(expr, children) : expr));
  });
  return *done.Find(root.get());
}

Expr Substitute(const Expr& root, const std::unordered_map<const ExprNode*, Expr>& replacements) {
  return Rewrite(root, [&](const Expr& expr) {
    auto it = replacements.find(expr.get());
    return it == replacements.end() ? expr : it->second;
  });
}

namespace {

void BindPattern(const Pattern& pattern, std::unordered_set<const ExprNode*>& bound) {
  if (pattern.var) bound.insert(pattern.var.get());
  for (const Pattern& sub : pattern.sub_patterns) BindPattern(sub, bound);
}

}  // namespace

std::vector<Var> FreeVars(const Expr& root) {
  // A variable's identity is its node and it is bound in one place, so what is bound anywhere is not free.
  std::unordered_set<const ExprNode*> bound;
  std::vector<Var> used;
  PostOrder(root, [&](const Expr& expr) {
    if (Var var = AsShared<VarNode>(expr)) {
      used.push_back(std::move(var));
    } else if (const FunctionNode* function = As<FunctionNode>(expr)) {
      for (const Var& param : function->params()) bound.insert(param.get());
    } else if (const LetNode* let = As<LetNode>(expr)) {
      bound.insert(let->var().get());
    } else if (const MatchNode* match = As<MatchNode>(expr)) {
      for (const Clause& clause : match->clauses()) BindPattern(clause.pattern, bound);
    }
  });
  std::erase_if(used, [&](const Var& var) { return bound.count(var.get()) != 0; });
  return used;
}

size_t CountNodes(const Expr& root) {
  size_t count = 0;
  PostOrder(root, [&](const Expr&) { ++count; });
  return count;
}

}  // namespace collage
