// varying_results.h: toolchains whose kernels compute the same in another order now and then.
#pragma once

#include "collage/target/toolchain.h"

namespace collage {

/// Base class of a `Toolchain` whose kernels may give results that differ from run to run on equal inputs, within the
/// tolerance: threads that add up parts of a sum as they finish, say. Kernels of other toolchains must give the same
/// bytes each time; one that does not is refused.
class HasVaryingResults {
 public:
  virtual ~HasVaryingResults() = default;

  /// False for a decorator of a toolchain whose results do not vary.
  virtual bool results_vary() const { return true; }
};

/// Whether results of `toolchain` may vary from run to run.
bool ResultsVary(const Toolchain& toolchain);

}  // namespace collage
