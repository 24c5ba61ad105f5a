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
#include <deque>
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
  std::deque<std::function<void()>> work;  ///< still to be done
  size_t done = 0;                         ///< how much was done before

  size_t end() const { return done + work.size(); }
};
struct Event {
  Stream* stream = nullptr;
  size_t done_after = 0;  ///< works of the stream, from its beginning
};
/// Memory of the device has two places: where programs know it, nobody can touch it; work is done at the other.
struct Allocation {
  size_t bytes;
  size_t mapped;
  std::byte* within;
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

/// Does the work of `stream` up to number `until`.
void Drain(Stream& stream, size_t until) {
  for (; stream.done < until; ++stream.done) {
    stream.work.front()();
    stream.work.pop_front();
  }
}

/// The place at which work finds `bytes` at `address`; null unless they are in one allocation.
std::byte* Within(const State& state, Address address, size_t bytes) {
  const auto after = state.device.upper_bound(address);
  if (after == state.device.begin()) return nullptr;
  const auto& [begin, allocation] = *std::prev(after);
  const size_t offset = address - begin;
  return offset <= allocation.bytes && bytes <= allocation.bytes - offset ? allocation.within + offset : nullptr;
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
    const int file = memfd_create("memory of a device", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(mapped)) != 0) return kOutOfMemory;
    void* known = mmap(nullptr, mapped, PROT_NONE, MAP_SHARED, file, 0);
    void* within = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (known == MAP_FAILED || within == MAP_FAILED) return kOutOfMemory;
    std::memset(within, kPoison, mapped);
    *address = reinterpret_cast<Address>(known);
    state.device[*address] = {bytes, mapped, static_cast<std::byte*>(within)};
    state.used += bytes;
    return kSuccess;
  });
}

int cuMemFree_v2(Address address) {
  return InContext([&](State& state) {
    const auto allocation = state.device.find(address);
    if (allocation == state.device.end()) return kInvalidValue;
    for (Stream* stream : state.streams) Drain(*stream, stream->end());
    munmap(reinterpret_cast<void*>(address), allocation->second.mapped);
    munmap(allocation->second.within, allocation->second.mapped);
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
    std::byte* target = Within(state, to, bytes);
    if (target == nullptr) return kInvalidValue;
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
    const std::byte* source = Within(state, from, bytes);
    if (source == nullptr) return kInvalidValue;
    stream.work.emplace_back([=] { std::memcpy(to, source, bytes); });
    if (!IsPinned(state, to, bytes)) Drain(stream, stream.end());
    return kSuccess;
  });
}

int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void* handle) {
  return OnStream(handle, [&](const State& state, Stream& stream) {
    std::byte* target = Within(state, to, bytes);
    const std::byte* source = Within(state, from, bytes);
    if (target == nullptr || source == nullptr) return kInvalidValue;
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

void* standin_cuda_within(const void* address, size_t bytes) {
  State& state = State::Get();
  const std::lock_guard lock(state.mutex);
  return Within(state, reinterpret_cast<Address>(address), bytes);
}

int cuStreamCreate(void** stream, unsigned) {
  return InContext([&](State& state) {
    *stream = *state.streams.insert(new Stream).first;
    return kSuccess;
  });
}

int cuStreamSynchronize(void* handle) {
  return OnStream(handle, [](const State&, Stream& stream) {
    Drain(stream, stream.end());
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
    *static_cast<Event*>(event) = {&stream, stream.end()};
    return kSuccess;
  });
}

int cuEventSynchronize(void* event) {
  return InContext([&](const State&) {
    const Event& recorded = *static_cast<Event*>(event);
    if (recorded.stream != nullptr) Drain(*recorded.stream, recorded.done_after);
    return kSuccess;
  });
}

}  // extern "C"
