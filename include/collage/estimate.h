// estimate.h: costs of candidates from the program that calls the compiler.
#pragma once

#include <functional>
#include <string>

#include "collage/ir/module.h"
#include "collage/target/target.h"

namespace collage {

/// Seconds that a candidate partition, @main of `candidate`, takes as a kernel for `target` (RFC 0.81, Appendix E).
/// Infinity: it cannot be run. NaN: unknown, so it is only used where nothing else will do.
using EstimateCandidate = std::function<double(const IRModule& candidate, const Target& target)>;

/// Returns the cost of a candidate that was extracted as a function: infinity when it cannot be run, NaN when it is
/// unknown. Asked once for each target and structurally different candidate, when the search needs it.
using CandidateCost = std::function<double(const Function& candidate, const std::string& target)>;

}  // namespace collage
