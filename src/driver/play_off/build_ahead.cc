// build_ahead.cc: one partition after the other, backwards.
#include "driver/play_off/build_ahead.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "cost/measure/timing_lock.h"
#include "lowering/lower.h"

namespace collage {
namespace {

void Compile(const ModulePartition& partition, CompiledStore& store) {
  try {
    // A cache of its own: compiled partitions are kept by the store, not in memory.
    PartitionCache cache(ToolchainRegistry::Global(), &store);
    const Toolchain* toolchain = cache.Find(partition.toolchain);
    // One of each structure is compiled. The worker makes the others of it: the store does not keep these.
    const bool updates = toolchain != nullptr && toolchain->Has(Hook::kUpdateConstants);
    if (updates && store.FindLike(*toolchain, partition.request)) return;
    cache.Compile(partition.toolchain, partition.request);
  } catch (const Error&) {
    // The play-off's worker meets it again.
  }
}

}  // namespace

BuildAhead::BuildAhead(const std::vector<ContenderModule>& modules, std::vector<int> contenders,
                       const PlayOffOptions& options) {
  if (options.compiled == nullptr || AvailableProcessors() < 2) return;
  std::ranges::reverse(contenders);
  worker_ = std::make_unique<Worker>(
      [&modules, &options, contenders = std::move(contenders)](const std::string&, const SendProgress&) {
        const TimingLock together(TimingLock::Mode::kShared);
        for (const int contender : contenders) {
          const IRModule& module = modules[static_cast<size_t>(contender)].module;
          for (const ModulePartition& partition : std::views::reverse(PartitionsOf(module, options.num_threads))) {
            Compile(partition, *options.compiled);
          }
        }
        return std::string();
      },
      options.limits);
  try {
    worker_->Begin("");
  } catch (const Error&) {
    worker_.reset();  // there is no room for another process: the play-off takes longer
  }
}

}  // namespace collage
