// planner.h: execution plans, made for a GPU that is here or for one that is described.
#pragma once

#include "backends/cudnn/loader/library.h"
#include "backends/cudnn/plan.h"

namespace collage::cudnn {

/// The library's handle of this process, whose work goes to the GPU's stream. Throws as the driver and the library do.
Handle TheHandle();

/// Throws as Library::Check does; kUnsupported where no engine has a plan.
Plan MakePlan(const PlanRequest& request);

/// How many engines the library ranks for the graph, but for those that it must not use.
int CountEngines(const PlanRequest& request);

}  // namespace collage::cudnn
