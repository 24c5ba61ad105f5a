// targets.cc: `collage targets`: each toolchain, whether it can be used here, or why not.
#include <fmt/format.h>

#include "collage/compile.h"
#include "command.h"

namespace collage::cli {
namespace {

void Run(bool json) {
  const std::vector<ToolchainReport> toolchains = ProbeToolchains();
  if (json) {
    Json report{{"schema", 1}, {"toolchains", Json::array()}};
    for (const ToolchainReport& toolchain : toolchains) {
      report["toolchains"].push_back({{"name", toolchain.name},
                                      {"available", toolchain.available},
                                      {"version", toolchain.version},
                                      {"reason", toolchain.reason},
                                      {"hint", toolchain.hint}});
    }
    PrintJson(report);
    return;
  }
  Table table({"toolchain", "available", "version", "why not"});
  for (const ToolchainReport& toolchain : toolchains) {
    table.Add({toolchain.name, toolchain.available ? "yes" : "no", toolchain.version,
               toolchain.reason + (toolchain.hint.empty() ? "" : " (" + toolchain.hint + ")")});
  }
  fmt::print("{}", table.ToText());
}

}  // namespace

void AddTargetsCommand(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("targets", "List the toolchains: available, version, or the reason why not");
  command->add_flag("--json", *json, "Print as JSON");
  command->callback([json] { Run(*json); });
}

}  // namespace collage::cli
