// plan_check.h: whether a plan may be run. A plan from a file may say anything, its checksum being right.
#pragma once

#include <string>

#include "collage/runtime/executable.h"

namespace collage {

/// Why the executor must not touch this plan; empty when it may: all indices, byte offsets and sizes are in range and
/// fit each other, no step writes inputs, constants, or memory that it reads or writes otherwise, and no more working
/// memory is asked for than values and workspaces need. O(n log n) in the plan's size.
///
/// Everything else that kernels rely on is compared with what they were compiled for (kernel_signature.h).
std::string FindPlanProblem(const ExecutionPlan& plan, size_t num_blobs);

}  // namespace collage
