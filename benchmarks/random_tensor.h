// random_tensor.h: data for kernels that are timed without a model.
#pragma once

#include <random>

#include "collage/runtime/tensor.h"

namespace collage {

/// float32, uniform in [-largest, largest).
inline Tensor Random(const Shape& shape, double largest, uint32_t seed) {
  Tensor tensor = Tensor::Empty(shape, kFloat32);
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(static_cast<float>(-largest), static_cast<float>(largest));
  for (float& value : tensor.span<float>()) value = uniform(generator);
  return tensor;
}

}  // namespace collage
