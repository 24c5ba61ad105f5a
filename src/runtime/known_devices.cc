// known_devices.cc: asks each module.
#include "runtime/known_devices.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "collage/runtime/device.h"
#include "collage/support/error.h"
#include "support/dynamic_library.h"

namespace collage {
namespace {

bool IsInAFolder(const std::string& module) {
  return std::ranges::any_of(ModuleFolders(), [&](const std::filesystem::path& folder) {
    std::error_code failure;
    return std::filesystem::exists(folder / module, failure);
  });
}

}  // namespace

std::string DeviceModule(int device_type) { return "libcollage_device_" + DeviceName(device_type) + ".so"; }

std::vector<KnownDevice> DescribeDevices() {
  std::set<int> types;
  for (const Memory memory : AllMemories()) types.insert(DeviceTypeOf(memory));
  types.erase(DeviceTypeOf(Memory::kHost));
  std::vector<KnownDevice> devices;
  for (const int type : types) {
    const std::string module = DeviceModule(type);
    if (!IsInAFolder(module)) continue;
    KnownDevice& device = devices.emplace_back();
    device.name = DeviceName(type);
    try {
      void* symbol = FindModuleSymbol(module, "collage_describe_device");
      reinterpret_cast<DescribeDeviceFn*>(symbol)(device.description);
    } catch (const Error& error) {
      device.reason = error.message();
    }
  }
  return devices;
}

}  // namespace collage
