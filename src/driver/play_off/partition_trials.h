// partition_trials.h: the trial of partitions that are about to be written and that nobody has measured.
#pragma once

#include <functional>
#include <string>

#include "collage/ir/module.h"
#include "lowering/lower.h"

namespace collage {

/// Tries the partitions of a partitioned module by TryKernel, each structure once, except for those that `store` says
/// were tried in this run (CompiledStore::WasTried). A partition comes without a measurement of this run where its cost
/// was known or estimated, or where it was given.
///
/// A whole model shows only those faults that its own values reach: relu behind a sigmoid never gets more than 1.
/// References of partitions that add up too many products for their trial are left out; everything else is checked.
///
/// Returns "'acme' on nn.relu: wrong result 0 on large random inputs, …" of the first fault, or nothing. To be called
/// in a worker, where `cache` has the compiled partitions. `on_trial` is called before each.
std::string FindFaultInPartitions(const IRModule& module, int num_threads, PartitionCache& cache, CompiledStore* store,
                                  const std::function<void()>& on_trial);

}  // namespace collage
