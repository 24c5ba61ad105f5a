// libraries.h: libraries of other toolchains that native kernels call for tiles of products (target option `libs`).
#pragma once

#include <string>
#include <vector>

#include "collage/target/micro_kernels.h"

namespace collage::native {

/// One of them, as its toolchain describes it.
struct CalledLibrary {
  std::string name;     ///< the toolchain's name
  std::string version;  ///< the library's, and the state of our code for it
  std::vector<MicroKernel> kernels;
};

/// Returns the libraries that "NAME,NAME" lists, in its order. Throws kInput for a name that is given twice, or whose
/// toolchain has no such functions, listing the toolchains that have; kUnavailable, with the toolchain's reason, for a
/// library that cannot be used here.
std::vector<CalledLibrary> ReadLibraries(const std::string& text);

}  // namespace collage::native
