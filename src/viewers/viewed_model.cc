// viewed_model.cc: what viewers show of an executable.
#include "viewers/viewed_model.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "bytecode/bytecode.h"
#include "collage/support/error.h"

namespace collage {
namespace {

using Json = nlohmann::json;

/// Whether a row of a profile's `steps` is about `step`.
bool IsAbout(const Json& row, const StepProfile& step) {
  const Json& plan_step = row.at("plan_step");
  return row.at("plan").get<std::string>() == step.plan &&
         (step.plan_step ? plan_step.is_number_integer() && plan_step.get<int64_t>() == *step.plan_step
                         : plan_step.is_null()) &&
         row.at("operators").get<std::string>() == step.operators;
}

}  // namespace

ViewedModel::ViewedModel(const std::filesystem::path& file) : name_(file.filename().string()) {
  if (vm::Executable::IsBytecode(file)) {
    program_ = vm::Executable::Load(file);
    plans_ = PlansOf(program_->program());
  } else {
    executable_ = Executable::Load(file);
    plans_ = {{"", &executable_->plan()}};
  }
  for (const NamedPlan& plan : plans_) {
    first_steps_[plan.plan] = steps_.size();
    for (size_t i = 0; i < plan.plan->steps.size(); ++i) {
      steps_.push_back(DescribePlanStep(*plan.plan, plan.name, static_cast<int>(i)));
    }
  }
  if (!program_) return;
  for (const vm::DynamicKernel& kernel : program_->program().dynamic_kernels) {
    steps_.push_back(DescribeDynamicKernel(kernel));
  }
}

void ViewedModel::TakeTimes(const std::string& profile, const std::string& name) {
  size_t found = 0;
  try {
    const Json json = Json::parse(profile);
    for (StepProfile& step : steps_) {
      for (const Json& row : json.at("steps")) {
        if (!IsAbout(row, step)) continue;
        step.seconds = {row.at("p10_seconds").get<double>(), row.at("p50_seconds").get<double>(),
                        row.at("p90_seconds").get<double>()};
        step.calls = row.at("calls").get<int64_t>();
        ++found;
        break;
      }
    }
  } catch (const Json::exception&) {
    throw Error(ErrorCategory::kInput, "not a profile", name,
                "`collage profile model.clg --json > profile.json` writes one");
  }
  if (found == 0 && !steps_.empty()) {
    throw Error(ErrorCategory::kInput, fmt::format("the profile has no step of '{}'", name_), name,
                "it is of another executable: profile this one");
  }
  is_measured_ = true;
}

const StepProfile& ViewedModel::StepOf(const NamedPlan& plan, size_t index) const {
  return steps_[first_steps_.at(plan.plan) + index];
}

double ViewedModel::AllSeconds() const {
  double all = 0;
  for (const StepProfile& step : steps_) all += SecondsOf(step).value_or(0);
  return all;
}

std::optional<double> SecondsOf(const StepProfile& step) {
  return step.seconds.p50 > 0 ? std::optional(step.seconds.p50) : step.estimated_seconds;
}

std::string ViewedModel::ColorOf(const std::string& toolchain) const {
  // Light colours, on which black text is readable (qualitative scheme Set3 of ColorBrewer, Brewer and Harrower).
  constexpr std::array kColors{"#8dd3c7", "#ffffb3", "#bebada", "#fb8072", "#80b1d3", "#fdb462",
                               "#b3de69", "#fccde5", "#bc80bd", "#ccebc5", "#ffed6f"};
  constexpr const char* kNone = "#d9d9d9";  // layout changes, copies
  std::set<std::string> names;
  for (const StepProfile& step : steps_) {
    if (step.kind == "kernel" || step.kind == "any size") names.insert(step.toolchain);
  }
  const auto found = names.find(toolchain);
  return found == names.end() ? kNone
                              : kColors[static_cast<size_t>(std::distance(names.begin(), found)) % kColors.size()];
}

}  // namespace collage
