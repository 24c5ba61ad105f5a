// shared_gomp.cc: the dynamic linker binds a needed library to one that is loaded under its name, wherever that came
// from.
#include "runtime/threads/shared_gomp.h"

#include <dlfcn.h>

#include <filesystem>

namespace collage {
namespace {

constexpr const char* kName = "libgomp.so.1";
constexpr const char* kOrigin = "runtime";

/// The folder of the library that holds this function.
std::filesystem::path OwnFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&UseSharedGomp), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  return std::filesystem::weakly_canonical(info.dli_fname, ignored).parent_path();
}

}  // namespace

std::optional<Reason> UseSharedGomp() {
  if (void* loaded = dlopen(kName, RTLD_LAZY | RTLD_NOLOAD)) {
    const bool is_ours = dlsym(loaded, "collage_shared_gomp") != nullptr;
    dlclose(loaded);  // only this call's reference
    if (is_ours) return std::nullopt;
    return Reason{"the process has already loaded another libgomp.so.1", kOrigin};
  }
  const std::filesystem::path path = OwnFolder() / "collage_gomp" / kName;
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return std::nullopt;
  return Reason{dlerror(), kOrigin};
}

}  // namespace collage
