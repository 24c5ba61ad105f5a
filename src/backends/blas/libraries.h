// libraries.h: which BLAS libraries this machine has. Looked up by file, since looking must not load them.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace collage::blas_toolchain {

struct Library {
  std::string name;  ///< "openblas", "blis" or "mkl"
  std::string path;
  std::string
      version;  ///< the file's name, which has the release where the distribution writes it there, and its folder's
};

/// One of each kind that is here, in this order: OpenBLAS, BLIS, MKL. A bundle's own comes before the system's.
std::vector<Library> FindLibraries();

/// The names of all kinds, whether here or not.
std::span<const char* const> LibraryNames();

}  // namespace collage::blas_toolchain
