// serve_worker.cc: what this machine is, and answers.
#include "driver/serve_worker.h"

#include <sys/prctl.h>

#include <csignal>
#include <iostream>
#include <optional>

#include "collage/compile.h"
#include "cost/runner/measuring_worker.h"
#include "support/machine.h"

namespace collage {

void ServeWorker(const std::string& wanted, std::chrono::milliseconds timeout, int64_t memory_bytes) {
  // Without its parent a worker ends: a measurement that went on would disturb the next one's.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::ios::sync_with_stdio(false);  // requests may be long
  WorkerIdentity here{COLLAGE_VERSION, ThisMachine().fingerprint, ThisMachine().processors, {}};
  for (const ToolchainReport& toolchain : ProbeToolchains()) {
    if (toolchain.available) here.toolchains[toolchain.name] = TuningVersion(toolchain);
  }
  std::optional<WorkerIdentity> identity;
  if (!wanted.empty()) identity = WorkerIdentityFromText(wanted);
  const WorkerLimits limits{.timeout = timeout, .memory_bytes = memory_bytes};
  ServeMeasurements(here, identity ? &*identity : nullptr, limits, std::cin, std::cout);
}

}  // namespace collage
