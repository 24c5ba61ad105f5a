// pointwise.h: functions of one value that toolchains compute behind an operation. Free of the IR, so that kernels can
// read it.
#pragma once

#include <cstdint>

namespace collage::matches {

/// Functions of one value, and the sum of two.
enum class PointwiseMode : uint8_t {
  kAdd,
  kRelu,  ///< limited to [low, high], with `slope` below low
  kTanh,
  kSigmoid,
  kElu,  ///< x, or alpha * (exp(x) - 1) for negative x
  kGelu,
  kGeluTanh,
  kSwish,  ///< x * sigmoid(alpha * x)
  kHardSwish,
};

struct Pointwise {
  PointwiseMode mode = PointwiseMode::kRelu;
  double low = 0;
  double high = 0;  ///< no limit where it is not above `low`
  double slope = 0;
  double alpha = 1;
};

}  // namespace collage::matches
