// written_out.h: recognises what exporters write out for functions that XNNPACK has whole.
#pragma once

#include <optional>
#include <string_view>

#include "collage/ir/expr.h"

namespace collage::xnnpack_toolchain {

/// The call of `op` that `expr` is; null for anything else.
const CallNode* CallOf(const Expr& expr, std::string_view op);

/// The value of a constant with one element.
std::optional<double> ScalarValue(const Expr& expr);

/// The x of which `expr` is the hard swish, x * clip(x + 3, 0, 6) / 6, in any association and order; null when it is
/// none.
Expr HardSwishOf(const Expr& expr);

/// x and alpha of relu(x) + alpha * (exp(min(x, 0)) - 1); no x when `expr` is something else.
struct Elu {
  Expr x;
  double alpha = 0;
};
Elu EluOf(const Expr& expr);

/// The x that `expr` is the square of: x * x, or x to the power of 2.
Expr SquareOf(const Expr& expr);

}  // namespace collage::xnnpack_toolchain
