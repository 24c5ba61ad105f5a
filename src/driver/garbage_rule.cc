// garbage_rule.cc: which versions of toolchains are installed here, for `collage db gc`.
#include "driver/garbage_rule.h"

#include <ctime>

#include "collage/compile.h"
#include "support/machine.h"

namespace collage {

GarbageRule GarbageRuleFor(bool other_versions, std::optional<double> older_than, bool failures) {
  GarbageRule rule;
  rule.failures = failures;
  if (older_than) rule.before = UtcText(std::time(nullptr) - static_cast<std::time_t>(*older_than));
  if (!other_versions) return rule;
  rule.machine = ThisMachine().fingerprint;
  for (const ToolchainReport& toolchain : ProbeToolchains()) {
    // A toolchain that is missing may come back.
    if (toolchain.available) rule.versions[toolchain.name] = TuningVersion(toolchain);
  }
  return rule;
}

}  // namespace collage
