// evaluation.h: what the stand-in for cuBLASLt computes.
#pragma once

#include "descriptors.h"

namespace standin::cublas {

/// A product that has been checked, with places that may be touched.
struct Work {
  Product product;
  Algorithm algorithm;
  Sizes sizes;
  Matrix a, b, c, d;
  double alpha = 1, beta = 0;
  const std::byte* alphas = nullptr;  ///< float32, one for each row of D, in place of `alpha`
  const std::byte* at_a = nullptr;
  const std::byte* at_b = nullptr;
  const std::byte* at_c = nullptr;  ///< read where beta is not 0
  const std::byte* at_bias = nullptr;
  std::byte* at_d = nullptr;
};

void Evaluate(const Work& work);

}  // namespace standin::cublas
