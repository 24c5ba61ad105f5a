// shared_libraries.h: which files a program or library is loaded with on this machine.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace collage {

/// Whether the library is part of glibc: of one version with the kernel's loader, it is never carried to another
/// machine.
bool IsPartOfLibc(const std::string& name);

/// The libraries that `file` needs, directly or not, without those of glibc: path by name. The dynamic linker
/// `interpreter` finds them as it would for a process of this environment, and runs none of their code; those of
/// packages are found as LibrariesOfModule says. Throws kUnavailable, with its reason, such as a library that it does
/// not find.
std::map<std::string, std::filesystem::path> SharedLibrariesOf(const std::filesystem::path& file,
                                                               const std::string& interpreter);

}  // namespace collage
