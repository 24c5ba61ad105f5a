// piecewise_polynomial.h: functions as polynomials, whole or piece by piece for look-ups of coefficients in registers.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace collage::native {

/// Coefficients of the polynomial that equals `f` at the zeros of Chebyshev's between `low` and `high`: the k-th
/// belongs to x^k. A polynomial of even degree is exact in the middle.
std::vector<double> Interpolate(const std::function<double(double)>& f, double low, double high, size_t degree);

/// Approximates a function of numbers that are not negative: piece i is that around i * `width`. `by_power[k][i]` is
/// the coefficient of its k-th power of the distance from there.
struct PiecewisePolynomial {
  double width = 0;
  std::vector<std::vector<double>> by_power;

  size_t count() const { return by_power[0].size(); }
  /// An argument close to the end of the last piece; larger arguments are replaced by it.
  double last() const { return (static_cast<double>(count()) - 0.51) * width; }
};

/// Each piece's polynomial interpolates `f` there.
PiecewisePolynomial FitPieces(const std::function<double(double)>& f, double width, int count, int degree);

}  // namespace collage::native
