// whole_model_check.cc: random inputs, their results by reference evaluation, and how others differ.
#include "search/whole_model_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "collage/target/toolchain.h"
#include "cost/worker/measure.h"
#include "ir/evaluate.h"
#include "runtime/compare.h"

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
  for (int run = 0; run < 2; ++run) {
    instance.Run();
    for (size_t i = 0; i < reference_.results().size(); ++i) {
      const std::string difference = FindDifference(i, instance.Output(i), error);
      if (first.empty()) first = difference;
    }
  }
  return first;
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
