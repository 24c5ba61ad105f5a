// plan.h: an execution plan of cuDNN as a kernel's blob, and how the library's module is asked for one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/cudnn/graph.h"
#include "collage/support/result.h"

namespace collage::cudnn {

/// A value that a plan reads or writes.
struct PlanOperand {
  int64_t id = 0;
  Source source = Source::kInput;  ///< not kInside
  int64_t number = 0;              ///< the input's or constant's; kScratch's first byte in the workspace
  float value = 0;                 ///< kNumber's
};

struct Plan {
  std::string architecture;  ///< GPUs that it is for: "sm_90"
  std::string library;       ///< who made it: "cuDNN 9.19.0"
  std::vector<PlanOperand> operands;
  int64_t workspace_bytes = 0;  ///< the library's, and kScratch values behind
  std::string text;             ///< the library's own
};

std::vector<std::byte> ToBlob(const Plan& plan);
/// Throws kCorrupt, also where an operand's number is less than 0.
Plan PlanFrom(std::span<const std::byte> blob);

/// Which plan is wanted.
struct PlanRequest {
  const Graph& graph;
  std::string device;  ///< properties of a GPU as JSON; empty: the GPU that is here
  int engine = -1;     ///< number among those that the library ranks for the graph; -1: the first that has a plan
};

/// C symbol `collage_cudnn_plan` of the library's module: `architecture` and `operands` are left to the caller.
using MakePlanFn = void(const PlanRequest& request, Result<Plan>& plan);
/// C symbol `collage_cudnn_count`: how many engines the library ranks; 0 where it cannot say.
using CountEnginesFn = void(const PlanRequest& request, int& count);

}  // namespace collage::cudnn
