// transition.h: what crossing from one partition to the next costs beyond what both take (RFC 0.81, Appendix E: by
// measurement rather than hard coded). Changes of layout are measured by themselves (MeasureConversion), for each
// shape.
#pragma once

#include <vector>

#include "collage/target/toolchain.h"
#include "cost/database/tuning_database.h"
#include "cost/measure/timing.h"
#include "lowering/compiled_store.h"

namespace collage {

/// Times what the executor takes for one more partition: a chain of kernels that do nothing. p50 is seconds per
/// partition.
TuningRecord MeasureTransition(const TimingOptions& timing);

/// Times how much longer a small partition of `to` takes right after one of `from` than when it is timed as candidates
/// are: `from` may have evicted code, and threads of `to` that had gone to sleep must be woken. p50 is seconds, 0 at
/// least. Not ok when either takes none of the operators tried. Partitions are compiled here unless `store` (or null)
/// has them. Runs in a worker.
TuningRecord MeasureSwitch(const Toolchain& from, const Toolchain& to, int num_threads, const TimingOptions& timing,
                           const CompiledStore* store = nullptr);

/// Returns the small partitions of `toolchain` for that: the first one that it compiles is timed.
std::vector<PartitionRequest> SmallPartitions(const Toolchain& toolchain, int num_threads);

}  // namespace collage
