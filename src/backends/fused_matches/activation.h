// activation.h: functions of one value that toolchains compute behind an operation, as operators or written out by
// exporters.
#pragma once

#include <optional>

#include "backends/fused_matches/pointwise.h"
#include "collage/ir/expr.h"

namespace collage::matches {

/// The value of a constant with one element.
std::optional<double> ScalarValue(const Expr& expr);

/// `expr` as a function of `x`: relu, leaky_relu, clip, sigmoid or tanh, or a sum or product that is GELU, swish, hard
/// swish or ELU in any order of its operands; nothing where it is none of these.
std::optional<Pointwise> MatchActivation(const Expr& expr, const Expr& x);

}  // namespace collage::matches
