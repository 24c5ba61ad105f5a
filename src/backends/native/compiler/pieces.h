// pieces.h: functions as polynomials piece by piece, for look-ups of coefficients in registers.
#pragma once

#include <functional>
#include <vector>

namespace collage::native {

/// Of a function of numbers that are not negative: piece i is that around i * `width`. `by_power[k][i]` is the
/// coefficient of its k-th power of the distance from there.
struct Pieces {
  double width = 0;
  std::vector<std::vector<double>> by_power;

  size_t count() const { return by_power[0].size(); }
  /// The last number that is told from those of the next piece: whatever is larger counts as it.
  double last() const { return (static_cast<double>(count()) - 0.51) * width; }
};

/// Polynomials that equal `f` at the zeros of Chebyshev's. Of an even degree they are exact in the middle of a piece.
Pieces MakePieces(const std::function<double(double)>& f, double width, int count, int degree);

}  // namespace collage::native
