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

/// The address of C symbol `symbol` in module `file`, which is looked for in $COLLAGE_MODULE_PATH and then beside the
/// library that holds this function. The module stays open. Throws kUnavailable with the system's reason.
void* FindModuleSymbol(const std::string& file, const std::string& symbol);

/// The address of C symbol `symbol` in the library `file` of somebody else, "libvendor.so.1", which is looked for in
/// the folders of $COLLAGE_LIBRARY_PATH, then where the system looks, then in `folders`. The library stays open. Throws
/// kUnavailable with the reason: that of the first such file, else the system's.
void* FindLibrarySymbol(const std::string& file, const std::string& symbol,
                        const std::vector<std::filesystem::path>& folders = {});

/// `path` in a folder of Python packages, where vendors' wheels put libraries and programs: the one that holds the
/// installed package `collage`, else that of the environment which Collage was built with.
std::optional<std::filesystem::path> FindInPackages(const std::filesystem::path& path);

}  // namespace collage
