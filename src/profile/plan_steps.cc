// plan_steps.cc: what the steps of a plan are, and their work, as far as files say.
#include "profile/plan_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace collage {
namespace {

using Step = ExecutionPlan::Step;

const char* KindOf(const Step& step) {
  switch (step.kind) {
    case Step::kKernel: return "kernel";
    case Step::kConvertLayout: return "layout change";
    case Step::kCopy: return "copy";
  }
  return "";
}

double BytesOf(const ExecutionPlan& plan, int index) {
  const ExecutionPlan::Value& value = plan.values[static_cast<size_t>(index)];
  return static_cast<double>(NumElements(value.shape)) *
         static_cast<double>(StoredType(value.layout, value.dtype).size_bytes());
}

}  // namespace

StepProfile DescribePlanStep(const ExecutionPlan& plan, const std::string& plan_name, int index) {
  const Step& step = plan.steps[static_cast<size_t>(index)];
  StepProfile profile;
  profile.kind = KindOf(step);
  profile.plan = plan_name;
  profile.plan_step = index;
  if (step.kind != Step::kKernel) {
    profile.toolchain = "host";
    profile.operators = profile.kind;
    return profile;
  }
  const ExecutionPlan::KernelEntry& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
  profile.partition = step.kernel;
  profile.toolchain = kernel.toolchain;
  profile.operators = kernel.label;
  profile.nodes = kernel.nodes;
  if (kernel.work) profile.node_products = kernel.work->node_products;
  if (kernel.estimated_seconds > 0) profile.estimated_seconds = kernel.estimated_seconds;
  return profile;
}

StepProfile DescribeDynamicKernel(const vm::DynamicKernel& kernel) {
  std::vector<std::string> names;
  for (const DynamicSizes::Step& step : kernel.sizes.steps) {
    if (step.op != nullptr) names.push_back(step.op->name);
  }
  StepProfile profile;
  profile.kind = "any size";
  profile.plan = kernel.name;
  profile.toolchain = kernel.toolchain;
  profile.operators = fmt::format("{}", fmt::join(names, "+"));
  profile.nodes = kernel.nodes;
  return profile;
}

std::vector<NamedPlan> PlansOf(const vm::Program& program) {
  std::vector<NamedPlan> plans;
  for (const vm::KernelFunction& kernel : program.kernels) plans.push_back({kernel.name, &kernel.executable.plan()});
  return plans;
}

std::optional<Work> WorkOfPlanStep(const ExecutionPlan& plan, int index) {
  const Step& step = plan.steps[static_cast<size_t>(index)];
  Work work;
  for (const int value : step.inputs) work.boundary_bytes += BytesOf(plan, value);
  for (const int value : step.outputs) work.boundary_bytes += BytesOf(plan, value);
  if (step.kind != Step::kKernel) return work;
  const auto& stated = plan.kernels[static_cast<size_t>(step.kernel)].work;
  if (!stated) return std::nullopt;
  work.products = stated->products;
  work.multiply_adds = stated->multiply_adds;
  work.spared = stated->spared;
  work.constant_bytes = stated->constant_bytes;
  return work;
}

}  // namespace collage
