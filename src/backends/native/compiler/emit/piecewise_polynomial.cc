// piecewise_polynomial.cc: interpolation by Newton's divided differences.
#include "backends/native/compiler/emit/piecewise_polynomial.h"

#include <cmath>
#include <utility>

namespace collage::native {

std::vector<double> Interpolate(const std::function<double(double)>& f, double low, double high, size_t degree) {
  const size_t count = degree + 1;
  const double middle = (low + high) / 2;
  std::vector<double> nodes(count);
  for (size_t i = 0; i < count; ++i) {
    const bool is_middle = 2 * i + 1 == count;
    const double angle = (2.0 * static_cast<double>(i) + 1) * 3.141592653589793 / (2 * static_cast<double>(count));
    nodes[i] = is_middle ? middle : middle + std::cos(angle) * (high - low) / 2;
  }
  if (count % 2 != 0) std::swap(nodes[0], nodes[count / 2]);  // what the first one adds is not rounded
  std::vector<double> differences;                            // divided, of Newton's form
  for (const double node : nodes) differences.push_back(f(node));
  for (size_t order = 1; order < count; ++order) {
    for (size_t i = count - 1; i >= order; --i) {
      differences[i] = (differences[i] - differences[i - 1]) / (nodes[i] - nodes[i - order]);
    }
  }
  std::vector<double> c(count);
  for (size_t i = count; i-- > 0;) {  // c = c * (x - nodes[i]) + differences[i]
    for (size_t k = count; k-- > 0;) c[k] = (k > 0 ? c[k - 1] : 0) - c[k] * nodes[i];
    c[0] += differences[i];
  }
  return c;
}

PiecewisePolynomial FitPieces(const std::function<double(double)>& f, double width, int count, int degree) {
  PiecewisePolynomial pieces{width, std::vector<std::vector<double>>(static_cast<size_t>(degree) + 1)};
  for (int i = 0; i < count; ++i) {
    const auto around = [&](double distance) { return f(i * width + distance); };
    const std::vector<double> c = Interpolate(around, -width / 2, width / 2, static_cast<size_t>(degree));
    for (size_t power = 0; power < c.size(); ++power) pieces.by_power[power].push_back(c[power]);
  }
  return pieces;
}

}  // namespace collage::native
