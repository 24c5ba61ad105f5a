// dump.cc: one call of a worker.
#include "driver/dump.h"

#include <string>

#include "collage/ir/text.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "collage/support/result.h"
#include "collage/target/toolchain.h"
#include "lowering/lower.h"
#include "lowering/partition_dump.h"
#include "support/file.h"

namespace collage {

void DumpPartitions(const IRModule& module, int num_threads, const WorkerLimits& limits,
                    const std::filesystem::path& folder, CompiledStore* compiled) {
  PartitionDump dump(folder);
  WriteFile(folder / "module.relay", PrintModule(module, {.types = true, .metadata = false}));
  const auto write = [&](const std::string&, const SendProgress& progress) -> std::string {
    SignsOfLife alive(progress, "dump");
    SetNumThreads(num_threads);
    PartitionCache cache(ToolchainRegistry::Global(), compiled);
    cache.OnCompile([&] { alive.SayAgain(); });
    Lower(module, num_threads, cache, &dump);
    return "";
  };
  const Result<std::string> answer = Worker(write, limits).Call("");
  if (!answer.ok()) throw Error(ErrorCategory::kResource, answer.reason().text, folder.string());
}

}  // namespace collage
