// management.cc: opens the library once, and asks it for numbers.
#include "backends/cuda_driver/management.h"

#include <algorithm>

#include "backends/cuda_driver/toolkit.h"
#include "collage/support/error.h"

namespace collage::cuda_driver {
namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";

/// nvmlReturn_t: 0 is success.
using Status = int;
using ManagedDevice = struct ManagedDeviceObject*;

// nvmlClockType_t and nvmlTemperatureSensors_t.
constexpr int kProcessorsClock = 1;
constexpr int kMemoryClock = 2;
constexpr int kGpuSensor = 0;

// nvmlClocksThrottleReasons.
constexpr uint64_t kPowerCap = 0x4;
constexpr uint64_t kHardwareSlowdown = 0x8;
constexpr uint64_t kSoftwareThermal = 0x20;
constexpr uint64_t kHardwareThermal = 0x40;
constexpr uint64_t kPowerBrake = 0x80;
constexpr uint64_t kThrottling = kPowerCap | kHardwareSlowdown | kSoftwareThermal | kHardwareThermal | kPowerBrake;

// Name here, name in the library, parameters.
#define COLLAGE_NVML_FUNCTIONS(F)                                                                      \
  F(Init, "nvmlInit_v2", ())                                                                           \
  F(GetHandle, "nvmlDeviceGetHandleByPciBusId_v2", (const char* bus_id, ManagedDevice* device))        \
  F(GetClock, "nvmlDeviceGetClockInfo", (ManagedDevice device, int type, unsigned* mhz))               \
  F(GetMaxClock, "nvmlDeviceGetMaxClockInfo", (ManagedDevice device, int type, unsigned* mhz))         \
  F(GetTemperature, "nvmlDeviceGetTemperature", (ManagedDevice device, int sensor, unsigned* celsius)) \
  F(GetReasons, "nvmlDeviceGetCurrentClocksThrottleReasons", (ManagedDevice device, unsigned long long* reasons))

struct Management {
#define COLLAGE_NVML_MEMBER(name, symbol, parameters) Status(*name) parameters = nullptr;
  COLLAGE_NVML_FUNCTIONS(COLLAGE_NVML_MEMBER)
#undef COLLAGE_NVML_MEMBER
};

/// Nothing where the library or one of its functions is missing, or fails to begin.
std::optional<Management> Open() {
  try {
    Management management;
#define COLLAGE_NVML_FIND(name, symbol, parameters) \
  management.name = reinterpret_cast<Status(*) parameters>(FindSymbol(kLibrary, symbol));
    COLLAGE_NVML_FUNCTIONS(COLLAGE_NVML_FIND)
#undef COLLAGE_NVML_FIND
    if (management.Init() != 0) return std::nullopt;
    return management;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

bool GpuClocks::IsThrottled() const { return (reasons & kThrottling) != 0; }

double GpuClocks::Slowdown() const {
  if (!IsThrottled() || processors_mhz == 0) return 1;
  return std::max(1.0, static_cast<double>(most_processors_mhz) / processors_mhz);
}

std::optional<GpuClocks> ReadClocks(const std::string& bus_id) {
  static const std::optional<Management> management = Open();
  ManagedDevice device = nullptr;
  if (!management || management->GetHandle(bus_id.c_str(), &device) != 0) return std::nullopt;
  GpuClocks clocks;
  unsigned long long reasons = 0;
  const bool is_told = management->GetReasons(device, &reasons) == 0 &&
                       management->GetClock(device, kProcessorsClock, &clocks.processors_mhz) == 0 &&
                       management->GetMaxClock(device, kProcessorsClock, &clocks.most_processors_mhz) == 0;
  if (!is_told) return std::nullopt;
  clocks.reasons = reasons;
  management->GetClock(device, kMemoryClock, &clocks.memory_mhz);
  management->GetTemperature(device, kGpuSensor, &clocks.celsius);
  return clocks;
}

}  // namespace collage::cuda_driver
