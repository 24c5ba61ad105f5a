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

/// The kernels for any size of a program.
struct AnySizeKernels {
  const Toolchain* native = nullptr;           ///< compiles dynamic fusions; may be null
  std::map<std::string, int64_t> kernels;      ///< by the toolchains' names as they take part
  std::map<std::string, std::string> reasons;  ///< why a toolchain that competed has none, by the same names
};

/// Returns the part of each of `known` in a program. `report` is that of its regions, `module` has its dynamic fusions.
std::vector<ToolchainPart> FindToolchainParts(const std::vector<KnownToolchain>& known, const CompileReport& report,
                                              const IRModule& module, const AnySizeKernels& any_size);

}  // namespace collage
