// libcuda.cc: a driver for tests on machines without a GPU. It is as unkind as the interface's documentation allows:
//
//   - Work on a stream is done when somebody waits for it, never before. Who does not wait finds what was there before.
//   - The host cannot touch memory of the device: it crashes. Memory holds 0xFF until it is written.
//   - A copy from pageable memory has read its source when it returns, a copy from pinned memory has not.
//   - A copy to pageable memory is done when it returns, a copy to pinned memory is not.
//   - Copies that leave an allocation fail, as do calls before cuInit and from threads without a context.
//   - Memory is scarce: 256 MiB.
//
// Each of these is an assumption about the real driver; tests/unit/backends/cuda_driver/driver_test.cc has a test of
// each, which also runs on a real one. $STANDIN_CUDA_GPUS is the number of GPUs (default 1).
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "standin_cuda.h"

namespace {

using Address = uint64_t;

// CUresult.
constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kNotInitialized = 3;
constexpr int kNoDevice = 100;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidContext = 201;
constexpr int kInvalidHandle = 400;

constexpr size_t kDeviceBytes = size_t{256} << 20;
constexpr int kPoison = 0xFF;

struct Stream {
  std::vector<std::function<void()>> work;
  size_t done = 0;
};
struct Event {
  Stream* stream = nullptr;
  size_t done_after = 0;  ///< works of the stream
};
struct Allocation {
  size_t bytes;
  size_t mapped;
};

struct State {
  std::mutex mutex;
  bool is_initialised = false;
  std::map<Address, Allocation> device;
  std::map<uintptr_t, size_t> pinned;
  std::set<Stream*> streams;
  size_t used = 0;

  static State& Get() {
    static State& state = *new State;  // the process may end while streams are used
    return state;
  }
};

// A context is the same object for all: there is one GPU that is used.
thread_local void* current_context = nullptr;

int NumGpus() {
  const char* text = std::getenv("STANDIN_CUDA_GPUS");
  return text == nullptr ? 1 : std::atoi(text);
}

void Protect(State& state, int access) {
  for (const auto& [address, allocation] : state.device) {
    mprotect(reinterpret_cast<void*>(address), allocation.mapped, access);
  }
}

/// Does the work of `stream` up to number `until`.
void Drain(State& state, Stream& stream, size_t until) {
  if (stream.done >= until) return;
  Protect(state, PROT_READ | PROT_WRITE);
  while (stream.done < until) stream.work[stream.done++]();
  Protect(state, PROT_NONE);
}

bool IsOnDevice(const State& state, Address address, size_t bytes) {
  const auto after = state.device.upper_bound(address);
  if (after == state.device.begin()) return false;
  const auto& [begin, allocation] = *std::prev(after);
  return address - begin <= allocation.bytes && bytes <= allocation.bytes - (address - begin);
}

bool IsPinned(const State& state, const void* pointer, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const auto after = state.pinned.upper_bound(address);
  if (after == state.pinned.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return address - begin <= size && bytes <= size - (address - begin);
}

/// Calls `function` with the state where the driver is initialised and the thread has a context.
template <typename Function>
int InContext(Function function) {
  State& state = State::Get();
  const std::lock_guard lock(state.mutex);
  if (!state.is_initialised) return kNotInitialized;
  if (current_context == nullptr) return kInvalidContext;
  return function(state);
}

/// As InContext, for work on a stream.
template <typename Function>
int OnStream(void* handle, Function function) {
  return InContext([&](State& state) {
    auto* stream = static_cast<Stream*>(handle);
    return state.streams.contains(stream) ? function(state, *stream) : kInvalidHandle;
  });
}

const char* NameOf(int status) {
  switch (status) {
    case kSuccess: return "CUDA_SUCCESS";
    case kInvalidValue: return "CUDA_ERROR_INVALID_VALUE";
    case kOutOfMemory: return "CUDA_ERROR_OUT_OF_MEMORY";
    case kNotInitialized: return "CUDA_ERROR_NOT_INITIALIZED";
    case kNoDevice: return "CUDA_ERROR_NO_DEVICE";
    case kInvalidDevice: return "CUDA_ERROR_INVALID_DEVICE";
    case kInvalidContext: return "CUDA_ERROR_INVALID_CONTEXT";
    case kInvalidHandle: return "CUDA_ERROR_INVALID_HANDLE";
    default: return nullptr;
  }
}

}  // namespace

extern "C" {

int cuGetErrorName(int status, const char** text) {
  *text = NameOf(status);
  return *text == nullptr ? kInvalidValue : kSuccess;
}

int cuGetErrorString(int status, const char** text) { return cuGetErrorName(status, text); }

int cuInit(unsigned) {
  if (NumGpus() < 1) return kNoDevice;
  State::Get().is_initialised = true;
  return kSuccess;
}

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}

int cuDeviceGetCount(int* count) {
  *count = NumGpus();
  return State::Get().is_initialised ? kSuccess : kNotInitialized;
}

int cuDeviceGet(int* device, int number) {
  if (number < 0 || number >= NumGpus()) return kInvalidDevice;
  *device = number;
  return State::Get().is_initialised ? kSuccess : kNotInitialized;
}

int cuDeviceGetName(char* name, int size, int) {
  std::snprintf(name, static_cast<size_t>(size), "stand-in for a GPU");
  return kSuccess;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  constexpr int kComputeMajor = 75, kComputeMinor = 76;
  if (attribute != kComputeMajor && attribute != kComputeMinor) return kInvalidValue;
  *value = attribute == kComputeMajor ? 9 : 0;
  return kSuccess;
}

int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = kDeviceBytes;
  return kSuccess;
}

int cuDevicePrimaryCtxRetain(void** context, int) {
  static int object = 0;
  if (!State::Get().is_initialised) return kNotInitialized;
  *context = &object;
  return kSuccess;
}

int cuCtxSetCurrent(void* context) {
  if (!State::Get().is_initialised) return kNotInitialized;
  current_context = context;
  return kSuccess;
}

int cuMemGetInfo_v2(size_t* free, size_t* total) {
  return InContext([&](const State& state) {
    *free = kDeviceBytes - state.used;
    *total = kDeviceBytes;
    return kSuccess;
  });
}

int cuMemAlloc_v2(Address* address, size_t bytes) {
  return InContext([&](State& state) {
    if (bytes == 0) return kInvalidValue;
    if (bytes > kDeviceBytes - state.used) return kOutOfMemory;
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t mapped = (bytes + page - 1) / page * page;
    void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return kOutOfMemory;
    std::memset(memory, kPoison, mapped);
    mprotect(memory, mapped, PROT_NONE);
    *address = reinterpret_cast<Address>(memory);
    state.device[*address] = {bytes, mapped};
    state.used += bytes;
    return kSuccess;
  });
}

int cuMemFree_v2(Address address) {
  return InContext([&](State& state) {
    const auto allocation = state.device.find(address);
    if (allocation == state.device.end()) return kInvalidValue;
    for (Stream* stream : state.streams) Drain(state, *stream, stream->work.size());
    munmap(reinterpret_cast<void*>(address), allocation->second.mapped);
    state.used -= allocation->second.bytes;
    state.device.erase(allocation);
    return kSuccess;
  });
}

int cuMemAllocHost_v2(void** address, size_t bytes) {
  return InContext([&](State& state) {
    *address = std::malloc(bytes);
    if (*address == nullptr) return kOutOfMemory;
    state.pinned[reinterpret_cast<uintptr_t>(*address)] = bytes;
    return kSuccess;
  });
}

int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, void* handle) {
  return OnStream(handle, [&](const State& state, Stream& stream) {
    if (!IsOnDevice(state, to, bytes)) return kInvalidValue;
    auto* target = reinterpret_cast<void*>(to);
    if (IsPinned(state, from, bytes)) {
      stream.work.emplace_back([=] { std::memcpy(target, from, bytes); });
      return kSuccess;
    }
    const auto* source = static_cast<const std::byte*>(from);
    stream.work.emplace_back([target, copied = std::vector<std::byte>(source, source + bytes)] {
      std::memcpy(target, copied.data(), copied.size());
    });
    return kSuccess;
  });
}

int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, void* handle) {
  return OnStream(handle, [&](State& state, Stream& stream) {
    if (!IsOnDevice(state, from, bytes)) return kInvalidValue;
    const auto* source = reinterpret_cast<const void*>(from);
    stream.work.emplace_back([=] { std::memcpy(to, source, bytes); });
    if (!IsPinned(state, to, bytes)) Drain(state, stream, stream.work.size());
    return kSuccess;
  });
}

int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void* handle) {
  return OnStream(handle, [&](const State& state, Stream& stream) {
    if (!IsOnDevice(state, to, bytes) || !IsOnDevice(state, from, bytes)) return kInvalidValue;
    auto* target = reinterpret_cast<void*>(to);
    const auto* source = reinterpret_cast<const void*>(from);
    stream.work.emplace_back([=] { std::memmove(target, source, bytes); });
    return kSuccess;
  });
}

bool standin_cuda_enqueue(void* handle, std::function<void()>* work) {
  return OnStream(handle, [&](const State&, Stream& stream) {
           stream.work.push_back(std::move(*work));
           return kSuccess;
         }) == kSuccess;
}

bool standin_cuda_owns(const void* address, size_t bytes) {
  State& state = State::Get();
  const std::lock_guard lock(state.mutex);
  return IsOnDevice(state, reinterpret_cast<Address>(address), bytes);
}

int cuStreamCreate(void** stream, unsigned) {
  return InContext([&](State& state) {
    *stream = *state.streams.insert(new Stream).first;
    return kSuccess;
  });
}

int cuStreamSynchronize(void* handle) {
  return OnStream(handle, [](State& state, Stream& stream) {
    Drain(state, stream, stream.work.size());
    return kSuccess;
  });
}

int cuEventCreate(void** event, unsigned) {
  return InContext([&](const State&) {
    *event = new Event;
    return kSuccess;
  });
}

int cuEventRecord(void* event, void* handle) {
  return OnStream(handle, [&](const State&, Stream& stream) {
    *static_cast<Event*>(event) = {&stream, stream.work.size()};
    return kSuccess;
  });
}

int cuEventSynchronize(void* event) {
  return InContext([&](State& state) {
    const Event& recorded = *static_cast<Event*>(event);
    if (recorded.stream != nullptr) Drain(state, *recorded.stream, recorded.done_after);
    return kSuccess;
  });
}

}  // extern "C"
