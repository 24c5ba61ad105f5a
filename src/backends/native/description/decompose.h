// decompose.h: rewrites operators as combinations of others.
#pragma once

#include "collage/ir/expr.h"

namespace collage::native {

/// `body`, typed, with einsum as transpositions, products of matrices and sums, and deformable convolutions as samples
/// of a grid and convolutions of one tap; typed.
Expr Decompose(const Expr& body);

}  // namespace collage::native
