// reference.cc: evaluations with random rounding, and how results are held against them.
#include "ir/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "ir/evaluate.h"

namespace collage {
namespace {

// How many times what was found may be reached. Kernels round to the nearest, of sums that differ little, or not at
// all: their deviations have at most 0.6 times the spread of random rounding (1 / sqrt 12 of a step, not 1 / 2). What
// is a sum over many elements was found four times only, and is a number with a spread of its own.
constexpr double kOfLargest = 1.5;
constexpr double kOfRms = 1.5;
constexpr double kOfSum = 3;

/// Calls `visit` with what was got and what was wanted of each element that is finite in both.
template <typename Visit>
void ForFinite(const Tensor& actual, const Tensor& expected, Visit&& visit) {
  const bool is_float32 = actual.dtype() == kFloat32 && expected.dtype() == kFloat32;
  for (int64_t i = 0, n = expected.num_elements(); i < n; ++i) {
    const double a = is_float32 ? static_cast<double>(actual.data<float>()[i]) : actual.At(i);
    const double b = is_float32 ? static_cast<double>(expected.data<float>()[i]) : expected.At(i);
    if (std::isfinite(a) && std::isfinite(b)) visit(a, b);
  }
}

/// Size and spread of a result's elements.
struct Magnitude {
  double mean = 0;
  double rms = 0;        ///< about 0
  double deviation = 0;  ///< about the mean
};

Magnitude MagnitudeOf(const Tensor& tensor) {
  double count = 0, sum = 0, squares = 0;
  ForFinite(tensor, tensor, [&](double value, double) {
    count += 1;
    sum += value;
    squares += value * value;
  });
  if (count == 0) return {};
  const double mean = sum / count;
  return {mean, std::sqrt(squares / count), std::sqrt(std::max(0.0, squares / count - mean * mean))};
}

/// What is wrong with deviations of `found` where `open` is what rounding leaves open; empty when nothing is.
std::string FindExcess(const Deviation& found, const Deviation& open, const Magnitude& size,
                       const Tolerance& tolerance) {
  const double usual = tolerance.absolute + tolerance.relative * size.rms;
  const double rms = kOfRms * open.rms + usual;
  if (found.rms > rms) {
    return fmt::format("elements are off by {:g} (root of the mean square), of which rounding explains {:g}", found.rms,
                       rms);
  }
  const double offset = kOfSum * std::abs(open.offset) + usual;
  if (std::abs(found.offset) > offset) {
    return fmt::format("elements are off by {:g} on average, of which rounding explains {:g}", found.offset, offset);
  }
  if (size.deviation == 0) return "";
  const double slope = kOfSum * std::abs(open.slope) + tolerance.relative + tolerance.absolute / size.deviation;
  if (std::abs(found.slope) > slope) {
    return fmt::format("elements are {:g} times what they should be, of which rounding explains {:g}", 1 + found.slope,
                       1 + std::copysign(slope, found.slope));
  }
  return "";
}

/// The one of larger magnitude.
double Larger(double a, double b) { return std::abs(b) > std::abs(a) ? b : a; }

}  // namespace

Deviation Deviation::Of(const Tensor& actual, const Tensor& expected) {
  const double mean = MagnitudeOf(expected).mean;
  Deviation result;
  double count = 0, sum = 0, squares = 0, products = 0, spread = 0;
  ForFinite(actual, expected, [&](double a, double b) {
    const double deviation = a - b;
    result.largest = std::max(result.largest, std::abs(deviation));
    count += 1;
    sum += deviation;
    squares += deviation * deviation;
    products += deviation * (b - mean);
    spread += (b - mean) * (b - mean);
  });
  if (count == 0) return result;
  result.rms = std::sqrt(squares / count);
  result.offset = sum / count;
  result.slope = spread > 0 ? products / spread : 0;
  return result;
}

bool RoundsToIntegers(const Function& function) {
  bool rounds = false;
  PostOrder(function, [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    rounds = rounds || (call != nullptr && call->op() != nullptr && call->op()->random_rounding);
  });
  return rounds;
}

Reference::Reference(std::vector<Tensor> results) : results_(std::move(results)), open_(results_.size()) {}

Reference::Reference(const Function& function, std::span<const Tensor> inputs) : Reference(Evaluate(function, inputs)) {
  if (!RoundsToIntegers(function)) return;
  for (int seed = 0; seed < kEvaluations; ++seed) {
    const std::vector<Tensor> others = Evaluate(function, inputs, {Rounding::kRandom, static_cast<uint64_t>(seed)});
    for (size_t i = 0; i < others.size(); ++i) {
      if (others[i].shape() != results_[i].shape()) continue;  // its size depends on the data: nothing is left open
      const Deviation found = Deviation::Of(others[i], results_[i]);
      Deviation& open = open_[i];
      open.largest = std::max(open.largest, found.largest);
      open.rms = std::max(open.rms, found.rms);
      open.offset = Larger(open.offset, found.offset);
      open.slope = Larger(open.slope, found.slope);
    }
  }
}

Comparison Reference::Compare(size_t index, const Tensor& actual) const {
  return Compare(index, actual, ToleranceFor(results_[index]));
}

Comparison Reference::Compare(size_t index, const Tensor& actual, const Tolerance& tolerance) const {
  const Tensor& expected = results_[index];
  const Deviation& open = open_[index];
  Comparison comparison =
      collage::Compare(actual, expected, {tolerance.relative, tolerance.absolute + kOfLargest * open.largest});
  if (!comparison.agrees || !IsOpen(index)) return comparison;
  comparison.difference = FindExcess(Deviation::Of(actual, expected), open, MagnitudeOf(expected), tolerance);
  comparison.agrees = comparison.difference.empty();
  return comparison;
}

}  // namespace collage
