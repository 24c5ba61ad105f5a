// reference.cc: evaluations with random rounding, and how results are held against them.
#include "ir/eval/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "ir/eval/computed_in.h"

namespace collage {
namespace {

// How many times what was found may be reached. Kernels round to the nearest, of sums that differ little, or not at
// all: their deviations have at most 0.6 times the spread of random rounding (1 / sqrt 12 of a step, not 1 / 2). What
// is a sum over many elements was found four times only, and is a number with a spread of its own.
constexpr double kOfLargest = 1.5;
constexpr double kOfRms = 1.5;
constexpr double kOfSum = 3;
// How many times what one evaluation found, of at least so many elements, four never come near.
constexpr double kHopeless = 3;
constexpr int64_t kEnoughElements = 64;

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

/// Says how the deviation `found` exceeds `open`, the one that rounding explains; empty when it does not.
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

/// Whether deviations of `found` are so much larger than one evaluation's, `open`, that more of them change nothing.
bool IsHopeless(const Deviation& found, const Deviation& open, const Magnitude& size, const Tolerance& tolerance) {
  const double usual = tolerance.absolute + tolerance.relative * size.rms;
  return open.rms > 0 && found.rms > kHopeless * (kOfRms * open.rms + usual);
}

/// Whether an intermediate result somewhat larger than `value` would be no finite number of `dtype`.
bool IsNearOverflow(double value, DataType dtype) {
  constexpr double kLargestFloat16 = 65504;
  const double largest = dtype == kFloat16   ? kLargestFloat16
                         : dtype == kFloat64 ? std::numeric_limits<double>::max()
                                             : static_cast<double>(std::numeric_limits<float>::max());
  return std::abs(value) > largest / 4;
}

/// `actual`, but for what may be anything by `options`: that is as it is in `expected`.
Tensor WithoutWhatIsOpen(const Tensor& actual, const Tensor& expected, const ReferenceOptions& options) {
  if (!options.only_finite && !options.only_numbers) return actual;
  if (!expected.dtype().is_floating() || actual.shape() != expected.shape() || actual.dtype() != expected.dtype()) {
    return actual;
  }
  Tensor result = actual;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double wanted = expected.At(i);
    const bool overflows = std::isinf(actual.At(i)) && IsNearOverflow(wanted, expected.dtype());
    const bool is_open = std::isnan(wanted) || (options.only_finite && (std::isinf(wanted) || overflows));
    if (!is_open) continue;
    if (result.raw() == actual.raw()) result = actual.Clone();
    result.Set(i, expected.At(i));
  }
  return result;
}

/// Whether some element of `other` is no finite number where that of `expected` is.
bool LosesNumbers(const Tensor& other, const Tensor& expected) {
  if (!expected.dtype().is_floating()) return false;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    if (!std::isfinite(other.At(i)) && std::isfinite(expected.At(i))) return true;
  }
  return false;
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

Reference::Reference(std::vector<Tensor> results) : state_(std::make_shared<State>()) {
  state_->computed_in.resize(results.size());
  state_->results = std::move(results);
}

Reference::Reference(const Function& function, std::span<const Tensor> inputs, ReferenceOptions options)
    : Reference([function, own = std::vector<Tensor>(inputs.begin(), inputs.end())](
                    const EvaluateOptions& evaluating) { return Evaluate(function, own, evaluating); },
                ComputedIn(function), std::move(options)) {}

Reference::Reference(Evaluation evaluate, std::vector<std::optional<DataType>> computed_in, ReferenceOptions options)
    : Reference(evaluate({.on_operator = options.on_operator})) {
  state_->evaluate = std::move(evaluate);
  state_->options = std::move(options);
  for (size_t i = 0; i < state_->computed_in.size() && i < computed_in.size(); ++i) {
    state_->computed_in[i] = computed_in[i];
  }
}

Comparison Reference::Compare(size_t index, const Tensor& actual, std::optional<DataType> computed_in) const {
  const std::optional<DataType> narrowest = Narrower(state_->computed_in[index], computed_in);
  return Compare(index, actual, ToleranceFor(results()[index], narrowest), computed_in);
}

Comparison Reference::Compare(size_t index, const Tensor& given, const Tolerance& tolerance,
                              std::optional<DataType> computed_in) const {
  const Tensor& expected = results()[index];
  const Tensor actual = WithoutWhatIsOpen(given, expected, state_->options);
  const Comparison first = collage::Compare(actual, expected, tolerance);
  if (first.agrees || !state_->evaluate || actual.shape() != expected.shape() || actual.dtype() != expected.dtype()) {
    return first;
  }
  OpenResults& open = OpenIn(computed_in);
  if (open.num_evaluations == 0) EvaluateOnceMore(open, computed_in);
  if (IsHopeless(Deviation::Of(actual, expected), open.results[index], MagnitudeOf(expected), tolerance) &&
      expected.num_elements() >= kEnoughElements) {
    return first;
  }
  const Deviation deviation = Open(index, computed_in);
  Comparison comparison =
      collage::Compare(actual, expected, {tolerance.relative, tolerance.absolute + kOfLargest * deviation.largest});
  if (!comparison.agrees) return comparison;
  comparison.difference = FindExcess(Deviation::Of(actual, expected), deviation, MagnitudeOf(expected), tolerance);
  comparison.agrees = comparison.difference.empty();
  return comparison;
}

Comparison Reference::CompareWithin(size_t index, const Tensor& actual, double share) const {
  const Comparison comparison = collage::Compare(actual, results()[index], ShareOfLargest(results()[index], share));
  return comparison.agrees || !state_->options.only_finite ? comparison : Compare(index, actual, kBFloat16);
}

Deviation Reference::Open(size_t index, std::optional<DataType> computed_in) const {
  if (!state_->evaluate) return {};
  OpenResults& open = OpenIn(computed_in);
  while (open.num_evaluations < kEvaluations) EvaluateOnceMore(open, computed_in);
  return open.results[index];
}

Reference::OpenResults& Reference::OpenIn(std::optional<DataType> computed_in) const {
  OpenResults& open = state_->open[computed_in ? computed_in->ToString() : ""];
  open.results.resize(results().size());
  return open;
}

void Reference::EvaluateOnceMore(OpenResults& open, std::optional<DataType> computed_in) const {
  const std::vector<Tensor> others = state_->evaluate({.rounding = Rounding::kRandom,
                                                       .seed = static_cast<uint64_t>(open.num_evaluations++),
                                                       .computed_in = computed_in,
                                                       .on_operator = state_->options.on_operator});
  for (size_t i = 0; i < others.size() && i < results().size(); ++i) {
    if (others[i].shape() != results()[i].shape()) continue;  // its size depends on the data: nothing is left open
    const Deviation found = Deviation::Of(others[i], results()[i]);
    Deviation& most = open.results[i];
    // If rounding decides whether a result is a number, any value is accepted.
    if (LosesNumbers(others[i], results()[i])) most.largest = std::numeric_limits<double>::infinity();
    most.largest = std::max(most.largest, found.largest);
    most.rms = std::max(most.rms, found.rms);
    most.offset = Larger(most.offset, found.offset);
    most.slope = Larger(most.slope, found.slope);
  }
}

}  // namespace collage
