// compiles_elsewhere.cc: asks toolchains that have the base class, and says what holds for all others.
#include "collage/target/compiles_elsewhere.h"

namespace collage {
namespace {

const CompilesElsewhere* Find(const Toolchain& toolchain) { return dynamic_cast<const CompilesElsewhere*>(&toolchain); }

}  // namespace

Availability ProbeCompilerOf(const Toolchain& toolchain) {
  const CompilesElsewhere* own = Find(toolchain);
  return own != nullptr ? own->ProbeCompiler() : toolchain.Probe();
}

bool CompilesForThisProcessor(const Toolchain& toolchain) {
  const CompilesElsewhere* own = Find(toolchain);
  return own == nullptr || own->IsForThisProcessor();
}

Availability ProbeRunnerOf(const Toolchain& toolchain) {
  const CompilesElsewhere* own = Find(toolchain);
  return own != nullptr ? own->ProbeRunner() : toolchain.Probe();
}

std::optional<std::string> JoinedVersion(const Toolchain& toolchain, const std::string& compiler,
                                         const std::string& runner) {
  if (const CompilesElsewhere* own = Find(toolchain)) return own->JoinVersions(compiler, runner);
  return compiler == runner ? std::optional(runner) : std::nullopt;
}

}  // namespace collage
