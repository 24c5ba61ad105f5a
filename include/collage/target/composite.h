// composite.h: a partition of one match, as its toolchain's description reads it.
#pragma once

#include <unordered_map>

#include "collage/ir/expr.h"

namespace collage {

/// The body of the composite function that a partition calls, or of the partition itself where it calls none, and what
/// the composite's parameters stand for.
class CompositeBody {
 public:
  explicit CompositeBody(const Function& partition);

  const Expr& root() const { return root_; }
  /// Returns the argument of a parameter of the composite: a constant, or a parameter of the partition; else `expr`
  /// itself.
  Expr Outside(const Expr& expr) const;

 private:
  Expr root_;
  std::unordered_map<const ExprNode*, Expr> arguments_;  ///< composite's parameter → what it is called with
};

}  // namespace collage
