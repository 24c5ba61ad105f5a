// probe_toolchains.cc: which toolchains this process has, and what each says of itself.
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/builtin_toolchains.h"
#include "collage/compile.h"
#include "collage/target/toolchain.h"
#include "collage/transform/passes.h"
#include "driver/builtins.h"
#include "driver/phases/collage_partition.h"
#include "target/option_text.h"

namespace collage {

void AddBuiltins() {
  static std::once_flag once;
  std::call_once(once, [] {
    AddBuiltinToolchains(ToolchainRegistry::Global());
    RegisterPass({"CollagePartition",
                  0,
                  {"InferType"},
                  "the module is covered by the partitions that the search finds best",
                  CollagePartition});
  });
}

std::vector<ToolchainReport> ProbeToolchains() {
  AddBuiltins();
  std::vector<ToolchainReport> reports;
  const std::vector<const Toolchain*> toolchains = ToolchainRegistry::Global().All();
  for (const Toolchain* toolchain : toolchains) {
    const Availability availability = toolchain->Probe();
    ToolchainReport report{toolchain->name(), availability.available, availability.version, availability.reason,
                           availability.hint};
    report.is_default = toolchain->is_default();
    report.license = toolchain->license();
    for (const Hook hook : toolchain->Hooks()) report.hooks.emplace_back(ToString(hook));
    for (const AttrField& option : toolchain->Options()) {
      report.options.push_back(
          {option.name, OptionKindText(option.kind), OptionValueText(option.default_value), option.doc});
    }
    for (const Toolchain* other : toolchains) {
      if (other == toolchain) continue;
      const std::optional<std::string> why = WhyIncompatible(*toolchain, *other);
      if (why) report.incompatible.emplace_back(other->name(), *why);
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

std::string TuningVersion(const ToolchainReport& toolchain) {
  const ToolchainRegistry& registry = ToolchainRegistry::Global();
  return toolchain.version + "+" + registry.RevisionOf(*registry.Find(toolchain.name));
}

}  // namespace collage
