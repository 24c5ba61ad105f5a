// symbolic_sizes.cc: asks toolchains that have the base class, and answers for all others.
#include "collage/target/symbolic_sizes.h"

namespace collage {

bool CompilesSymbolicSizes(const Toolchain& toolchain) {
  const auto* own = dynamic_cast<const HasSymbolicSizes*>(&toolchain);
  return own != nullptr && own->compiles_symbolic_sizes();
}

Result<void> SupportsSymbolicSizes(const Toolchain& toolchain, const CallNode& call) {
  if (!CompilesSymbolicSizes(toolchain)) return Reason{"needs to know all shapes", toolchain.name()};
  return dynamic_cast<const HasSymbolicSizes&>(toolchain).SupportsSymbolicSizes(call);
}

}  // namespace collage
