// whole_model_check.cc: inputs, their results by reference evaluation, and how others differ.
#include "driver/play_off/whole_model_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <set>

#include "collage/support/error.h"
#include "cost/machine/roofline.h"
#include "ir/eval/sample_inputs.h"
#include "runtime/compare.h"
#include "support/numbers.h"

namespace collage {
namespace {

// Evaluating the reference on all random inputs takes too long for models that add up more products than this.
constexpr double kSmallModel = 1e8;

}  // namespace

std::vector<Tensor> InOrderOfParameters(const NamedInputs& inputs, const Function& main, const std::string& where) {
  std::vector<Tensor> in_order;
  std::set<std::string> used;
  std::string problems;
  const auto tell = [&](const std::string& problem) { problems += (problems.empty() ? "" : "; ") + problem; };
  for (const Var& param : main->params()) {
    auto it = inputs.find(param->name());
    if (it == inputs.end()) it = inputs.find("in." + param->name());
    const Type& type = param->checked_type() ? param->checked_type() : param->type_annotation();
    if (it == inputs.end()) {
      tell(fmt::format("no values for input '{}', which is {}", param->name(), ToString(type)));
      continue;
    }
    used.insert(it->first);
    const Tensor& given = it->second;
    const TensorTypeNode* wanted = AsTensorType(type);
    bool fits = wanted != nullptr && wanted->dtype() == given.dtype() && wanted->rank() == given.rank();
    for (int i = 0; fits && i < given.rank(); ++i) {
      const Dim& dim = wanted->shape()[static_cast<size_t>(i)];
      fits = dim.is_any() || dim.size() == given.shape()[static_cast<size_t>(i)];
    }
    if (!fits) {
      tell(fmt::format("input '{}' is {}, got {} {}", param->name(), ToString(type), given.dtype().ToString(),
                       ToString(given.shape())));
    }
    in_order.push_back(given);
  }
  for (const auto& [name, _] : inputs) {
    if (!used.contains(name) && !name.starts_with("out.")) tell(fmt::format("the model has no input '{}'", name));
  }
  if (!problems.empty()) throw Error(ErrorCategory::kInput, problems, where);
  return in_order;
}

WholeModelCheck::WholeModelCheck(const Function& main, WholeModelCheckOptions options)
    : options_(std::move(options)), on_progress_(std::make_shared<std::function<void()>>(options_.on_progress)) {
  AddRandomSamples(main);
  for (const std::vector<Tensor>& inputs : options_.inputs) {
    AddSample(main, {inputs, {}, fmt::format("the inputs that were given ({})", samples_.size())});
  }
}

void WholeModelCheck::AddRandomSamples(const Function& main) {
  const bool takes_long = WorkOf(main).multiply_adds > kSmallModel;
  std::exception_ptr failure;
  for (const Draw draw : DrawsToCheck(takes_long, HasFloat16(main))) {
    try {
      AddSample(main, {.inputs = SampleInputs(main, draw),
                       .reference = {},
                       .name = std::string(NameOf(draw)),
                       .is_unit = draw == Draw::kUnit,
                       .is_wide = draw == Draw::kWide});
    } catch (const Error&) {  // an operator that refuses such values, as a scatter beyond the end
      if (!failure) failure = std::current_exception();
    }
  }
  if (samples_.empty() && options_.inputs.empty()) std::rethrow_exception(failure);
}

void WholeModelCheck::AddSample(const Function& main, Sample sample) {
  // Evaluated operator by operator, so that progress is reported for each.
  const auto on_operator = [on_progress = on_progress_] {
    if (*on_progress) (*on_progress)();
  };
  sample.reference = Reference(main, sample.inputs, {.only_finite = sample.is_wide, .on_operator = on_operator});
  // Every worker would find it out again, and wants it if integers are rounded.
  if (!options_.max_error && RoundsToIntegers(main)) sample.reference.FindAllOpen();
  samples_.push_back(std::move(sample));
}

void WholeModelCheck::SetInputs(ExecutionInstance& instance) const { SetInputs(samples_.front(), instance); }

void WholeModelCheck::SetInputs(const Sample& sample, ExecutionInstance& instance) {
  for (size_t i = 0; i < sample.inputs.size(); ++i) instance.SetInput(i, sample.inputs[i]);
}

std::string WholeModelCheck::Check(ExecutionInstance& instance, double& error) const {
  std::vector<const Sample*> order;
  for (const Sample& sample : samples_) order.push_back(&sample);
  order.push_back(&samples_.front());
  for (size_t run = 0; run < order.size(); ++run) {
    const Sample& sample = *order[run];
    SetInputs(sample, instance);
    Progress();
    std::string difference;
    if (run == 0 && sample.is_unit) {
      difference = RunLookingForOverflow(instance);
    } else {
      instance.Run();
    }
    Progress();
    for (size_t i = 0; i < sample.reference.results().size(); ++i) {
      const std::string found = FindDifference(sample, i, instance.Output(i), error);
      if (difference.empty() && !found.empty()) difference = found + ", on " + sample.name;
    }
    if (!difference.empty()) return difference;
  }
  return "";
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

std::string WholeModelCheck::FindDifference(const Sample& sample, size_t index, const Tensor& actual,
                                            double& error) const {
  const Reference& reference = sample.reference;
  if (!options_.max_error) {
    const Comparison comparison = reference.Compare(index, actual);
    if (!sample.is_wide) error = std::max(error, comparison.max_relative_error);
    return comparison.agrees ? "" : fmt::format("wrong result {}, {}", index, comparison.difference);
  }
  const Comparison comparison = reference.CompareWithin(index, actual, *options_.max_error);
  if (!sample.is_wide) error = std::max(error, comparison.max_relative_error);
  if (comparison.agrees) return "";
  return fmt::format("result {} is off by {:.1e} of its largest element, where {:g} is allowed: {}", index,
                     comparison.max_relative_error, *options_.max_error, comparison.difference);
}

}  // namespace collage
