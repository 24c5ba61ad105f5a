// read_product.h: reads a matched sub-graph as one product of matrices, for toolchains that compute nothing else.
#pragma once

#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/support/result.h"
#include "collage/target/toolchain.h"
#include "target/matrix_product.h"

namespace collage {

struct ProductDescription {
  MatrixProduct product;
  std::vector<Tensor> constants;
};

/// `function` is typed: a composite, or a partition whose body calls one. Its body is nn.dense, nn.matmul or
/// nn.batch_matmul of float32 or float64, then optionally, in this order: a reshape; a factor or divisor that is a
/// scalar constant; a constant vector that is added along the last axis. The reason, from `toolchain`, when it is
/// something else.
Result<ProductDescription> ReadProduct(const Function& function, const BoundaryLayouts& layouts,
                                       const std::string& toolchain);

/// Rows of a pattern table, named "TOOLCHAIN.dense_bias" and so on, for what ReadProduct reads. `check` is asked after
/// it.
std::vector<PatternTableEntry> ProductPatterns(const std::string& toolchain,
                                               std::function<Result<void>(const MatrixProduct& product)> check);

}  // namespace collage
