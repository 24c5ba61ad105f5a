// varying_results.cc: toolchains without the base class give the same results each time.
#include "collage/target/varying_results.h"

namespace collage {

bool ResultsVary(const Toolchain& toolchain) {
  const auto* own = dynamic_cast<const HasVaryingResults*>(&toolchain);
  return own != nullptr && own->results_vary();
}

}  // namespace collage
