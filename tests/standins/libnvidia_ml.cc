// libnvidia_ml.cc: NVIDIA's management library for tests on machines without a GPU: the clocks of one, at the bus that
// the stand-in for the driver names.
//
// STANDIN_NVML_MHZ is the clock of its multiprocessors (default: 1980, the highest), STANDIN_NVML_REASONS why it is not
// higher, as the library's number. Read at each call, so that tests can provoke throttling.
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kSuccess = 0, kUninitialized = 1, kInvalidArgument = 2, kNotFound = 6;
constexpr unsigned kMostMhz = 1980, kMemoryMhz = 2619, kCelsius = 45;
constexpr int kProcessors = 1, kMemory = 2;

bool is_initialised = false;
int device = 0;

unsigned long NumberOf(const char* variable, unsigned long otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoul(text, nullptr, 0);
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  is_initialised = true;
  return kSuccess;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** found) {
  if (!is_initialised) return kUninitialized;
  if (std::strcmp(bus_id, "0000:01:00.0") != 0) return kNotFound;
  *found = &device;
  return kSuccess;
}

int nvmlDeviceGetClockInfo(void* of, int type, unsigned* mhz) {
  if (of != &device || (type != kProcessors && type != kMemory)) return kInvalidArgument;
  *mhz = type == kMemory ? kMemoryMhz : static_cast<unsigned>(NumberOf("STANDIN_NVML_MHZ", kMostMhz));
  return kSuccess;
}

int nvmlDeviceGetMaxClockInfo(void* of, int type, unsigned* mhz) {
  if (of != &device || (type != kProcessors && type != kMemory)) return kInvalidArgument;
  *mhz = type == kMemory ? kMemoryMhz : kMostMhz;
  return kSuccess;
}

int nvmlDeviceGetTemperature(void* of, int sensor, unsigned* celsius) {
  if (of != &device || sensor != 0) return kInvalidArgument;
  *celsius = kCelsius;
  return kSuccess;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void* of, unsigned long long* reasons) {
  if (of != &device) return kInvalidArgument;
  *reasons = NumberOf("STANDIN_NVML_REASONS", 0);
  return kSuccess;
}

}  // extern "C"
