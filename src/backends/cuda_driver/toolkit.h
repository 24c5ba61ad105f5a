// toolkit.h: where files of NVIDIA's CUDA toolkit and libraries are.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/dynamic_library.h"
#include "support/environment.h"

namespace collage::cuda_driver {

/// Elementary functions as LLVM's bitcode. The toolkit's licence lets it be passed on, other than ptxas.
inline constexpr const char* kDeviceLibrary = "libdevice.10.bc";

/// $CUDA_HOME, else the folder of NVIDIA's installer, else that of the wheels. Without any it is the installer's, where
/// nothing is.
inline std::filesystem::path ToolkitFolder() {
  if (const auto told = GetEnvironment("CUDA_HOME")) return *told;
  const std::filesystem::path usual = "/usr/local/cuda";
  std::error_code ignored;
  if (std::filesystem::exists(usual, ignored)) return usual;
  return FindInPackages("nvidia/cu13").value_or(usual);
}

/// The address of a symbol of one of NVIDIA's libraries: FindLibrarySymbol, which also looks in the toolkit and in
/// wheels.
inline void* FindSymbol(const std::string& file, const std::string& symbol) {
  std::vector<std::filesystem::path> folders{ToolkitFolder() / "lib64", ToolkitFolder() / "lib"};
  for (const char* wheel : {"nvidia/cu13/lib", "nvidia/cudnn/lib"}) {
    if (const auto folder = FindInPackages(wheel)) folders.push_back(*folder);
  }
  return FindLibrarySymbol(file, symbol, folders);
}

/// The path of that library: in the toolkit, else beside Collage's libraries, as in a bundle. Without either it is that
/// of the toolkit, where nothing is.
inline std::string DeviceLibrary() {
  const std::filesystem::path file = ToolkitFolder() / "nvvm/libdevice" / kDeviceLibrary;
  std::error_code ignored;
  const auto carried = std::filesystem::exists(file, ignored) ? std::nullopt : FindBesideModules(kDeviceLibrary);
  return carried.value_or(file);
}

}  // namespace collage::cuda_driver
