// fusion_patterns.h: matches that a toolchain of fusion style kTVMFusion computes as one operator.
#pragma once

#include <string>
#include <vector>

#include "collage/target/toolchain.h"

namespace collage {

/// Base class of a `Toolchain` that fuses by operator kinds, and computes more in one kernel than kinds tell.
class HasFusionPatterns {
 public:
  virtual ~HasFusionPatterns() = default;
  /// DFPattern texts, as in PatternTableEntry. A match is a candidate beside single operators if `SupportsCall` takes
  /// all of its calls: no Composite is made of it, and it is combined by its kind as they are.
  virtual std::vector<std::string> FusionPatterns() const = 0;
};

/// The toolchain's FusionPatterns; none where it has no such base.
std::vector<std::string> FusionPatternsOf(const Toolchain& toolchain);

}  // namespace collage
