// function_size.h: how much a function computes, before it is evaluated.
#pragma once

#include <cstdint>

#include "collage/ir/expr.h"
#include "collage/ir/visitor.h"

namespace collage {

/// Elements of all values in `function`, its parameters among them; of unknown sizes, as if they were 4. Somewhat more
/// than `most` if there are more.
inline int64_t NumElementsIn(const Function& function, int64_t most) {
  int64_t count = 0;
  const auto add = [&](const Expr& expr) {
    if (!expr->checked_type() || AsFuncType(expr->checked_type()) != nullptr || count > most) return;
    for (const Type& leaf : FlattenTensorTypes(expr->checked_type())) {
      int64_t own = 1;
      for (const Dim& dim : AsTensorType(leaf)->shape()) {
        const bool overflows = __builtin_mul_overflow(own, dim.is_any() ? 4 : dim.size(), &own);
        if (overflows || own > most) own = most + 1;
      }
      count += own;
    }
  };
  for (const Var& param : function->params()) add(param);
  PostOrder(function, add);
  return count;
}

}  // namespace collage
