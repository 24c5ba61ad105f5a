// worker.cc: `collage worker`: measures for a compilation elsewhere what it is asked on standard input.
#include <chrono>

#include "collage/compile.h"
#include "command.h"
#include "driver/serve_worker.h"

namespace collage::cli {
namespace {

struct Arguments {
  std::string wanted;
  std::string timeout = "60s";
  std::string memory = FormatBinaryBytes(CompileOptions().candidate_memory_bytes);
};

void Run(const Arguments& arguments) {
  ServeWorker(arguments.wanted,
              std::chrono::milliseconds(static_cast<int64_t>(ParseDuration(arguments.timeout) * 1000)),
              ParseBytes(arguments.memory));
}

}  // namespace

void AddWorkerCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "worker",
      "Measure partitions requested on standard input, in lines of JSON (started by --runner on other machines)");
  command->add_option("--wanted", arguments->wanted,
                      "Required machine, as the first line that a worker prints; this one then reports how it differs");
  command->add_option("--timeout", arguments->timeout, "Time after which a silent measurement has failed")
      ->capture_default_str();
  command->add_option("--memory", arguments->memory, "Memory limit of a measurement, such as 12GiB; 0 = no limit")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  collage worker < /dev/null    prints the machine, and ends with its input");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
