// in_place.h: outputs of a plan that may be written to the memory of inputs, as a decoder's keys and values are.
#pragma once

#include <vector>

#include "collage/runtime/executable.h"

namespace collage {

/// For each output that may lie where an input does, the numbers of both: one kernel writes it, in place of the input,
/// which no later step reads. `kernels` has what the kernels of all steps say (`Kernel::in_place`), nothing for other
/// steps. `plan` has passed `FindPlanProblem`.
std::vector<InPlaceResult> InPlaceOutputs(const ExecutionPlan& plan,
                                          const std::vector<std::vector<InPlaceResult>>& kernels);

/// Whether a byte belongs to both.
bool Overlap(const Tensor& a, const Tensor& b);

}  // namespace collage
