// find.h: the programs that may compute a model at any size.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "driver/any_size/contender.h"
#include "program/regions.h"

namespace collage {

struct AnySizeContenders {
  ProgramRegions program;                      ///< with native kernels alone; others have the same regions
  std::vector<AnySizeContender> contenders;    ///< at least one
  std::vector<std::string> symbolic;           ///< names of toolchains for symbolic sizes among them
  std::map<std::string, std::string> reasons;  ///< why a toolchain for symbolic sizes is not, by name

  /// Whether the toolchain that was registered as `name` has a contender, or one that can be used.
  bool Has(const std::string& name) const;
  bool IsRight(const std::string& name) const;
};

/// Returns a contender of native kernels alone, and one for each of the toolchains `symbolic` that takes some part of
/// `module` with dynamic shapes. `native` may be null. If the others are to be alone, that of native kernels is left
/// out unless it would be the only one.
AnySizeContenders FindAnySizeContenders(const IRModule& module, const Toolchain* native,
                                        const std::vector<const Toolchain*>& symbolic, bool are_alone);

}  // namespace collage
