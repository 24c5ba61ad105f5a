// weight_statistics.cc: one pass over the elements, in doubles.
#include "driver/explanation/weight_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "runtime/dispatch.h"

namespace collage {
namespace {

// Narrower elements are not what DispatchType takes them for.
constexpr int kLeastIntegerBits = 8;
constexpr int kLeastFloatBits = 16;

template <typename T>
std::optional<WeightStatistics> StatisticsOf(const T* elements, int64_t count) {
  // Sums of differences from the first element: those of the elements lose digits where all are far from zero.
  const double origin = ToDouble(elements[0]);
  double sum = 0, squares = 0;
  double minimum = std::numeric_limits<double>::infinity(), maximum = -minimum;
  int64_t zeros = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = ToDouble(elements[i]);
    minimum = std::min(minimum, value);
    maximum = std::max(maximum, value);
    sum += value - origin;
    squares += (value - origin) * (value - origin);
    zeros += value == 0 ? 1 : 0;
  }
  if (!std::isfinite(sum) || !std::isfinite(squares)) return std::nullopt;
  const auto n = static_cast<double>(count);
  const double shift = sum / n;
  return WeightStatistics{minimum, maximum, origin + shift, std::sqrt(std::max(0.0, squares / n - shift * shift)),
                          static_cast<double>(zeros) / n};
}

}  // namespace

std::optional<WeightStatistics> StatisticsOf(const Tensor& tensor) {
  const DataType dtype = tensor.dtype();
  const bool is_number =
      (dtype.is_integer() && dtype.bits >= kLeastIntegerBits) || (dtype.is_floating() && dtype.bits >= kLeastFloatBits);
  if (!is_number || dtype.is_vector() || tensor.num_elements() == 0) return std::nullopt;
  return DispatchType(dtype, [&]<typename T>() { return StatisticsOf(tensor.data<T>(), tensor.num_elements()); });
}

}  // namespace collage
