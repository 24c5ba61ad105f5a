// scope_tree.h: how branches, clauses, functions and the bodies of lets nest.
#pragma once

#include <cstddef>
#include <vector>

namespace collage {

/// Scopes by number; 0 is the whole function. Ancestors are found in time logarithmic in depth, by jumps (after Myers,
/// "An applicative random-access stack", 1983): bodies of lets nest as deeply as a program is long.
class ScopeTree {
 public:
  ScopeTree() : scopes_{{0, 0, 0, 0}} {}

  /// A new one within `parent`; `is_branch` says that it is no let's body.
  int Add(int parent, bool is_branch) {
    const Scope& up = At(parent);
    const Scope& jump = At(up.jump);
    const int number = static_cast<int>(scopes_.size());
    const bool jumps_twice = up.depth - jump.depth == jump.depth - At(jump.jump).depth;
    scopes_.push_back({parent, jumps_twice ? jump.jump : parent, up.depth + 1, is_branch ? number : up.branch});
    return number;
  }

  int DepthOf(int scope) const { return At(scope).depth; }
  /// The innermost branch, clause or function that holds `scope`, by its own number.
  int BranchOf(int scope) const { return At(scope).branch; }
  bool IsWithin(int inner, int outer) const { return AtDepth(inner, DepthOf(outer)) == outer; }
  /// The innermost scope that holds both.
  int Common(int a, int b) const {
    if (DepthOf(a) > DepthOf(b)) a = AtDepth(a, DepthOf(b));
    if (DepthOf(b) > DepthOf(a)) b = AtDepth(b, DepthOf(a));
    while (a != b) {
      const bool far = At(a).jump != At(b).jump;
      a = far ? At(a).jump : At(a).parent;
      b = far ? At(b).jump : At(b).parent;
    }
    return a;
  }

 private:
  struct Scope {
    int parent;
    int jump;  ///< a further ancestor; of equal depths, those of two scopes are equally deep
    int depth;
    int branch;
  };
  const Scope& At(int scope) const { return scopes_[static_cast<size_t>(scope)]; }

  /// The ancestor at `depth`, or `scope` itself when it is not that deep.
  int AtDepth(int scope, int depth) const {
    while (DepthOf(scope) > depth) scope = DepthOf(At(scope).jump) >= depth ? At(scope).jump : At(scope).parent;
    return scope;
  }

  std::vector<Scope> scopes_;
};

}  // namespace collage
