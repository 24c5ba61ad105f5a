// toolchain_module.h: toolchains outside of the tree. A module `libcollage_toolchain_NAME.so` holds the description of
// one; it is found in the folders of $COLLAGE_MODULE_PATH and beside Collage's libraries (docs/add-a-toolchain.md).
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "collage/target/toolchain.h"

namespace collage {

/// Counts changes of toolchain.h that modules built before do not survive: these are refused.
inline constexpr int kToolchainInterface = 3;

/// Content of the C symbol `collage_toolchain_module` of a module.
struct ToolchainModule {
  int interface_number;
  std::unique_ptr<Toolchain> (*make)();
};

/// Adds the toolchains of all modules there are, by name, to `registry`, with digests of the modules as revisions. One
/// that cannot be opened, was built for another interface or gives itself another name than its file does is added as a
/// toolchain that is not available, with the reason. If several modules have one name, the first one found counts.
void AddToolchainModules(ToolchainRegistry& registry);

/// For `Toolchain::Probe`: what to say when one of these modules, "libcollage_rt_NAME.so", is nowhere to be found;
/// nothing when all are there. None is opened.
std::optional<std::string> WhyModuleMissing(std::initializer_list<std::string> files);

/// For `Toolchain::Probe`: what to say when the library that the modules were linked with, by its path then, is neither
/// there nor beside Collage's libraries; nothing when it is. The path of a library that a Python package holds is
/// relative to the folder of packages, "vendor/lib/libvendor.so.1".
std::optional<std::string> WhyLibraryMissing(const std::string& path);

}  // namespace collage

/// At the end of a module's source, outside of any namespace: `make` returns a std::unique_ptr<collage::Toolchain>.
#define COLLAGE_TOOLCHAIN_MODULE(make)                                                                       \
  extern "C" __attribute__((visibility("default"))) const collage::ToolchainModule collage_toolchain_module; \
  const collage::ToolchainModule collage_toolchain_module{collage::kToolchainInterface, make};
