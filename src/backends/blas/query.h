// query.h: what the description asks of the module that opens the libraries.
#pragma once

#include <string>

#include "collage/support/result.h"
#include "target/matrix_product.h"

namespace collage::blas_toolchain {

/// Signature of `collage_blas_fastest` of libcollage_rt_blas.so: which library computes `product` fastest on this
/// machine, by timing each on zeros. `wanted` names the only one to consider; empty: all.
using FastestFn = Result<std::string>(const MatrixProduct& product, const std::string& wanted);

}  // namespace collage::blas_toolchain
