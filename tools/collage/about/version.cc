// version.cc: `collage version` and --version: all that a report of a fault should say.
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include "bytecode/file_format.h"
#include "collage/compile.h"
#include "collage/runtime/c_api.h"
#include "command.h"
#include "commit.h"
#include "cost/database/tuning_database.h"
#include "runtime/plan/executable_format.h"
#include "support/machine.h"

namespace collage::cli {
namespace {

std::string OperatingSystem() {
  utsname names{};
  if (uname(&names) != 0) return "";
  return fmt::format("{} {} {}", names.sysname, names.release, names.machine);
}

Fact ToolchainRow(const ToolchainReport& toolchain) {
  return Fact::Record("", "",
                      {Fact::Text("name", "toolchain", toolchain.name),
                       Fact::Flag("available", "available", toolchain.available),
                       Fact::Text("version", "version", toolchain.version)})
      .Says("{name}[ {version}][ (not here){!available}]");
}

Fact VersionFacts() {
  const MachineInfo& machine = ThisMachine();
  return Fact::Report(
      1,
      {Fact::Line("",
                  {Fact::Text("version", "version", COLLAGE_VERSION), Fact::Text("commit", "commit", COLLAGE_COMMIT)})
           .Says("collage {version}[ ({commit})]"),
       Fact::Line("built", {Fact::Text("compiler", "compiler", fmt::format("GCC {}", __VERSION__)),
                            Fact::Text("glibc", "C library", gnu_get_libc_version())})
           .Says("by {compiler} · runs with glibc {glibc}"),
       Fact::Line("formats", {Fact::Count("executable_format", "executable", kExecutableFormat.version),
                              Fact::Count("bytecode_format", "bytecode", vm::kProgramFormat.version),
                              Fact::Count("database_schema", "tuning database", TuningDatabase::SchemaVersion()),
                              Fact::Count("c_abi", "C ABI", static_cast<int64_t>(collage_abi_version()))})
           .Says("executable {executable_format} · bytecode {bytecode_format} · tuning database {database_schema} · "
                 "C ABI {c_abi}"),
       Fact::Line("machine", {Fact::Text("cpu", "processor", machine.cpu),
                              Fact::Count("processors", "processors", machine.processors),
                              Fact::Texts("features", "instruction sets", machine.features).SeparatedBy(" ").Detail(),
                              Fact::Text("system", "system", OperatingSystem())})
           .Says("{cpu} · {processors} processor{s:processors} · {system}{?features}"),
       TableOf("toolchains", "toolchains", ProbeToolchains(), ToolchainRow).Inline()});
}

}  // namespace

void PrintVersion() { PrintReport(VersionFacts(), /*as_json=*/false); }

void AddVersionCommand(CLI::App& app) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("version", "Print the versions of Collage, its toolchains and formats, and the machine");
  command->add_flag("--json", *as_json, "Print as JSON");
  command->footer(
      "Examples:\n"
      "  collage version           for a report of a fault\n"
      "  collage version --json");
  command->callback([as_json] { PrintReport(VersionFacts(), *as_json); });
}

}  // namespace collage::cli
