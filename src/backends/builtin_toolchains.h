// builtin_toolchains.h: the one door from the compiler to the folders of src/backends/.
#pragma once

#include "collage/target/toolchain.h"

namespace collage {

/// Adds the toolchains that this build includes, in their fixed order, then those of modules (toolchain_module.h). Call
/// once.
void AddBuiltinToolchains(ToolchainRegistry& registry);

}  // namespace collage
