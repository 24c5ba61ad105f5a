// plan_json.h: the plan as it is stored in an executable, without constants and blobs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "collage/runtime/executable.h"

namespace collage {

nlohmann::json PlanToJson(const ExecutionPlan& plan);

/// Fills everything but constants and blobs. Throws kCorrupt without a place, or nlohmann's exceptions, for JSON that
/// is not a plan. Numbers fit their fields; what they refer to is for `FindPlanProblem` (plan_check.h).
void PlanFromJson(const nlohmann::json& json, ExecutionPlan& plan);

/// An integer between `least` and `most`, both included. Throws kCorrupt, calling it `what`, for anything else.
int64_t IntegerFrom(const nlohmann::json& json, int64_t least, int64_t most, const char* what);
/// A checksum: 64 bits. Throws kCorrupt.
uint64_t ChecksumFrom(const nlohmann::json& json);
/// A shape whose dimensions are not negative. Throws kCorrupt.
Shape ShapeFrom(const nlohmann::json& json);
/// A dtype by its name. Throws kCorrupt, saying that it is that of `what`.
DataType DTypeFrom(const nlohmann::json& json, const char* what);

}  // namespace collage
