// evaluation.cc: products by three loops. Sums are float32, or int32 for integers whose result is of integers.
#include "evaluation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "support/numbers.h"

namespace standin::cublas {
namespace {

template <typename T>
T Read(const std::byte* place) {
  T value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

template <typename T>
void Write(std::byte* place, T value) {
  std::memcpy(place, &value, sizeof value);
}

/// The element `at` of elements of `type`; all numbers of these types that occur here are exact in double.
double Load(const std::byte* base, int type, int64_t at) {
  switch (type) {
    case kFloat16: return collage::HalfToFloat(Read<uint16_t>(base + at * 2));
    case kBFloat16: return collage::BFloat16ToFloat(Read<uint16_t>(base + at * 2));
    case kInt8: return Read<int8_t>(base + at);
    case kInt32: return Read<int32_t>(base + at * 4);
    default: return Read<float>(base + at * 4);
  }
}

/// Rounded to nearest, ties to even; int8 is limited to its range.
void Store(std::byte* base, int type, int64_t at, double value) {
  switch (type) {
    case kFloat16: return Write(base + at * 2, collage::FloatToHalf(static_cast<float>(value)));
    case kBFloat16: return Write(base + at * 2, collage::FloatToBFloat16(static_cast<float>(value)));
    case kInt8: return Write(base + at, static_cast<int8_t>(std::clamp(std::nearbyint(value), -128.0, 127.0)));
    case kInt32: return Write(base + at * 4, static_cast<int32_t>(value));
    default: return Write(base + at * 4, static_cast<float>(value));
  }
}

/// `value` as it would be stored in between.
double Rounded(double value, int type) {
  std::byte place[4];
  Store(place, type, 0, value);
  return Load(place, type, 0);
}

/// A factor of float32 as tensor cores get it.
float Factor(float value, int compute) {
  switch (compute) {
    case kComputeFastFloat16: return collage::HalfToFloat(collage::FloatToHalf(value));
    case kComputeFastBFloat16: return collage::BFloat16ToFloat(collage::FloatToBFloat16(value));
    case kComputeFastTf32: return std::bit_cast<float>((std::bit_cast<uint32_t>(value) + 0x1000) & ~0x1FFFU);
    default: return value;
  }
}

/// The tanh form.
double Gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

/// Rows of an operand as the product wants them, one behind the other.
std::vector<float> RowsOf(const Matrix& matrix, const std::byte* base, bool is_turned, int compute) {
  const uint64_t rows = is_turned ? matrix.columns : matrix.rows, steps = is_turned ? matrix.rows : matrix.columns;
  std::vector<float> all;
  all.reserve(rows * steps);
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t step = 0; step < steps; ++step) {
      const int64_t place = is_turned ? matrix.PlaceOf(step, row) : matrix.PlaceOf(row, step);
      all.push_back(Factor(static_cast<float>(Load(base, matrix.type, place)), compute));
    }
  }
  return all;
}

/// Adds up [begin, end). Products of 8-bit integers are exact in float, and sums of them in double.
double SumOf(const Work& work, const float* x, const float* y, uint64_t begin, uint64_t end) {
  if (work.product.compute == kComputeInt32) {
    double sum = 0;
    for (uint64_t i = begin; i < end; ++i) sum += static_cast<double>(x[i] * y[i]);
    return sum;
  }
  float sum = 0;
  for (uint64_t i = begin; i < end; ++i) sum += x[i] * y[i];
  return sum;
}

/// The sum of one element by the work's algorithm.
double Contract(const Work& work, const float* x, const float* y) {
  const uint64_t k = work.sizes.k, half = k / 2;
  if (work.algorithm.reduction == 0) return SumOf(work, x, y, 0, k);
  const double first = SumOf(work, x, y, 0, half), second = SumOf(work, x, y, half, k);
  // Parts of an int8 result have no other type than their sums'.
  if (work.algorithm.reduction == kReduceInComputeType || work.d.type == kInt8) return first + second;
  return Rounded(first, work.d.type) + Rounded(second, work.d.type);
}

/// One of the batch; places are those of its matrices.
void EvaluateOne(const Work& work) {
  const Product& product = work.product;
  const std::vector<float> left = RowsOf(work.a, work.at_a, product.transposes[0] == 1, product.compute);
  const std::vector<float> right = RowsOf(work.b, work.at_b, product.transposes[1] == 0, product.compute);
  for (uint64_t row = 0; row < work.sizes.m; ++row) {
    const auto in_row = static_cast<int64_t>(row);
    const double alpha = work.alphas != nullptr ? Load(work.alphas, kFloat32, in_row) : work.alpha;
    for (uint64_t column = 0; column < work.sizes.n; ++column) {
      double value = alpha * Contract(work, left.data() + row * work.sizes.k, right.data() + column * work.sizes.k);
      if (work.beta != 0) value += work.beta * Load(work.at_c, work.c.type, work.c.PlaceOf(row, column));
      if (work.at_bias != nullptr) value += Load(work.at_bias, work.d.type, in_row);
      if ((product.epilogue & kRelu) != 0) value = std::max(value, 0.0);
      if ((product.epilogue & kGelu) != 0) value = Gelu(value);
      Store(work.at_d, work.d.type, work.d.PlaceOf(row, column), value);
    }
  }
}

}  // namespace

void Evaluate(const Work& work) {
  Work one = work;
  const auto step = [](const Matrix& matrix) { return matrix.stride * static_cast<int64_t>(matrix.element_bytes()); };
  for (int32_t i = 0; i < work.d.batch; ++i) {
    EvaluateOne(one);
    one.at_a += step(work.a);
    one.at_b += step(work.b);
    one.at_d += step(work.d);
    if (one.at_c != nullptr) one.at_c += step(work.c);
    if (one.at_bias != nullptr) {
      one.at_bias += work.product.bias_stride * static_cast<int64_t>(work.d.element_bytes());
    }
  }
}

}  // namespace standin::cublas
