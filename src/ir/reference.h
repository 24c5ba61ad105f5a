// reference.h: what a function's results must be, and how far from it right ones may lie.
//
// Floats are compared with a tolerance: sums in another order differ in their last places. A float that is then rounded
// to an integer (qnn.quantize, round) may fall to the other one of two neighbours, however small its error was, and be a whole
// step off; what is computed of it is off by more than any tolerance for floats. Kernels that keep a model in 8 bits
// do this all the time, and are right. How far off they may be is measured: the function is evaluated some times more,
// each operator rounding at random (OpDef::random_rounding), which is off at every place where a kernel may be off, and
// mostly by more. What was found so bounds four things about a result's deviations from the reference:
//
//     statistic   of all elements                        what exceeds it
//     largest     the largest deviation                  single elements, borders, channels that are wrong
//     rms         the root of the mean square            noise of another size: truncation, fewer bits
//     offset      the mean                               a wrong zero point, be it by one
//     slope       of their regression on the reference   a wrong scale
//
// Noise adds up to little in offset and slope, where errors that have a system do not. What no rounding changes is
// compared with the tolerance alone.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/runtime/tensor.h"
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

/// The results of a function on certain inputs by reference evaluation, and what rounding leaves open about them.
/// Immutable; copies share the tensors.
class Reference {
 public:
  Reference() = default;
  /// Throws what `Evaluate` throws. When something in `function` rounds, it is evaluated four times more.
  Reference(const Function& function, std::span<const Tensor> inputs);
  /// Results about which nothing is open.
  explicit Reference(std::vector<Tensor> results);

  const std::vector<Tensor>& results() const { return results_; }
  /// Whether result `index` depends on how something is rounded.
  bool IsOpen(size_t index) const { return open_[index].largest > 0; }

  /// Compares result `index` under ToleranceFor, or under `tolerance`, widened by what rounding leaves open.
  Comparison Compare(size_t index, const Tensor& actual) const;
  Comparison Compare(size_t index, const Tensor& actual, const Tolerance& tolerance) const;

 private:
  static constexpr int kEvaluations = 4;

  std::vector<Tensor> results_;
  std::vector<Deviation> open_;  ///< by result: the largest of each statistic, by magnitude
};

/// Whether something in `function`, inner functions included, rounds to integers.
bool RoundsToIntegers(const Function& function);

}  // namespace collage
