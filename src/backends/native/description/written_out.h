// written_out.h: operators that are others put together.
#pragma once

#include "collage/ir/expr.h"

namespace collage::native {

/// `body`, typed, with einsum as transpositions, products of matrices and sums, and deformable convolutions as samples
/// of a grid and convolutions of one tap; typed.
Expr WriteOut(const Expr& body);

}  // namespace collage::native
