// activation_lookup.h: activations that several operators compute together and that differ from relu only around zero:
// GELU by its operators, exactly or by tanh.
//
//      f(x) = relu(x) + |x| g(|x|)         g(t) = f(-t) / t, 0 from about 5.5 on
//
// If vectors can look up tables, g is a piecewise polynomial, and none of the operators is computed by itself.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "backends/native/compiler/emit/piecewise_polynomial.h"
#include "collage/ir/expr.h"

namespace collage::native {

/// A function that was found, and how it is looked up.
struct ActivationLookup {
  Expr argument;
  const PiecewisePolynomial* pieces;  ///< the 16 pieces of g
};

/// Finds such functions, and remembers answers by expression; expressions must outlive it.
class ActivationLookups {
 public:
  /// Returns `root` as such a function of some value within it; nothing if it is none. The search does not look into
  /// values for which `is_given` holds. The maximum error is 1.5e-7; beyond the last piece the function equals relu.
  std::optional<ActivationLookup> Find(const Expr& root, const std::function<bool(const Expr&)>& is_given);

 private:
  std::map<std::pair<const ExprNode*, const ExprNode*>, std::optional<PiecewisePolynomial>> known_;
};

}  // namespace collage::native
