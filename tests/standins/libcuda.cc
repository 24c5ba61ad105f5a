// libcuda.cc: a driver for tests on machines without a GPU. It is as unkind as the interface's documentation allows:
//
//   - Work on a stream is done when somebody waits for it, never before. Who does not wait finds what was there before.
//   - The host cannot touch memory of the device: it crashes. Memory holds 0xFF until it is written.
//   - A copy from pageable memory has read its source when it returns, a copy from pinned memory has not.
//   - A copy to pageable memory is done when it returns, a copy to pinned memory is not.
//   - Copies that leave an allocation fail, as do calls before cuInit and from threads without a context.
//   - Memory is scarce: 1 GiB.
//   - Threads of a block share 48 KiB, and up to 163 KiB if the function's attribute says so.
//   - Parameters of a kernel are read when it is launched, not when it runs.
//   - Captured work is not done, but whenever its graph is launched, with the parameters of then. To allocate or to
//     wait meanwhile fails, and no graph comes of it.
//   - An event has its time when all before it is done. To ask for the time between events that are not reached, or
//     that were made without time, fails.
//   - It runs code for the architecture "emulated" only. After a kernel that did wrong every call fails.
//
// Each of these is an assumption about the real driver, and a line of the list in docs/gpus.md, whose test also runs on
// a real one. $STANDIN_CUDA_GPUS is the number of GPUs (default 1), $STANDIN_CUDA_WORK_US what
// each work takes by the device's clock, in microseconds (default: the time that it takes to do it here).
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

#include "emulation.h"
#include "standin_cuda.h"
#include "status.h"
#include "stream.h"

namespace {

using Address = uint64_t;
using standin::Drain;
using standin::Event;
using standin::Graph;
using standin::Stream;
using namespace standin::status;

constexpr size_t kDeviceBytes = size_t{1} << 30;
constexpr int kPoison = 0xFF;

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
  std::map<standin::EmulatedModule*, std::unique_ptr<standin::EmulatedModule>> modules;
  size_t used = 0;
  bool has_failed = false;  ///< a kernel did wrong

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
  if (state.has_failed) return kLaunchFailed;
  const int status = function(state);
  return state.has_failed ? kLaunchFailed : status;
}

/// As InContext, for what allocates or waits: no stream may be captured meanwhile.
template <typename Function>
int OutsideOfCaptures(Function function) {
  return InContext([&](State& state) {
    bool is_outside = true;
    for (Stream* stream : state.streams) {
      if (stream->captured == nullptr) continue;
      stream->is_spoilt = true;
      is_outside = false;
    }
    return is_outside ? function(state) : kCannotBeCaptured;
  });
}

/// As InContext, for work on a stream.
template <typename Function>
int OnStream(void* handle, Function function) {
  return InContext([&](State& state) {
    auto* stream = static_cast<Stream*>(handle);
    return state.streams.contains(stream) ? function(state, *stream) : kInvalidHandle;
  });
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

int cuDeviceGetPCIBusId(char* text, int size, int) {
  std::snprintf(text, static_cast<size_t>(size), "0000:01:00.0");
  return kSuccess;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  constexpr int kL2CacheBytes = 38, kComputeMajor = 75, kComputeMinor = 76;
  if (attribute != kL2CacheBytes && attribute != kComputeMajor && attribute != kComputeMinor) return kInvalidValue;
  *value = attribute == kL2CacheBytes ? 1 << 20 : 0;
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
  return OutsideOfCaptures([&](State& state) {
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
  return OutsideOfCaptures([&](State& state) {
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
  return OutsideOfCaptures([&](State& state) {
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
      stream.Add([=] { std::memcpy(target, from, bytes); });
      return kSuccess;
    }
    const auto* source = static_cast<const std::byte*>(from);
    stream.Add([target, copied = std::vector<std::byte>(source, source + bytes)] {
      std::memcpy(target, copied.data(), copied.size());
    });
    return kSuccess;
  });
}

int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, void* handle) {
  return OnStream(handle, [&](State& state, Stream& stream) {
    const std::byte* source = Within(state, from, bytes);
    if (source == nullptr) return kInvalidValue;
    const bool waits = !IsPinned(state, to, bytes);
    if (waits && stream.captured != nullptr) {
      stream.is_spoilt = true;
      return kCannotBeCaptured;
    }
    stream.Add([=] { std::memcpy(to, source, bytes); });
    if (waits) Drain(stream, stream.end());
    return kSuccess;
  });
}

int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void* handle) {
  return OnStream(handle, [&](const State& state, Stream& stream) {
    std::byte* target = Within(state, to, bytes);
    const std::byte* source = Within(state, from, bytes);
    if (target == nullptr || source == nullptr) return kInvalidValue;
    stream.Add([=] { std::memmove(target, source, bytes); });
    return kSuccess;
  });
}

bool standin_cuda_enqueue(void* handle, std::function<void()>* work) {
  return OnStream(handle, [&](const State&, Stream& stream) {
           stream.Add(std::move(*work));
           return kSuccess;
         }) == kSuccess;
}

bool standin_cuda_call(void* handle, void (*work)(void*), void* data) {
  std::function<void()> one = [=] { work(data); };
  return standin_cuda_enqueue(handle, &one);
}

bool standin_cuda_is_captured(void* handle) {
  const auto answer = [](const State&, const Stream& stream) {
    return stream.captured == nullptr ? kSuccess : kCannotBeCaptured;
  };
  return OnStream(handle, answer) == kCannotBeCaptured;
}

bool standin_cuda_has_context() { return current_context != nullptr; }

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
    if (stream.captured != nullptr) {
      stream.is_spoilt = true;
      return kCannotBeCaptured;
    }
    Drain(stream, stream.end());
    return kSuccess;
  });
}

int cuStreamBeginCapture_v2(void* handle, int mode) {
  return OnStream(handle, [&](const State&, Stream& stream) {
    if (mode < 0 || mode > 2 || stream.captured != nullptr) return kInvalidValue;
    stream.captured = std::make_unique<Graph>();
    stream.is_spoilt = false;
    return kSuccess;
  });
}

int cuStreamEndCapture(void* handle, void** graph) {
  return OnStream(handle, [&](const State&, Stream& stream) {
    if (stream.captured == nullptr) return kInvalidValue;
    std::unique_ptr<Graph> captured = std::move(stream.captured);
    *graph = stream.is_spoilt ? nullptr : captured.release();
    return stream.is_spoilt ? kCaptureInvalidated : kSuccess;
  });
}

int cuGraphInstantiateWithFlags(void** exec, void* graph, uint64_t) {
  return InContext([&](const State&) {
    *exec = new Graph(*static_cast<Graph*>(graph));
    return kSuccess;
  });
}

int cuGraphLaunch(void* exec, void* handle) {
  return OnStream(handle, [&](const State&, Stream& stream) {
    for (const std::function<void()>& work : static_cast<Graph*>(exec)->work) stream.Add(work);
    return kSuccess;
  });
}

int cuGraphDestroy(void* graph) {
  return InContext([&](const State&) {
    delete static_cast<Graph*>(graph);
    return kSuccess;
  });
}

int cuGraphExecDestroy(void* exec) { return cuGraphDestroy(exec); }

int cuEventCreate(void** event, unsigned flags) {
  return InContext([&](const State&) {
    constexpr unsigned kWithoutTime = 2;
    *event = new Event{.has_time = (flags & kWithoutTime) == 0};
    return kSuccess;
  });
}

int cuEventRecord(void* event, void* handle) {
  return OnStream(handle, [&](const State&, Stream& stream) {
    Event& recorded = *static_cast<Event*>(event);
    recorded.seconds.reset();
    if (recorded.has_time) {
      stream.Add([&] { recorded.seconds = standin::TakeStamp(stream); });
    }
    recorded.stream = &stream;
    recorded.done_after = stream.end();
    return kSuccess;
  });
}

int cuEventSynchronize(void* event) {
  return OutsideOfCaptures([&](const State&) {
    const Event& recorded = *static_cast<Event*>(event);
    if (recorded.stream != nullptr) Drain(*recorded.stream, recorded.done_after);
    return kSuccess;
  });
}

int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  return OutsideOfCaptures([&](const State&) {
    const Event &from = *static_cast<Event*>(begin), &to = *static_cast<Event*>(end);
    const auto is_usable = [](const Event& event) { return event.has_time && event.stream != nullptr; };
    if (!is_usable(from) || !is_usable(to)) return kInvalidHandle;
    if (!from.seconds || !to.seconds) return kNotReady;
    *milliseconds = static_cast<float>((*to.seconds - *from.seconds) * 1e3);
    return kSuccess;
  });
}

int cuMemsetD32Async(Address to, unsigned word, size_t words, void* handle) {
  return OnStream(handle, [&](const State& state, Stream& stream) {
    std::byte* target = Within(state, to, words * sizeof word);
    if (target == nullptr || to % sizeof word != 0) return kInvalidValue;
    stream.Add([=] {
      for (size_t i = 0; i < words; ++i) std::memcpy(target + i * sizeof word, &word, sizeof word);
    });
    return kSuccess;
  });
}

int cuModuleLoadData(void** module, const void* image) {
  return OutsideOfCaptures([&](State& state) {
    std::unique_ptr<standin::EmulatedModule> opened = standin::EmulatedModule::Open(image);
    if (opened == nullptr) return kNoBinaryForGpu;
    *module = opened.get();
    state.modules.emplace(opened.get(), std::move(opened));
    return kSuccess;
  });
}

int cuModuleUnload(void* module) {
  return InContext([&](State& state) {
    for (Stream* stream : state.streams) Drain(*stream, stream->end());
    return state.modules.erase(static_cast<standin::EmulatedModule*>(module)) == 1 ? kSuccess : kInvalidHandle;
  });
}

int cuModuleGetFunction(const void** function, void* module, const char* name) {
  return InContext([&](const State& state) {
    const auto known = state.modules.find(static_cast<standin::EmulatedModule*>(module));
    if (known == state.modules.end()) return kInvalidHandle;
    *function = known->second->Find(name);
    return *function == nullptr ? kNotFound : kSuccess;
  });
}

int cuLaunchKernel(const void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, void* handle, void** parameters, void**) {
  return OnStream(handle, [&](State& state, Stream& stream) {
    constexpr unsigned kMostThreads = 1024;
    const auto& kernel = *static_cast<const standin::EmulatedKernel*>(function);
    const bool is_flat = (grid_y == 1 && grid_z == 1 && block_x % 32 == 0) || kernel.whole;
    const bool is_empty = grid_x == 0 || grid_y == 0 || grid_z == 0 || block_x == 0;
    if (!is_flat || is_empty || block_x > kMostThreads || block_y != 1 || block_z != 1) return kInvalidValue;
    if (shared_bytes > kernel.most_shared_bytes) return kInvalidValue;
    std::vector<std::vector<std::byte>> copies;
    for (size_t i = 0; i < kernel.parameter_sizes.size(); ++i) {
      const auto* bytes = static_cast<const std::byte*>(parameters[i]);
      copies.emplace_back(bytes, bytes + kernel.parameter_sizes[i]);
    }
    const standin::Grid grid{grid_x, block_x, shared_bytes, grid_y, grid_z};
    stream.Add([&state, &kernel, grid, copies = std::move(copies)] {
      if (state.has_failed) return;
      const auto find = [&](Address address, size_t bytes) { return Within(state, address, bytes); };
      const std::string problem = standin::RunGrid(kernel, grid, copies, find);
      if (problem.empty()) return;
      std::fprintf(stderr, "stand-in for a GPU: %s\n", problem.c_str());
      state.has_failed = true;
    });
    return kSuccess;
  });
}

}  // extern "C"
