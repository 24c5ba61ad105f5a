// compare.h: whether two tensors agree within a tolerance, and where not.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "collage/runtime/tensor.h"

namespace collage {

/// |actual - expected| <= absolute + relative * |expected| must hold for every element.
struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-4;
};

/// The outcome of a comparison.
struct Comparison {
  bool agrees = false;
  double max_absolute_error = 0;  ///< infinity where types differ, or one of two elements is NaN or infinite
  double max_relative_error = 0;  ///< largest |actual - expected| over the largest |expected|
  std::string difference;         ///< when they disagree: the first place, or what differs in type
};

/// Compares dtype, shape and elements. NaN agrees with NaN alone, an infinity with itself alone.
Comparison Compare(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance);

/// Tolerance for a result computed in `dtype` from terms as large as `expected`'s elements: exact for integers, the
/// absolute part scaled by the largest element for floats (sums are reordered, terms may cancel).
Tolerance ToleranceFor(const Tensor& expected);
/// Returns the tolerance of results that were computed in `computed_in`, if that is narrower than their type.
Tolerance ToleranceFor(const Tensor& expected, std::optional<DataType> computed_in);

/// Tolerance for errors of `share` of the largest finite element of `expected`, wherever they are.
Tolerance ShareOfLargest(const Tensor& expected, double share);

}  // namespace collage
