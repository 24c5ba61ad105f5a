// compare.cc: element-wise comparison with tolerance.
#include "runtime/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace collage {
namespace {

double LargestMagnitude(const Tensor& tensor) {
  double largest = 0;
  for (int64_t i = 0, n = tensor.num_elements(); i < n; ++i) {
    const double value = std::abs(tensor.At(i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  return largest;
}

}  // namespace

Comparison Compare(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Comparison result;
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    result.max_absolute_error = result.max_relative_error = kInfinity;
    result.difference = fmt::format("got {} {}, wanted {} {}", actual.dtype().ToString(), ToString(actual.shape()),
                                    expected.dtype().ToString(), ToString(expected.shape()));
    return result;
  }
  const bool is_float32 = actual.dtype() == kFloat32;
  double largest = 0;
  for (int64_t i = 0, n = actual.num_elements(); i < n; ++i) {
    const double a = is_float32 ? actual.data<float>()[i] : actual.At(i);
    const double b = is_float32 ? expected.data<float>()[i] : expected.At(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) {
      if (std::isfinite(b)) largest = std::max(largest, std::abs(b));
      continue;
    }
    if (std::isfinite(b)) largest = std::max(largest, std::abs(b));
    // NaN and infinities are off by more than any number, unless they are expected.
    const bool is_finite = std::isfinite(a) && std::isfinite(b);
    const double error = is_finite ? std::abs(a - b) : kInfinity;
    result.max_absolute_error = std::max(result.max_absolute_error, error);
    const bool close = is_finite && error <= tolerance.absolute + tolerance.relative * std::abs(b);
    if (!close && result.difference.empty()) {
      result.difference = fmt::format("element {} of {}: got {:g}, wanted {:g}", i, n, a, b);
    }
  }
  result.max_relative_error = largest > 0 ? result.max_absolute_error / largest : result.max_absolute_error;
  result.agrees = result.difference.empty();
  return result;
}

Tolerance ShareOfLargest(const Tensor& expected, double share) {
  return {.relative = 0, .absolute = share * LargestMagnitude(expected)};
}

Tolerance ToleranceFor(const Tensor& expected) { return ToleranceFor(expected, std::nullopt); }

Tolerance ToleranceFor(const Tensor& expected, std::optional<DataType> computed_in) {
  const double largest = LargestMagnitude(expected);
  DataType dtype = expected.dtype();
  if (dtype.is_floating() && computed_in && computed_in->bits < dtype.bits) dtype = *computed_in;
  switch (dtype.code) {
    case DataType::Code::kBFloat: return {2e-2, 2e-2 * largest};
    case DataType::Code::kFloat:
      if (dtype.bits == 16) return {1e-2, 5e-3 * largest};
      if (dtype.bits == 32) return {1e-3, std::max(1e-6, 1e-4 * largest)};
      return {1e-6, std::max(1e-9, 1e-7 * largest)};
    default: return {0, 0};
  }
}

}  // namespace collage
