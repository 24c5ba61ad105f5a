// device.cc: the table of memories, and the devices of this process.
#include "collage/runtime/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <vector>

#include "collage/support/error.h"
#include "runtime/known_devices.h"
#include "support/dynamic_library.h"

namespace collage {
namespace {

constexpr int kProcessor = 1;  // DLDeviceType

/// Definition of a memory.
struct Row {
  Memory memory;
  const char* name;
  int device_type;  ///< DLDeviceType
  const char* scope;
};
constexpr std::array kRows{
    Row{Memory::kHost, "host", kProcessor, ""},
    Row{Memory::kExtDev, "ext_dev", 12, ""},
    Row{Memory::kExtDevVtcm, "ext_dev:global.vtcm", 12, "global.vtcm"},
    Row{Memory::kCuda, "cuda", 2, ""},
    Row{Memory::kOpencl, "opencl", 4, ""},
    Row{Memory::kOpenclTexture, "opencl:global.texture", 4, "global.texture"},
};
constexpr auto kMemories = [] {
  std::array<Memory, kRows.size()> memories{};
  for (size_t i = 0; i < kRows.size(); ++i) memories[i] = kRows[i].memory;
  return memories;
}();

const Row& RowOf(Memory memory) {
  const auto number = static_cast<size_t>(memory);
  COLLAGE_CHECK(number < kRows.size()) << "there is no memory " << number;
  return kRows[number];
}

struct Devices {
  std::mutex mutex;
  std::map<int, std::unique_ptr<Device>> by_type;

  /// Never destroyed, as loaders are not: what a device's library needs may be gone before.
  static Devices& Get() {
    static Devices& devices = *new Devices;
    return devices;
  }
};

}  // namespace

std::span<const Memory> AllMemories() { return kMemories; }

int DeviceTypeOf(Memory memory) { return RowOf(memory).device_type; }

std::string_view ToString(Memory memory) { return RowOf(memory).name; }

std::optional<Memory> MemoryOf(int device_type, std::string_view scope) {
  if (scope == "global" || device_type == kProcessor) scope = "";
  const auto row =
      std::ranges::find_if(kRows, [&](const Row& one) { return one.device_type == device_type && one.scope == scope; });
  return row == kRows.end() ? std::nullopt : std::optional(row->memory);
}

std::string DeviceName(int device_type) {
  if (device_type == kProcessor) return "cpu";
  const std::optional<Memory> memory = MemoryOf(device_type);
  return memory ? std::string(ToString(*memory)) : fmt::format("device {}", device_type);
}

Device& GetDevice(Memory memory) {
  COLLAGE_CHECK(memory != Memory::kHost) << "the host's memory needs no device";
  const int type = DeviceTypeOf(memory);
  Devices& devices = Devices::Get();
  const std::lock_guard lock(devices.mutex);
  std::unique_ptr<Device>& device = devices.by_type[type];
  if (!device) {
    void* symbol = FindModuleSymbol(DeviceModule(type), "collage_make_device");
    device.reset(reinterpret_cast<MakeDeviceFn*>(symbol)());
  }
  return *device;
}

void AddDevice(int device_type, std::unique_ptr<Device> device) {
  Devices& devices = Devices::Get();
  const std::lock_guard lock(devices.mutex);
  devices.by_type[device_type] = std::move(device);
}

DeviceBuffer::DeviceBuffer(Memory memory, size_t bytes) : device_(&GetDevice(memory)) {
  // Some even for no bytes: they need an address.
  constexpr size_t kLeast = 64;
  const size_t size = std::max(bytes, kLeast);
  Device* device = device_;
  address_ = std::shared_ptr<void>(device->Allocate(size, memory), [device](void* address) { device->Free(address); });
  const std::vector<std::byte> zeros(size);
  device->CopyIn(address_.get(), zeros.data(), size);
}

}  // namespace collage
