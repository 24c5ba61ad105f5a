// bundled_files.h: files that a toolchain opens or runs beside its modules, so that `collage bundle` can take them
// along.
#pragma once

#include <string>
#include <vector>

#include "collage/target/toolchain.h"

namespace collage {

/// A file of this machine, and its name in the folder of a bundle's libraries.
struct BundledFile {
  std::string path;
  std::string name;
};

/// Base class of a `Toolchain` that needs more than its modules and the libraries which these are linked with: a
/// library that is opened by name, a program, data. It looks for such a file beside Collage's libraries, too
/// (`FindBesideModules`, support/dynamic_library.h).
class HasBundledFiles {
 public:
  virtual ~HasBundledFiles() = default;
  /// The files that are here and may be passed on. Throws kUnavailable where it would be of no use without one that is
  /// not here.
  virtual std::vector<BundledFile> BundledFiles() const = 0;
};

/// The toolchain's BundledFiles; none where it has no such base.
std::vector<BundledFile> BundledFilesOf(const Toolchain& toolchain);

}  // namespace collage
