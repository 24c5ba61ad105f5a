// winograd_transforms.cc: the matrices, from the points 0, 1, -1, (2, -2,) and infinity.
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

WinogradTransforms Four() {
  return {4,
          {{4, 0, -5, 0, 1, 0},
           {0, -4, -4, 1, 1, 0},
           {0, 4, -4, -1, 1, 0},
           {0, -2, -1, 2, 1, 0},
           {0, 2, -1, -2, 1, 0},
           {0, 4, 0, -5, 0, 1}},
          {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}},
          {{1, 0, 0}, {-1, -1, -1}, {-1, 1, -1}, {1, 2, 4}, {1, -2, 4}, {0, 0, 1}},
          {4, 6, 6, 24, 24, 1}};
}

double SumOfMagnitudes(const std::vector<int>& row) {
  double sum = 0;
  for (const int value : row) sum += std::abs(value);
  return sum;
}

}  // namespace

double WinogradTransforms::Amplification() const {
  double largest = 0;
  for (const std::vector<int>& row : result) {
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
