// timing.h: programs timed at several sizes.
#pragma once

#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/support/result.h"
#include "collage/vm/vm.h"
#include "worker/worker.h"

namespace collage {

/// Times @main of `programs`, interleaved, in a worker, on random inputs of each of `shapes`, which are those of the
/// parameters of `function`. Returns the medians in seconds, by program and then by shapes.
///
/// The first run with shapes finds sizes, the second plans them (bytecode/replay.h): neither is timed. No further
/// shapes are tried after `most_seconds`.
Result<std::vector<std::vector<double>>> TimeAtSizes(const std::vector<vm::Executable>& programs,
                                                     const Function& function,
                                                     const std::vector<std::vector<Shape>>& shapes, int num_threads,
                                                     double most_seconds, const WorkerLimits& limits);

/// The geometric mean: a size of long runs counts no more than one of short runs. At least one of `seconds`, all above
/// 0.
double GeometricMean(const std::vector<double>& seconds);

}  // namespace collage
