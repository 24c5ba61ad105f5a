// toolchain_module.cc: finding and opening modules that describe a toolchain.
#include "collage/target/toolchain_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "support/dynamic_library.h"
#include "support/file.h"
#include "support/hash.h"

namespace collage {
namespace {

constexpr std::string_view kPrefix = "libcollage_toolchain_";
constexpr std::string_view kSuffix = ".so";

/// Stands for a module that is of no use: takes nothing, and says why.
class Unusable : public Toolchain {
 public:
  Unusable(std::string name, std::string file, std::string reason)
      : name_(std::move(name)), file_(std::move(file)), reason_(std::move(reason)) {}
  std::string name() const override { return name_; }
  std::string description() const override { return "a module that cannot be used"; }
  Availability Probe() const override { return {false, "", reason_, "repair or remove '" + file_ + "'"}; }
  int priority() const override { return 1000; }
  Result<void> SupportsCall(const CallNode&) const override { return Reason{reason_, name_}; }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest&) const override { return Reason{reason_, name_}; }

 private:
  std::string name_, file_, reason_;
};

/// By the toolchain's name, as the file gives it.
std::map<std::string, std::filesystem::path> FindModules() {
  std::map<std::string, std::filesystem::path> modules;
  for (const std::filesystem::path& folder : ModuleFolders()) {
    std::error_code ignored;  // a folder that cannot be read holds no modules
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      const std::string file = entry.path().filename().string();
      if (!file.starts_with(kPrefix) || !file.ends_with(kSuffix)) continue;
      modules.emplace(file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size()), entry.path());
    }
  }
  return modules;
}

/// The module's toolchain. It is never closed: kernels and costs outlive the caller.
std::unique_ptr<Toolchain> Open(const std::string& name, const std::filesystem::path& file) {
  const auto unusable = [&](const std::string& reason) {
    return std::make_unique<Unusable>(name, file.string(), reason);
  };
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return unusable(fmt::format("its module cannot be opened: {}", dlerror()));
  const auto* module = static_cast<const ToolchainModule*>(dlsym(handle, "collage_toolchain_module"));
  if (module == nullptr) return unusable("its module lacks the symbol 'collage_toolchain_module'");
  if (module->interface_number != kToolchainInterface) {
    return unusable(fmt::format("its module was built for interface {}, this is {}: build it again",
                                module->interface_number, kToolchainInterface));
  }
  try {
    std::unique_ptr<Toolchain> toolchain = module->make();
    if (toolchain == nullptr) return unusable("its module made no toolchain");
    if (toolchain->name() == name) return toolchain;
    return unusable(fmt::format("its module holds a toolchain of another name, '{}'", toolchain->name()));
  } catch (const std::exception& error) {
    return unusable(fmt::format("its module failed: {}", error.what()));
  }
}

}  // namespace

void AddToolchainModules(ToolchainRegistry& registry) {
  constexpr size_t kRevisionDigits = 8;
  for (const auto& [name, file] : FindModules()) {
    if (registry.Find(name) != nullptr) continue;  // what is built in, or was added before
    std::string revision;
    try {
      revision = HexDigest(ReadFile(file)).substr(0, kRevisionDigits);
    } catch (const Error& error) {
      registry.Add(std::make_unique<Unusable>(name, file.string(), error.message()));
      continue;
    }
    registry.Add(Open(name, file), revision);
  }
}

std::optional<std::string> WhyModuleMissing(std::initializer_list<std::string> files) {
  for (const std::string& file : files) {
    if (!FindBesideModules(file)) {
      return fmt::format("its module '{}' is in no folder of $COLLAGE_MODULE_PATH nor beside Collage's libraries",
                         file);
    }
  }
  return std::nullopt;
}

std::optional<std::string> WhyLibraryMissing(const std::string& path) {
  const std::filesystem::path file = path;
  if (FindBesideModules(file.filename()) || FindInPackages(file)) return std::nullopt;
  if (file.is_absolute()) return fmt::format("its library '{}' is gone", path);
  return fmt::format("its library '{}' is not installed in this Python environment", file.filename().string());
}

}  // namespace collage
