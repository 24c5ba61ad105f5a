// weight_statistics.h: numbers that say what the elements of a constant are like.
#pragma once

#include <optional>

#include "collage/runtime/tensor.h"
#include "support/json_fields.h"

namespace collage {

struct WeightStatistics {
  double minimum = 0;
  double maximum = 0;
  double mean = 0;
  double deviation = 0;  ///< the standard deviation of the elements
  double zeros = 0;      ///< the share of elements that are zero
};

/// Returns the statistics of all elements: integers of 8 bits and more, floats of 16 and more. Nothing for others, for
/// tensors without elements, and where an element is infinite or no number.
std::optional<WeightStatistics> StatisticsOf(const Tensor& tensor);

template <typename Self, typename Visitor>
requires IsMessage<Self, WeightStatistics>
void VisitFields(Self& weights, Visitor& visit) {
  visit.Field("minimum", weights.minimum);
  visit.Field("maximum", weights.maximum);
  visit.Field("mean", weights.mean);
  visit.Field("deviation", weights.deviation);
  visit.Field("zeros", weights.zeros);
}

}  // namespace collage
