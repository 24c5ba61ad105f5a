// gates.h: functions of one value that several operators put together and that are relu but around zero: GELU as it is
// written out, exactly or by tanh.
//
//      gate(x) = relu(x) + |x| g(|x|)         g(t) = gate(-t) / t, 0 from about 5.5 on
//
// Where vectors look up tables, g is a polynomial piece by piece, and none of the operators is computed by itself.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "backends/native/compiler/emit/pieces.h"
#include "collage/ir/expr.h"

namespace collage::native {

/// A gate that was found.
struct Gate {
  Expr argument;
  const Pieces* pieces;  ///< of g: 16 of them
};

/// Remembers what was found out about expressions, which must outlive it.
class Gates {
 public:
  /// The gate that `root` is of some value in it; none where it is no such function. No value for which `is_given`
  /// holds is looked into. The pieces are within 1.5e-7 of the function, and relu is where they have ended.
  std::optional<Gate> Find(const Expr& root, const std::function<bool(const Expr&)>& is_given);

 private:
  std::map<std::pair<const ExprNode*, const ExprNode*>, std::optional<Pieces>> known_;
};

}  // namespace collage::native
