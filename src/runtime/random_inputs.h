// random_inputs.h: representative values for measuring and testing.
#pragma once

#include <cstdint>

#include "collage/runtime/tensor.h"

namespace collage {

/// Fills `tensor`: floats uniform in [-1, 1), integers uniform in [low, high], bools 0 or 1. Equal seeds give equal
/// values on every machine; there are no denormals.
void FillRandom(const Tensor& tensor, uint64_t seed, int64_t low = 0, int64_t high = 1);

}  // namespace collage
