// bundle.h: `collage bundle`: this Collage as a folder, or an archive of it, for machines where nothing is installed;
// or as a Python package, for wheels.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace collage {

struct BundleOptions {
  std::string command;                    ///< the program that becomes bin/collage
  std::string output;                     ///< the folder to make, or the archive, "*.tar.xz" or "*.tar.gz"
  std::vector<std::string> toolchains{};  ///< taken along whatever their size; others if they are small
  std::string package{};                  ///< the folder of the built Python package; empty: none is made
};

struct BundledToolchain {
  std::string name;
  bool is_included = false;
  int64_t bytes = 0;     ///< size of the files that it adds to those of toolchains before
  std::string reason{};  ///< why it is not included
};

struct BundleReport {
  std::string output;
  int64_t tree_bytes = 0;
  int num_files = 0;
  std::optional<int64_t> archive_bytes;
  std::pair<int, int> libc;  ///< the oldest glibc that it runs with
  std::vector<BundledToolchain> toolchains;
  std::vector<std::string> without_licence;  ///< copied libraries whose licence text was not found
  std::set<std::string> left_to_packages;    ///< libraries that other Python packages hold, by path in their folder
};

/// Makes the bundle. Nothing of it is there when that fails.
///
///     bin/collage            looks for libraries in ../lib, also those that others open
///     lib/                   Collage's libraries and modules; what these are linked with, but for glibc
///     share/doc/             licences of all of it
///
/// Compiler modules are those of the folder `portable` beside the libraries, which are linked with static libraries.
///
/// With `package`, the folder is that Python package, with bin, lib and share in it, as a wheel holds it. It differs
/// from a bundle, since a process of Python loads other libraries, too, and an environment holds other packages:
///
/// - libstdc++ and libgcc are the system's: two of them in one process would have to be of one version;
/// - copies of the system's libraries have names of their own ("clgssl.so.3" for "libssl.so.3"), so that neither is
///   taken for the other;
/// - libraries that another package holds stay behind, and are looked for where that package is installed beside this;
/// - files that a toolchain opens by name come along only if it is asked for: the system or other packages have them.
///
/// Throws kUnavailable where the native toolchain has none, kInput for names that no toolchain has and for an output
/// that is there, kUnsupported in a bundle, kResource where files cannot be written.
BundleReport MakeBundle(const BundleOptions& options);

}  // namespace collage
