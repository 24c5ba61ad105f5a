// whole_model_check.cc: random inputs, their results by reference evaluation, and how others differ.
#include "search/whole_model_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "collage/target/toolchain.h"
#include "cost/worker/measure.h"
#include "ir/evaluate.h"
#include "runtime/compare.h"
#include "support/numbers.h"

namespace collage {
namespace {

std::vector<Tensor> RandomInputs(const Function& main) {
  const PartitionRequest request{
      main, PlainLayouts(main->params().size(), FlattenTensorTypes(main->body()->checked_type()).size())};
  return PartitionBuffers(request).plain_inputs();
}

}  // namespace

// Where the error that is allowed is known, it does not matter what rounding leaves open.
WholeModelCheck::WholeModelCheck(const Function& main, std::optional<double> max_error)
    : max_error_(max_error),
      inputs_(RandomInputs(main)),
      reference_(max_error ? Reference(Evaluate(main, inputs_)) : Reference(main, inputs_)) {}

void WholeModelCheck::SetInputs(ExecutionInstance& instance) const {
  for (size_t i = 0; i < inputs_.size(); ++i) instance.SetInput(i, inputs_[i]);
}

std::string WholeModelCheck::Check(ExecutionInstance& instance, double& error) const {
  std::string first;
  for (const bool is_watched : {true, false}) {
    if (is_watched) {
      first = RunLookingForOverflow(instance);
    } else {
      instance.Run();
    }
    for (size_t i = 0; i < reference_.results().size(); ++i) {
      const std::string difference = FindDifference(i, instance.Output(i), error);
      if (first.empty()) first = difference;
    }
  }
  return first;
}

std::string WholeModelCheck::RunLookingForOverflow(ExecutionInstance& instance) {
  constexpr float kLargest = 65504;
  constexpr float kRoom = 255;  // images as bytes, where the check's are within 1
  float largest = 0;
  instance.RunWatched([&](const ExecutionPlan::Value& value, const void* data) {
    if (NarrowType(value.layout) != kFloat16) return;
    const auto* elements = static_cast<const uint16_t*>(data);
    for (int64_t i = 0; i < NumElements(value.shape); ++i) {
      const float magnitude = std::abs(HalfToFloat(elements[i]));
      largest = std::isnan(magnitude) ? std::numeric_limits<float>::infinity() : std::max(largest, magnitude);
    }
  });
  if (largest <= kLargest / kRoom) return "";
  return fmt::format(
      "a value kept as float16 reaches {:g}: float16 ends at {:g}, and other inputs may be {:g} times as large",
      largest, kLargest, kRoom);
}

std::string WholeModelCheck::FindDifference(size_t index, const Tensor& actual, double& error) const {
  const Tensor& expected = reference_.results()[index];
  const Comparison comparison =
      max_error_ ? Compare(actual, expected, ShareOfLargest(expected, *max_error_)) : reference_.Compare(index, actual);
  error = std::max(error, comparison.max_relative_error);
  if (comparison.agrees) return "";
  if (!max_error_) return fmt::format("wrong result {}, {}", index, comparison.difference);
  return fmt::format("result {} is off by {:.1e} of its largest element, where {:g} is allowed: {}", index,
                     comparison.max_relative_error, *max_error_, comparison.difference);
}

}  // namespace collage
