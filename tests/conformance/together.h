// together.h: many functions as one partition.
#pragma once

#include <string>
#include <vector>

#include "conformance/conformance.h"

namespace collage::conformance {

/// A function, and what a failure calls it.
struct NamedFunction {
  std::string name;
  Function function;
};

/// As ExpectAgrees for each of `functions`, with all boundaries plain, compiled as one partition: most of the time that
/// such a test takes is spent on compiling. If that disagrees, they are tried one by one.
void ExpectAllAgree(const Toolchain& toolchain, const std::vector<NamedFunction>& functions,
                    const Options& options = {});

}  // namespace collage::conformance
