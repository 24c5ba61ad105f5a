// worker.cc: `collage worker`: measures for a compilation elsewhere what it is asked on standard input.
#include <sys/prctl.h>

#include <csignal>
#include <iostream>
#include <optional>

#include "collage/compile.h"
#include "command.h"
#include "cost/runner/measuring_worker.h"
#include "support/machine.h"

namespace collage::cli {
namespace {

struct Arguments {
  std::string wanted;
  std::string timeout = "60s";
  int64_t memory_bytes = int64_t{12} << 30;
};

void Run(const Arguments& arguments) {
  // Whoever asked is gone, and with it the wish: a measurement that went on would disturb the next one's.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::ios::sync_with_stdio(false);  // requests may be long
  WorkerIdentity here{COLLAGE_VERSION, ThisMachine().fingerprint, ThisMachine().processors, {}};
  for (const ToolchainReport& toolchain : ProbeToolchains()) {
    if (toolchain.available) here.toolchains[toolchain.name] = TuningVersion(toolchain);
  }
  std::optional<WorkerIdentity> wanted;
  if (!arguments.wanted.empty()) wanted = WorkerIdentityFromText(arguments.wanted);
  const WorkerLimits limits{
      .timeout = std::chrono::milliseconds(static_cast<int64_t>(ParseDuration(arguments.timeout) * 1000)),
      .memory_bytes = arguments.memory_bytes};
  ServeMeasurements(here, wanted ? &*wanted : nullptr, limits, std::cin, std::cout);
}

}  // namespace

void AddWorkerCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "worker", "Measure what standard input asks for, in lines of JSON (started by compile --runner on its machines)");
  command->add_option("--wanted", arguments->wanted,
                      "What this machine should be, as the first line that this prints: it then says how it differs");
  command->add_option("--timeout", arguments->timeout, "A measurement that answers nothing for so long has failed")
      ->capture_default_str();
  command->add_option("--memory", arguments->memory_bytes, "Bytes that a measurement may take; 0 = no limit")
      ->check(CLI::NonNegativeNumber);
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
