// toolchain_parts.h: the part of each toolchain in a program with dynamic shapes: nothing is left out in silence.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/ir/module.h"
#include "collage/target/toolchain.h"

namespace collage {

/// A toolchain that is available.
struct KnownToolchain {
  const Toolchain* toolchain = nullptr;  ///< as it is registered
  std::string left_out;                  ///< why it takes no part at all; empty if it does
};

/// Returns the part of each of `known` in a program. `report` is that of its regions, `module` has its dynamic fusions,
/// of which `any_size` compiled `num_kernels`; it may be null.
std::vector<ToolchainPart> FindToolchainParts(const std::vector<KnownToolchain>& known, const CompileReport& report,
                                              const IRModule& module, const Toolchain* any_size, size_t num_kernels);

}  // namespace collage
