// describe.h: reads a matched sub-graph as a product that cuBLASLt computes.
#pragma once

#include <vector>

#include "backends/cublas/product.h"
#include "collage/ir/expr.h"
#include "collage/support/result.h"
#include "collage/target/toolchain.h"

namespace collage::cublas {

struct Description {
  Product product;
  std::vector<Tensor> constants;
};

/// `function` is typed: a composite (its body is the match), or a partition whose body calls one. `layouts` are those
/// of the host's memory, and may keep float32 values narrower. Constant factors are transposed where the library
/// multiplies them only then, or faster. The reason where cuBLASLt does not compute it, or computes the same without
/// `precision`.
Result<Description> Describe(const Function& function, const BoundaryLayouts& layouts, Precision precision);

}  // namespace collage::cublas
