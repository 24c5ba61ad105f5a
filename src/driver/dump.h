// dump.h: the partitions of a cover as files, written by a worker.
#pragma once

#include <filesystem>

#include "collage/ir/module.h"
#include "lowering/compiled_store.h"
#include "worker/worker.h"

namespace collage {

/// Compiles the partitions of `module`, which is partitioned, and writes them into `folder` as PartitionDump says, the
/// module itself as `module.relay`, weights by their types only. Compilers run in a worker under `limits`. Throws as
/// PartitionDump, and kResource when the worker dies. Partitions in `compiled`, which may be null, are not compiled
/// again.
void DumpPartitions(const IRModule& module, int num_threads, const WorkerLimits& limits,
                    const std::filesystem::path& folder, CompiledStore* compiled = nullptr);

}  // namespace collage
