// plan_json.h: the plan as it is stored in an executable, without constants and blobs, and its validation.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "collage/runtime/executable.h"

namespace collage {

nlohmann::json PlanToJson(const ExecutionPlan& plan);

/// Fills everything but constants and blobs. Throws nlohmann's exceptions for JSON that is not a plan.
void PlanFromJson(const nlohmann::json& json, ExecutionPlan& plan);

/// Why the executor must not touch this plan (an index or a byte offset out of range); empty when it may.
std::string FindPlanProblem(const ExecutionPlan& plan, size_t num_blobs);

}  // namespace collage
