// winograd_transforms.h: minimal filtering, F(m x m, 3 x 3) (Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks", CVPR 2016). A tile of m x m results needs (m + 2)^2 data and as many products for each pair of channels
// instead of 9 m^2:
//
//     result = A^T [ (G taps G^T) . (B^T data B) ] A        . : element by element, then summed over the channels
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace collage::native {

using Matrix = std::vector<std::vector<double>>;

/// The matrices of one m. Those that kernels multiply with have few binary digits: float32 holds them exactly.
struct WinogradTransforms {
  int tile;                              ///< m
  Matrix data;                           ///< B^T, [side, side]
  Matrix result;                         ///< A^T, [m, side]
  std::vector<std::array<int, 3>> taps;  ///< G with each row times its divisor, [side, 3]
  std::vector<int> taps_divisors;        ///< of G's rows

  int side() const { return tile + 2; }
  int64_t positions() const { return static_cast<int64_t>(side()) * side(); }

  /// How much larger than a direct convolution's the errors of rounding may be at worst: of data and taps of magnitude
  /// 1 at most, the magnitudes that a result is summed up from, over the 9 of a direct one.
  double Amplification() const;
};

/// For m = 2 and m = 4.
const WinogradTransforms& WinogradTransformsFor(int tile);

/// Writes G taps G^T of 3 x 3 filters, in double.
class TapsTransform {
 public:
  explicit TapsTransform(const WinogradTransforms& transforms);
  /// `transformed` gets side * side numbers, row by row.
  void Apply(const float* taps, double* transformed) const;

 private:
  int side_;
  std::vector<double> g_;  ///< [side, 3]
};

}  // namespace collage::native
