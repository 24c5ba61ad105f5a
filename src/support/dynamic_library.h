// dynamic_library.h: opens Collage's own modules (toolchain compilers, kernel loaders) and the libraries that kernels
// call, when they are first needed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace collage {

/// Returns the folders in which modules are looked for, in this order: the folders of $COLLAGE_MODULE_PATH, then that
/// of the library that holds this function.
std::vector<std::filesystem::path> ModuleFolders();

/// The first file of that name in these folders: a module, or what a bundle has beside them.
std::optional<std::filesystem::path> FindBesideModules(const std::string& file);

/// The file beside Collage's libraries that says which libraries of Python packages modules are linked with. A line has
/// a module's file and a library's path in a folder of packages: "libcollage_rt_NAME.so vendor/lib/libvendor.so.1".
inline constexpr const char* kModuleLibrariesFile = "collage_module_libraries.txt";

/// The address of C symbol `symbol` in module `file`, which is looked for in $COLLAGE_MODULE_PATH and then beside the
/// library that holds this function. Libraries that the dynamic linker does not find for it are opened from folders of
/// packages, as `kModuleLibrariesFile` says. The module stays open. Throws kUnavailable with the system's reason.
void* FindModuleSymbol(const std::string& file, const std::string& symbol);

/// The address of C symbol `symbol` in the library `file` of somebody else, "libvendor.so.1", which is looked for in
/// the folders of $COLLAGE_LIBRARY_PATH, then where the system looks, then in `folders`. The library stays open. Throws
/// kUnavailable with the reason: that of the first such file, else the system's.
void* FindLibrarySymbol(const std::string& file, const std::string& symbol,
                        const std::vector<std::filesystem::path>& folders = {});

/// The file beside Collage's libraries that names the folders of Python packages ("site-packages") which Collage looks
/// into, one a line: absolute, or relative to the file's folder. A build names the environment that it was configured
/// with, a wheel the one that it is installed in; a bundle has no such file.
inline constexpr const char* kPackagesFile = "collage_packages.txt";

/// Returns the folders of Python packages that `kPackagesFile` names; none where there is no such file.
std::vector<std::filesystem::path> PackageFolders();

/// The libraries that `kModuleLibrariesFile` has for module `file`, where packages have them.
std::vector<std::filesystem::path> LibrariesOfModule(const std::string& file);

/// `path` in the first folder of Python packages that has it: what vendors' wheels install, libraries and programs. An
/// absolute path is looked for as it is.
std::optional<std::filesystem::path> FindInPackages(const std::filesystem::path& path);

}  // namespace collage
