// driver.cc: fills the table from the library.
#include "backends/cuda_driver/driver.h"

#include <fmt/format.h>

#include <array>

#include "backends/cuda_driver/emulation.h"
#include "collage/support/error.h"
#include "runtime/threads/forked_library.h"
#include "support/dynamic_library.h"

namespace collage::cuda_driver {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";
constexpr double kGigabyte = 1e9;

Driver Open() {
  Driver driver;
#define COLLAGE_CUDA_FIND(name, symbol, parameters) \
  driver.name = reinterpret_cast<Status(*) parameters>(FindLibrarySymbol(kLibrary, symbol));
  COLLAGE_CUDA_DRIVER_FUNCTIONS(COLLAGE_CUDA_FIND)
#undef COLLAGE_CUDA_FIND
  return driver;
}

std::string StatusText(const Driver& driver, Status status) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver.GetErrorName(status, &name);
  driver.GetErrorString(status, &text);
  return fmt::format("{} ({})", text == nullptr ? "unknown error" : text,
                     name == nullptr ? std::to_string(status) : name);
}

/// Throws kUnavailable where there is no GPU that can be used.
void Initialise(const Driver& driver) {
  int count = 0;
  Status status = driver.Init(0);
  if (status == 0) status = driver.DeviceGetCount(&count);
  if (status == 0 && count > 0) return;
  throw Error(ErrorCategory::kUnavailable, status == 0 ? "the driver finds no GPU" : StatusText(driver, status),
              kLibrary);
}

}  // namespace

void Driver::Check(Status status, std::string_view doing) const {
  if (status == 0) return;
  throw Error(status == kOutOfMemory ? ErrorCategory::kResource : ErrorCategory::kInternal,
              fmt::format("cannot {}: {}", doing, StatusText(*this, status)), "cuda");
}

const Driver& GetDriver() {
  UseLibraryWithThreads("NVIDIA's driver");
  static const Driver driver = [] {
    Driver opened = Open();
    Initialise(opened);
    return opened;
  }();
  return driver;
}

std::string GpuArchitecture() {
  const Driver& driver = GetDriver();
  constexpr const char* kDoing = "ask for the GPU's architecture";
  DeviceNumber device = 0;
  int major = 0, minor = 0;
  driver.Check(driver.DeviceGet(&device, 0), kDoing);
  driver.Check(driver.DeviceGetAttribute(&major, Attribute::kComputeMajor, device), kDoing);
  driver.Check(driver.DeviceGetAttribute(&minor, Attribute::kComputeMinor, device), kDoing);
  return major == 0 ? kEmulatedArchitecture : fmt::format("sm_{}{}", major, minor);
}

std::string DescribeGpu() {
  const Driver& driver = GetDriver();
  constexpr const char* kDoing = "ask for the GPU's properties";
  DeviceNumber device = 0;
  driver.Check(driver.DeviceGet(&device, 0), kDoing);
  std::array<char, 256> name{};
  driver.Check(driver.DeviceGetName(name.data(), name.size(), device), kDoing);
  int version = 0;
  size_t bytes = 0;
  driver.Check(driver.DriverGetVersion(&version), kDoing);
  driver.Check(driver.DeviceTotalMem(&bytes, device), kDoing);
  return fmt::format("{}, {}, {:.1f} GB, driver of CUDA {}.{}", name.data(), GpuArchitecture(),
                     static_cast<double>(bytes) / kGigabyte, version / 1000, version % 1000 / 10);
}

}  // namespace collage::cuda_driver
