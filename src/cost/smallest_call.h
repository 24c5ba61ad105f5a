// smallest_call.h: what calling a toolchain costs at least: partitions of one operator on one element, which compute
// next to nothing.
#pragma once

#include "collage/target/toolchain.h"
#include "cost/timing.h"
#include "cost/tuning_database.h"

namespace collage {

/// Times the toolchain's candidates in a chain of small operators on tensors of one element, and answers with the
/// quickest. Not ok when it takes none of them. Runs in a worker: it compiles and runs the toolchain's code.
TuningRecord MeasureSmallestCall(const Toolchain& toolchain, int num_threads, const TimingOptions& timing);

}  // namespace collage
