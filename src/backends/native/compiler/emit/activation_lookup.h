// activation_lookup.h: functions of one value that several operators put together and that are relu but around zero:
// GELU by its operators, exactly or by tanh.
//
//      gate(x) = relu(x) + |x| g(|x|)         g(t) = gate(-t) / t, 0 from about 5.5 on
//
// Where vectors look up tables, g is a polynomial piece by piece, and none of the operators is computed by itself.
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
  /// The gate that `root` is of some value in it; none where it is no such function. No value for which `is_given`
  /// holds is looked into. The pieces are within
  /// 1.5e-7 of the function; beyond the last piece the function equals relu.
  std::optional<ActivationLookup> Find(const Expr& root, const std::function<bool(const Expr&)>& is_given);

 private:
  std::map<std::pair<const ExprNode*, const ExprNode*>, std::optional<PiecewisePolynomial>> known_;
};

}  // namespace collage::native
