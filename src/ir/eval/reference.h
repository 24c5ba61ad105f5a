// reference.h: the reference results of a function, and how far correct results may deviate.
//
// Floats are compared with a tolerance: sums in another order differ in their last places. Some functions amplify such
// differences beyond any tolerance: a value rounded to an integer (qnn.quantize, round) may become the other neighbour,
// a whole step off, and the difference of two large, nearly equal numbers has their absolute error. If a result exceeds
// its tolerance, the effect of rounding is therefore measured: the function is evaluated several more times with random
// rounding in each operator (random_rounding.h), which deviates everywhere a kernel may deviate, and mostly by more.
// These evaluations bound four statistics of a result's deviations from the reference:
//
//     statistic   of all elements                        what exceeds it
//     largest     the largest deviation                  single elements, borders, channels that are wrong
//     rms         the root of the mean square            noise of another size: truncation, fewer bits
//     offset      the mean                               a wrong zero point, even by one
//     slope       of their regression on the reference   a wrong scale
//
// Noise mostly cancels in offset and slope; systematic errors do not. Elements that rounding hardly changes are
// compared with about the tolerance.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/runtime/tensor.h"
#include "ir/eval/evaluate.h"
#include "runtime/compare.h"

namespace collage {

/// How one result lies about another; elements that are not finite in both do not count.
struct Deviation {
  double largest = 0;
  double rms = 0;
  double offset = 0;
  double slope = 0;

  static Deviation Of(const Tensor& actual, const Tensor& expected);
};

struct ReferenceOptions {
  /// Whether elements that are not finite by the reference may be anything: of inputs so large that values overflow.
  bool only_finite = false;
  /// Whether elements that are NaN by the reference may be anything.
  bool only_numbers = false;
  /// Called after each operator that is evaluated: evaluation may take long.
  std::function<void()> on_operator;
};

/// The results of a function on certain inputs by reference evaluation, and what rounding leaves open about them.
/// Copies share everything. Not thread-safe: what rounding leaves open is found when it is first wanted.
class Reference {
 public:
  /// Evaluates the same function on the same inputs, as it is told.
  using Evaluation = std::function<std::vector<Tensor>(const EvaluateOptions& options)>;

  Reference() = default;
  /// Throws what `Evaluate` throws.
  Reference(const Function& function, std::span<const Tensor> inputs, ReferenceOptions options = {});
  /// Calls `evaluate` now and whenever more is wanted; `computed_in` is what ComputedIn returns for its results.
  Reference(Evaluation evaluate, std::vector<std::optional<DataType>> computed_in, ReferenceOptions options = {});
  /// Results about which nothing is open.
  explicit Reference(std::vector<Tensor> results);

  const std::vector<Tensor>& results() const { return state_->results; }

  /// Compares result `index` under the tolerance of the narrowest float type that it was computed in (the function's or
  /// `computed_in`), widened by the measured effect of rounding.
  Comparison Compare(size_t index, const Tensor& actual, std::optional<DataType> computed_in = {}) const;
  /// Compares under `tolerance`.
  Comparison Compare(size_t index, const Tensor& actual, const Tolerance& tolerance,
                     std::optional<DataType> computed_in = {}) const;

  /// Compares what may be off by `share` of the largest element, as lower precision is; of inputs of all sizes, where
  /// it may lose more, by what bfloat16 leaves open.
  Comparison CompareWithin(size_t index, const Tensor& actual, double share) const;

  /// The deviation of result `index` that rounding explains: the largest of each statistic over four evaluations.
  Deviation Open(size_t index, std::optional<DataType> computed_in = {}) const;
  /// Finds now what is open about all results, for all copies.
  void FindAllOpen() const {
    if (!results().empty()) Open(0);
  }

 private:
  static constexpr int kEvaluations = 4;

  /// Deviations found by evaluations that rounded at random.
  struct OpenResults {
    int num_evaluations = 0;
    std::vector<Deviation> results;
  };
  struct State {
    std::vector<Tensor> results;
    Evaluation evaluate;  ///< null: nothing is open
    std::vector<std::optional<DataType>> computed_in;
    ReferenceOptions options;
    std::map<std::string, OpenResults> open;  ///< by the type that was computed in
  };

  OpenResults& OpenIn(std::optional<DataType> computed_in) const;
  void EvaluateOnceMore(OpenResults& open, std::optional<DataType> computed_in) const;

  std::shared_ptr<State> state_;
};

/// Whether something in `function`, inner functions included, rounds to integers.
bool RoundsToIntegers(const Function& function);

}  // namespace collage
