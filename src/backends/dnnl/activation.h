// activation.h: recognises what exporters write out for functions that oneDNN has whole: GELU, swish, mish, ELU.
#pragma once

#include <optional>

#include "backends/dnnl/spec.h"
#include "collage/ir/expr.h"

namespace collage::dnnl_toolchain {

/// The value of a constant with one element.
std::optional<double> ScalarValue(const Expr& expr);

/// `expr` as a product or sum that contains `x` and is one of the functions of `x`; none for anything else. Any
/// association and order of factors, divisions by constants included.
std::optional<PostOp> MatchActivation(const Expr& expr, const ExprNode* x);

/// relu(x) + slope * min(x, 0), which is how PReLU is imported.
struct WrittenPrelu {
  Expr x;
  Expr slope;
};
std::optional<WrittenPrelu> MatchPrelu(const Expr& expr);

/// A single call of one argument, or of a number besides: relu, clip, sigmoid …; none when oneDNN has no such function.
std::optional<PostOp> UnaryPostOp(const CallNode& call);

}  // namespace collage::dnnl_toolchain
