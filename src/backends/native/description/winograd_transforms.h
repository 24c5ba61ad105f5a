// winograd_transforms.h: minimal filtering, F(m, r): m results of r taps from m + r - 1 data with as many products
// instead of m r (Winograd 1980; for networks Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR
// 2016). Data and taps are values of polynomials at points, whose products are those of the polynomials' product there:
//
//     result = A^T [ (G taps) . (B^T data) ]        . : element by element, then summed over the channels
//
// Over several axes each is transformed by itself: F(m x n, r x s) is F(m, r) of F(n, s).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::native {

using Matrix = std::vector<std::vector<double>>;

/// The matrices of one axis. Factors that kernels multiply with have few binary digits: float32 holds them exactly.
struct WinogradTransforms {
  int tile;       ///< m
  int num_taps;   ///< r
  Matrix data;    ///< B^T, [side, side]; neighbouring rows of points a and -a differ in signs only
  Matrix result;  ///< A^T, [tile, side]
  Matrix taps;    ///< G, [side, num_taps]

  int side() const { return tile + num_taps - 1; }

  /// How much larger than a direct convolution's the errors of rounding may be at worst: of data and taps of magnitude
  /// 1 at most, the magnitudes that a result is summed up from, over the r of a direct one. Over several axes, the
  /// product of theirs.
  double Amplification() const;

  /// Returns how much larger the root mean square of errors is if only the factors of the products are rounded, for
  /// random numbers, whose errors are as likely above as below.
  double TypicalAmplification() const;
};

/// Returns the transforms of an axis with 3, 5 or 7 taps and a tile of 2 or 4; or with one tap and a tile of one, which
/// transforms nothing.
const WinogradTransforms& WinogradTransformsFor(int tile, int num_taps);
bool HasWinogradTransforms(int64_t num_taps);

/// Axes in order: depth, height, width. Leading axes that a convolution lacks have one tap.
inline constexpr size_t kAxes = 3;
using AxisTransforms = std::array<const WinogradTransforms*, kAxes>;
int64_t NumPositions(const AxisTransforms& axes);
double Amplification(const AxisTransforms& axes);
double TypicalAmplification(const AxisTransforms& axes);

/// Transforms `count` filters at once, along all axes: `taps` has for each tap the number of each filter, and so has
/// the result for each position of a tile.
std::vector<double> TransformTaps(const AxisTransforms& axes, std::vector<double> taps, int64_t count);

}  // namespace collage::native
