// libraries.h: toolchains whose libraries native kernels call for tiles of products: the target option `libs`.
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

/// Returns the libraries that "NAME,NAME" lists, in its order. Throws kInput for names of toolchains that have no such
/// functions, with those that have, and kUnavailable where one is not here, with what its toolchain says of that.
std::vector<CalledLibrary> ReadLibraries(const std::string& text);

}  // namespace collage::native
