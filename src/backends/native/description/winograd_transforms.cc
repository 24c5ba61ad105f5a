// winograd_transforms.cc: the matrices: polynomials are evaluated at 0, pairs a, -a, and infinity.
#include "backends/native/description/winograd_transforms.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "collage/support/error.h"

namespace collage::native {
namespace {

/// The points of `side` values but infinity. What is between the transforms should be of even size: with these, results
/// drawn at random have the smallest errors of all pairs of few binary digits up to 4 that were tried. For six, a third
/// less than the usual 0, 1, -1, 2, -2; for ten, a quarter of those of 1/2, 1, 2, 4. (Alam et al., "Winograd
/// Convolution for Deep Neural Networks: Efficient Point Selection", ACM TECS 2022, on how points decide.)
std::vector<double> PointsOf(int side) {
  static const std::map<int, std::vector<double>> sizes{
      {4, {1}}, {6, {5.0 / 8, 3.0 / 2}}, {8, {1.0 / 2, 1, 2}}, {10, {3.0 / 8, 3.0 / 4, 5.0 / 4, 5.0 / 2}}};
  std::vector<double> points{0};
  for (const double size : sizes.at(side)) points.insert(points.end(), {size, -size});
  return points;
}

/// Coefficients, lowest first, of the product of all x - point but that of number `left_out`.
std::vector<double> ProductOfDifferences(const std::vector<double>& points, size_t left_out) {
  std::vector<double> product{1};
  for (size_t q = 0; q < points.size(); ++q) {
    if (q == left_out) continue;
    product.insert(product.begin(), 0);
    for (size_t k = 0; k + 1 < product.size(); ++k) product[k] -= points[q] * product[k + 1];
  }
  return product;
}

WinogradTransforms Make(int tile, int num_taps) {
  WinogradTransforms made{tile, num_taps, {}, {}, {}};
  const auto side = static_cast<size_t>(made.side());
  made.result = Matrix(static_cast<size_t>(tile), std::vector<double>(side));
  if (num_taps == 1) {
    COLLAGE_CHECK(tile == 1) << "a tile of " << tile << " where there is nothing to transform";
    return {1, 1, {{1}}, {{1}}, {{1}}};
  }
  const std::vector<double> points = PointsOf(made.side());
  for (size_t p = 0; p < side; ++p) {
    std::vector<double> row = ProductOfDifferences(points, p);
    row.resize(side);
    made.data.push_back(row);
    std::vector<double> taps(static_cast<size_t>(num_taps));
    if (p == points.size()) {  // infinity
      taps.back() = 1;
      made.result.back()[p] = 1;
    } else {
      double divisor = 1;
      for (size_t q = 0; q < points.size(); ++q) divisor *= q == p ? 1 : points[p] - points[q];
      for (size_t k = 0; k < taps.size(); ++k) taps[k] = std::pow(points[p], k) / divisor;
      for (size_t i = 0; i < made.result.size(); ++i) made.result[i][p] = std::pow(points[p], i);
    }
    made.taps.push_back(taps);
  }
  return made;
}

double SumOfSquares(const std::vector<double>& row) {
  double sum = 0;
  for (const double value : row) sum += value * value;
  return sum;
}

double SumOfMagnitudes(const std::vector<double>& row) {
  double sum = 0;
  for (const double value : row) sum += std::abs(value);
  return sum;
}

}  // namespace

double WinogradTransforms::Amplification() const {
  double largest = 0;
  for (const std::vector<double>& row : result) {
    double sum = 0;
    for (size_t p = 0; p < row.size(); ++p)
      sum += std::abs(row[p]) * SumOfMagnitudes(taps[p]) * SumOfMagnitudes(data[p]);
    largest = std::max(largest, sum);
  }
  return largest / num_taps;
}

double WinogradTransforms::TypicalAmplification() const {
  double sum = 0;
  for (const std::vector<double>& row : result) {
    for (size_t p = 0; p < row.size(); ++p) sum += row[p] * row[p] * SumOfSquares(taps[p]) * SumOfSquares(data[p]);
  }
  return std::sqrt(sum / (tile * num_taps));
}

bool HasWinogradTransforms(int64_t num_taps) { return num_taps == 3 || num_taps == 5 || num_taps == 7; }

const WinogradTransforms& WinogradTransformsFor(int tile, int num_taps) {
  static const auto* const all = [] {
    auto* made = new std::map<std::pair<int, int>, WinogradTransforms>{{{1, 1}, Make(1, 1)}};
    for (const int m : {2, 4}) {
      for (const int r : {3, 5, 7}) made->emplace(std::pair(m, r), Make(m, r));
    }
    return made;
  }();
  const auto found = all->find({tile, num_taps});
  COLLAGE_CHECK(found != all->end()) << "no transforms of tiles of " << tile << " and " << num_taps << " taps";
  return found->second;
}

int64_t NumPositions(const AxisTransforms& axes) {
  int64_t positions = 1;
  for (const WinogradTransforms* axis : axes) positions *= axis->side();
  return positions;
}

double Amplification(const AxisTransforms& axes) {
  double product = 1;
  for (const WinogradTransforms* axis : axes) product *= axis->Amplification();
  return product;
}

double TypicalAmplification(const AxisTransforms& axes) {
  double product = 1;
  for (const WinogradTransforms* axis : axes) product *= axis->TypicalAmplification();
  return product;
}

std::vector<double> TransformTaps(const AxisTransforms& axes, std::vector<double> taps, int64_t count) {
  // Axis by axis: what follows it is the inner run of numbers, what is before it repeats.
  auto inner = static_cast<size_t>(count);
  for (size_t a = kAxes; a-- > 0;) {
    const Matrix& g = axes[a]->taps;
    const auto from = static_cast<size_t>(axes[a]->num_taps);
    const size_t outer = taps.size() / from / inner;
    std::vector<double> next(outer * g.size() * inner);
    for (size_t o = 0; o < outer; ++o) {
      for (size_t p = 0; p < g.size(); ++p) {
        double* to = next.data() + (o * g.size() + p) * inner;
        for (size_t k = 0; k < from; ++k) {
          const double factor = g[p][k];
          const double* source = taps.data() + (o * from + k) * inner;
          if (factor == 0) continue;
          for (size_t i = 0; i < inner; ++i) to[i] += factor * source[i];
        }
      }
    }
    taps = std::move(next);
    inner *= g.size();
  }
  return taps;
}

}  // namespace collage::native
