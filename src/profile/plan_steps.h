// plan_steps.h: what the steps of a plan are, and their work, as far as files say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bytecode/bytecode.h"
#include "collage/profile.h"
#include "collage/runtime/executable.h"
#include "partition/work.h"

namespace collage {

/// A plan of an executable, or of a kernel of a program.
struct NamedPlan {
  std::string name;  ///< the kernel's; empty for the executable's own
  const ExecutionPlan* plan;
};

/// Describes step `index` of `plan`, which is called `plan_name`.
StepProfile DescribePlanStep(const ExecutionPlan& plan, const std::string& plan_name, int index);

/// The work of that step; nothing for kernels of files that do not state it.
std::optional<Work> WorkOfPlanStep(const ExecutionPlan& plan, int index);

/// Describes a kernel for dynamic shapes; `plan` is its name.
StepProfile DescribeDynamicKernel(const vm::DynamicKernel& kernel);

/// The plans of a program's kernels.
std::vector<NamedPlan> PlansOf(const vm::Program& program);

}  // namespace collage
