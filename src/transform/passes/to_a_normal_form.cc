// to_a_normal_form.cc: every intermediate value gets a name, in the order of evaluation: operands of calls are
// variables, constants, operators or kernels. A value used in several branches is bound in the innermost scope around
// them all.
#include "collage/ir/visitor.h"
#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

/// A function's body, a branch or a clause: where names are bound.
struct Scope {
  int parent = -1;
  int depth = 0;
  std::vector<std::pair<Var, Expr>> bindings;
};

class Normalizer {
 public:
  Function Run(const Function& function) {
    FindScopes(function);
    return AsShared<FunctionNode>(Normalize(function));
  }

 private:
  static bool IsAtom(const ExprNode& expr) {
    switch (expr.kind()) {
      case ExprKind::kVar:
      case ExprKind::kGlobalVar:
      case ExprKind::kConstant:
      case ExprKind::kOp:
      case ExprKind::kConstructor: return true;
      case ExprKind::kFunction: return !IsOrdinary(static_cast<const FunctionNode&>(expr));
      default: return false;
    }
  }

  /// Whether the child at `index` of `expr` begins a scope.
  static bool BeginsScope(const ExprNode& expr, size_t index) {
    switch (expr.kind()) {
      case ExprKind::kFunction: return true;
      case ExprKind::kIf:
      case ExprKind::kMatch: return index > 0;
      default: return false;
    }
  }

  static std::vector<Expr> ScopedChildren(const Expr& expr) {
    return expr->kind() == ExprKind::kFunction && IsAtom(*expr) ? std::vector<Expr>{} : Children(expr);
  }

  int NewScope(int parent) {
    scopes_.push_back({parent, parent < 0 ? 0 : scopes_[parent].depth + 1, {}});
    return static_cast<int>(scopes_.size()) - 1;
  }

  int CommonScope(int a, int b) const {
    while (a != b) {
      int& deeper = scopes_[a].depth >= scopes_[b].depth ? a : b;
      deeper = scopes_[deeper].parent;
    }
    return a;
  }

  /// Users before what they use: a node's scope is the innermost around all its uses.
  void FindScopes(const Function& function) {
    std::vector<Expr> order;
    PostOrder(function, [&](const Expr& expr) { order.push_back(expr); });
    scope_of_[function.get()] = NewScope(-1);
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      auto own = scope_of_.find(it->get());
      if (own == scope_of_.end()) continue;  // inside a kernel
      const int scope = own->second;
      const std::vector<Expr> children = ScopedChildren(*it);
      for (size_t i = 0; i < children.size(); ++i) {
        int use = scope;
        if (BeginsScope(**it, i)) {
          use = NewScope(scope);
          inner_scopes_[it->get()].push_back(use);
        }
        auto [at, is_new] = scope_of_.emplace(children[i].get(), use);
        if (!is_new) at->second = CommonScope(at->second, use);
      }
    }
  }

  /// A node whose operands are being named, one after the other.
  struct Task {
    Expr expr;
    std::vector<Expr> children;
    std::vector<Expr> atoms;  ///< each child's atom: a name, or a scope's bindings and result
  };

  Expr Normalize(const Expr& root) {
    std::vector<Task> tasks;
    tasks.push_back({root, ScopedChildren(root), {}});
    while (true) {
      Task& task = tasks.back();
      if (task.atoms.size() == task.children.size()) {
        const Expr result = Rebuild(task);
        if (tasks.size() == 1) return result;
        const Expr expr = task.expr;
        tasks.pop_back();
        Name(expr, result, tasks.back());
        continue;
      }
      const Expr& child = task.children[task.atoms.size()];
      auto it = done_.find(child.get());
      if (it != done_.end()) {
        TakeAtom(task, it->second);
      } else {
        tasks.push_back({child, ScopedChildren(child), {}});
      }
    }
  }

  Scope& ScopeOf(const Expr& expr) { return scopes_[scope_of_.at(expr.get())]; }

  /// Gives `result`, the normal form of `expr`, a name in its scope: a let's own variable if it is a let's value. What
  /// is an atom already, or a let, which has become its body's atom, needs none.
  void Name(const Expr& expr, const Expr& result, const Task& parent) {
    if (IsAtom(*expr) || expr->kind() == ExprKind::kLet) {
      done_[expr.get()] = result;
      return;
    }
    const LetNode* let = As<LetNode>(parent.expr);
    const bool is_value = let != nullptr && parent.atoms.empty() && scope_of_.at(expr.get()) == scope_of_.at(let);
    const Var var = is_value ? let->var() : MakeVar("x");
    var->share_span(*expr);
    ScopeOf(expr).bindings.emplace_back(var, result);
    done_[expr.get()] = var;
  }

  void TakeAtom(Task& task, const Expr& atom) {
    const size_t index = task.atoms.size();
    const LetNode* let = As<LetNode>(task.expr);
    if (let != nullptr && index == 0 && atom != Expr(let->var()))
      ScopeOf(task.expr).bindings.emplace_back(let->var(), atom);
    if (!BeginsScope(*task.expr, index)) return task.atoms.push_back(atom);
    const size_t first = task.expr->kind() == ExprKind::kFunction ? 0 : 1;
    Scope& scope = scopes_[inner_scopes_.at(task.expr.get())[index - first]];
    Expr body = atom;
    for (auto it = scope.bindings.rbegin(); it != scope.bindings.rend(); ++it) {
      body = std::make_shared<LetNode>(it->first, it->second, body);
    }
    scope.bindings.clear();
    task.atoms.push_back(std::move(body));
  }

  static Expr Rebuild(const Task& task) {
    if (IsAtom(*task.expr)) return task.expr;
    if (task.expr->kind() == ExprKind::kLet) return task.atoms[1];
    return WithChildren(task.expr, task.atoms);
  }

  std::vector<Scope> scopes_;
  std::unordered_map<const ExprNode*, int> scope_of_;
  std::unordered_map<const ExprNode*, std::vector<int>> inner_scopes_;
  std::unordered_map<const ExprNode*, Expr> done_;  ///< the atom that stands for a node
};

}  // namespace

Function ToANormalForm(const Function& function) { return Normalizer().Run(function); }

}  // namespace collage
