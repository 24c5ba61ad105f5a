// kernel.cc: finding the loader of a kernel's kind.
#include "collage/runtime/kernel.h"

#include <map>
#include <mutex>

#include "collage/support/error.h"
#include "runtime/native_loader.h"
#include "support/dynamic_library.h"

namespace collage {
namespace {

// Of loaders that Python adds: "python.NAME".
constexpr std::string_view kPythonPrefix = "python.";

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
