// toolkit.h: where files of NVIDIA's CUDA toolkit are.
#pragma once

#include <filesystem>
#include <string>

#include "support/dynamic_library.h"
#include "support/environment.h"

namespace collage::cuda_driver {

/// Elementary functions as LLVM's bitcode. The toolkit's licence lets it be passed on, other than ptxas.
inline constexpr const char* kDeviceLibrary = "libdevice.10.bc";

inline std::string ToolkitFolder() { return GetEnvironment("CUDA_HOME").value_or("/usr/local/cuda"); }

/// The path of that library: in the toolkit, else beside Collage's libraries, as in a bundle. Without either it is that
/// of the toolkit, where nothing is.
inline std::string DeviceLibrary() {
  const std::string file = ToolkitFolder() + "/nvvm/libdevice/" + kDeviceLibrary;
  std::error_code ignored;
  const auto carried = std::filesystem::exists(file, ignored) ? std::nullopt : FindBesideModules(kDeviceLibrary);
  return carried ? carried->string() : file;
}

}  // namespace collage::cuda_driver
