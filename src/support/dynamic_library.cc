// dynamic_library.cc: dlopen with the search order and the errors that Collage's modules want.
#include "support/dynamic_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "collage/support/error.h"
#include "support/environment.h"

namespace collage {
namespace {

std::vector<std::filesystem::path> FoldersIn(const std::string& path) {
  std::vector<std::filesystem::path> folders;
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, ':');) {
    if (!part.empty()) folders.emplace_back(part);
  }
  return folders;
}

/// Opens a module, after the libraries of packages that the dynamic linker does not find for it: those it takes by
/// their names then. An installed module has no path to them, as its prefix and the packages may be moved.
void* OpenModule(const std::filesystem::path& path) {
  if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  for (const auto& library : LibrariesOfModule(path.filename().string())) {
    dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  }
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

std::vector<std::filesystem::path> ModuleFolders() {
  std::vector<std::filesystem::path> folders = FoldersIn(GetEnvironment("COLLAGE_MODULE_PATH").value_or(""));
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&FindModuleSymbol), &info) != 0 && info.dli_fname != nullptr) {
    std::error_code ignored;
    folders.push_back(std::filesystem::weakly_canonical(info.dli_fname, ignored).parent_path());
  }
  return folders;
}

std::optional<std::filesystem::path> FindBesideModules(const std::string& file) {
  for (const std::filesystem::path& folder : ModuleFolders()) {
    std::error_code ignored;
    if (std::filesystem::exists(folder / file, ignored)) return folder / file;
  }
  return std::nullopt;
}

void* FindModuleSymbol(const std::string& file, const std::string& symbol) {
  std::string reason = "the file was not found";
  for (const auto& folder : ModuleFolders()) {
    std::error_code ignored;
    const auto path = folder / file;
    if (!std::filesystem::exists(path, ignored)) continue;
    void* handle = OpenModule(path);
    if (handle == nullptr) {
      reason = dlerror();
      continue;
    }
    void* address = dlsym(handle, symbol.c_str());
    if (address != nullptr) return address;
    reason = "it lacks the symbol '" + symbol + "'";
  }
  throw Error(ErrorCategory::kUnavailable, "cannot open module '" + file + "': " + reason, "",
              "modules are looked for in $COLLAGE_MODULE_PATH and beside the Collage libraries");
}

void* FindLibrarySymbol(const std::string& file, const std::string& symbol,
                        const std::vector<std::filesystem::path>& folders) {
  std::string reason;
  const auto find = [&](const std::string& path) -> void* {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const std::string problem = handle == nullptr ? dlerror() : "";
    void* address = handle == nullptr ? nullptr : dlsym(handle, symbol.c_str());
    if (address == nullptr && reason.empty()) {
      reason = handle == nullptr ? "cannot open library '" + file + "': " + problem
                                 : "library '" + path + "' lacks the symbol '" + symbol + "'";
    }
    return address;
  };
  const auto find_in = [&](const std::vector<std::filesystem::path>& places) -> void* {
    for (const auto& folder : places) {
      std::error_code ignored;
      const auto path = folder / file;
      if (!std::filesystem::exists(path, ignored)) continue;
      if (void* address = find(path.string())) return address;
    }
    return nullptr;
  };
  if (void* address = find_in(FoldersIn(GetEnvironment("COLLAGE_LIBRARY_PATH").value_or("")))) return address;
  if (void* address = find(file)) return address;
  if (void* address = find_in(folders)) return address;
  throw Error(ErrorCategory::kUnavailable, reason, "",
              "libraries are looked for in $COLLAGE_LIBRARY_PATH and where the system looks");
}

std::vector<std::filesystem::path> PackageFolders() {
  std::vector<std::filesystem::path> folders;
  const auto list = FindBesideModules(kPackagesFile);
  if (!list) return folders;
  std::ifstream lines(*list);
  for (std::string line; std::getline(lines, line);) {
    std::error_code ignored;  // a folder that is not there holds no packages
    if (!line.empty()) folders.push_back(std::filesystem::weakly_canonical(list->parent_path() / line, ignored));
  }
  return folders;
}

std::vector<std::filesystem::path> LibrariesOfModule(const std::string& file) {
  std::vector<std::filesystem::path> found;
  const auto list = FindBesideModules(kModuleLibrariesFile);
  if (!list) return found;
  std::ifstream lines(*list);
  for (std::string module, library; lines >> module >> library;) {
    if (module != file) continue;
    if (const auto path = FindInPackages(library)) found.push_back(*path);
  }
  return found;
}

std::optional<std::filesystem::path> FindInPackages(const std::filesystem::path& path) {
  std::error_code ignored;
  if (path.is_absolute() && std::filesystem::exists(path, ignored)) return path;
  if (path.is_absolute()) return std::nullopt;
  for (const std::filesystem::path& folder : PackageFolders()) {
    if (std::filesystem::exists(folder / path, ignored)) return folder / path;
  }
  return std::nullopt;
}

}  // namespace collage
