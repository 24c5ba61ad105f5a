// kernel.cc: finding the loader of a kernel's kind.
#include "collage/runtime/kernel.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "collage/support/error.h"
#include "runtime/native_loader.h"
#include "support/dynamic_library.h"

namespace collage {
namespace {

// Prefix of loaders that Python adds: "python.NAME".
constexpr std::string_view kPythonPrefix = "python.";

/// Names become those of files: a name that a file gives must not lead elsewhere.
bool IsLoaderName(std::string_view name) {
  constexpr std::string_view kOthers = "_-.";
  return !name.empty() && std::ranges::all_of(name, [&](char c) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return is_letter || (c >= '0' && c <= '9') || kOthers.find(c) != kOthers.npos;
  });
}

struct Loaders {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<KernelLoader>, std::less<>> by_name;

  /// Never destroyed: loaders hold on to vendors' libraries, whose own global objects may be gone by then (OpenVINO's
  /// thread pool is when this process may use one processor only).
  static Loaders& Get() {
    static Loaders& loaders = *new Loaders;
    return loaders;
  }
};

}  // namespace

KernelLoader& GetKernelLoader(std::string_view name) {
  Loaders& loaders = Loaders::Get();
  const std::lock_guard lock(loaders.mutex);
  auto it = loaders.by_name.find(name);
  if (it != loaders.by_name.end()) return *it->second;
  if (!IsLoaderName(name)) throw Error(ErrorCategory::kCorrupt, "a kernel's loader has no name");
  std::unique_ptr<KernelLoader> loader;
  if (name == kObjectLoaderName) {
    loader = MakeObjectLoader();
  } else if (name.starts_with(kPythonPrefix)) {
    const std::string toolchain(name.substr(kPythonPrefix.size()));
    throw Error(ErrorCategory::kUnavailable,
                "kernels of toolchain '" + toolchain + "' are run by Python, and it is not registered in this process",
                "", "load the executable from Python, after collage.register_toolchain");
  } else {
    void* symbol = FindModuleSymbol("libcollage_rt_" + std::string(name) + ".so", "collage_make_kernel_loader");
    loader.reset(reinterpret_cast<MakeKernelLoaderFn*>(symbol)());
  }
  return *loaders.by_name.emplace(std::string(name), std::move(loader)).first->second;
}

void AddKernelLoader(std::string name, std::unique_ptr<KernelLoader> loader) {
  Loaders& loaders = Loaders::Get();
  const std::lock_guard lock(loaders.mutex);
  loaders.by_name[std::move(name)] = std::move(loader);
}

}  // namespace collage
