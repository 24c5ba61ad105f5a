// algorithm.h: the end of a kernel's blob, behind its product (target/matrix_product.h).
#pragma once

#include <cstdint>

#include "target/matrix_product.h"

namespace collage::cublas {

/// How a product is computed. Fields are of one size, so that equal kernels have equal bytes.
struct Algorithm {
  int64_t rank = 0;  ///< in the order of the library's heuristic
  int64_t relu = 0;  ///< whether values below 0 become 0 in the end
};

}  // namespace collage::cublas
