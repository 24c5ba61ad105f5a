// partition_trials.cc: which partitions are tried, and for which of them the reference is affordable.
#include "driver/play_off/partition_trials.h"

#include <fmt/format.h>

#include <exception>
#include <set>

#include "collage/ir/structural.h"
#include "cost/measure/kernel_trial.h"
#include "partition/work.h"

namespace collage {
namespace {

// Products that references of one executable's partitions may add up, all draws together: a second or two.
constexpr double kAffordableProducts = 3e9;
// Draws that a trial evaluates, of partitions that take long.
constexpr double kFewestDraws = 2;

std::string Try(const Toolchain& toolchain, const ModulePartition& partition, PartitionCache& cache,
                bool has_reference) {
  TrialOptions trying = TrialOptionsFor(toolchain);
  trying.has_reference = has_reference;
  trying.may_be_refused = true;
  double ignored = 0;
  try {
    LoadedPartition loaded(*cache.Compile(partition.toolchain, partition.request), partition.request.num_threads);
    return TryKernel(loaded, partition.request, trying, ignored);
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

std::string FindFaultInPartitions(const IRModule& module, int num_threads, PartitionCache& cache, CompiledStore* store,
                                  const std::function<void()>& on_trial) {
  std::set<std::string> tried;
  double affordable = kAffordableProducts;
  for (const ModulePartition& partition : PartitionsOf(module, num_threads)) {
    const Toolchain* toolchain = cache.Find(partition.toolchain);
    if (toolchain == nullptr || (store != nullptr && store->WasTried(*toolchain, partition.request))) continue;
    if (!tried.insert(CompiledStore::StructureOf(*toolchain, partition.request)).second) continue;
    on_trial();
    const double products = kFewestDraws * WorkOf(partition.request.function).products;
    const bool has_reference = products <= affordable;
    if (has_reference) affordable -= products;
    const std::string fault = Try(*toolchain, partition, cache, has_reference);
    if (!fault.empty()) {
      return fmt::format("'{}' on {}: {}", toolchain->name(), OperatorLabel(partition.request.function), fault);
    }
    if (store != nullptr) store->MarkTried(*toolchain, partition.request);
  }
  return "";
}

}  // namespace collage
