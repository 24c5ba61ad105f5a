// winograd_transforms.cc: the matrices: polynomials are evaluated at 0, a, -a, (b, -b,) and infinity.
#include "backends/native/compiler/winograd_transforms.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "collage/support/error.h"

namespace collage::native {
namespace {

constexpr int kTaps = 3;

WinogradTransforms Two() {
  return {2,
          {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, -1, 0, 1}},
          {{1, 1, 1, 0}, {0, 1, -1, 1}},
          {{1, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 1}},
          {1, 2, 2, 1}};
}

/// Errors of the usual points, 0, 1, -1, 2, -2, are four times those of these, a = 5/8 and b = 3/2: what is between the
/// transforms is of more even size. (Alam et al., "Winograd Convolution for Deep Neural Networks: Efficient Point
/// Selection", ACM TECS 2022, on how points decide.)
WinogradTransforms Four() {
  constexpr double a = 5.0 / 8, b = 3.0 / 2;
  constexpr double aa = a * a, bb = b * b;
  return {4,
          {{aa * bb, 0, -aa - bb, 0, 1, 0},
           {0, -a * bb, -bb, a, 1, 0},
           {0, a * bb, -bb, -a, 1, 0},
           {0, -b * aa, -aa, b, 1, 0},
           {0, b * aa, -aa, -b, 1, 0},
           {0, aa * bb, 0, -aa - bb, 0, 1}},
          {{1, 1, 1, 1, 1, 0}, {0, a, -a, b, -b, 0}, {0, aa, aa, bb, bb, 0}, {0, a * aa, -a * aa, b * bb, -b * bb, 1}},
          // 1 / a^2 b^2; (1, +-a, a^2) / 2 a^2 (a^2 - b^2); (1, +-b, b^2) / 2 b^2 (b^2 - a^2).
          {{256, 0, 0}, {-2048, -1280, -800}, {-2048, 1280, -800}, {128, 192, 288}, {128, -192, 288}, {0, 0, 1}},
          {225, 2975, 2975, 1071, 1071, 1}};
}

template <typename Row>
double SumOfMagnitudes(const Row& row) {
  double sum = 0;
  for (const auto value : row) sum += std::abs(static_cast<double>(value));
  return sum;
}

}  // namespace

double WinogradTransforms::Amplification() const {
  double largest = 0;
  for (const std::vector<double>& row : result) {
    double sum = 0;
    for (size_t p = 0; p < row.size(); ++p) {
      sum += std::abs(row[p]) * SumOfMagnitudes(taps[p]) / taps_divisors[p] * SumOfMagnitudes(data[p]);
    }
    largest = std::max(largest, sum);
  }
  return largest * largest / (kTaps * kTaps);
}

const WinogradTransforms& WinogradTransformsFor(int tile) {
  static const WinogradTransforms two = Two();
  static const WinogradTransforms four = Four();
  COLLAGE_CHECK(tile == 2 || tile == 4) << "no transforms of tiles of " << tile;
  return tile == 2 ? two : four;
}

TapsTransform::TapsTransform(const WinogradTransforms& transforms) : side_(transforms.side()) {
  for (size_t i = 0; i < transforms.taps.size(); ++i) {
    for (const int value : transforms.taps[i]) g_.push_back(static_cast<double>(value) / transforms.taps_divisors[i]);
  }
}

void TapsTransform::Apply(const float* taps, double* transformed) const {
  const auto product = [](const double* g, double a, double b, double c) { return g[0] * a + g[1] * b + g[2] * c; };
  for (int i = 0; i < side_; ++i) {
    const double* g = g_.data() + static_cast<ptrdiff_t>(i) * kTaps;
    std::array<double, kTaps> row{};  // of G taps
    for (int k = 0; k < kTaps; ++k) {
      row[static_cast<size_t>(k)] = product(g, taps[k], taps[kTaps + k], taps[2 * kTaps + k]);
    }
    for (int j = 0; j < side_; ++j) {
      transformed[i * side_ + j] = product(g_.data() + static_cast<ptrdiff_t>(j) * kTaps, row[0], row[1], row[2]);
    }
  }
}

}  // namespace collage::native
