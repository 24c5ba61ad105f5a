// device.cc: a GPU's memory. All work goes to one stream, in the order in which it is asked for.
#include "backends/cuda_driver/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "backends/cuda_driver/driver.h"
#include "backends/cuda_driver/management.h"
#include "collage/runtime/device_timer.h"
#include "collage/runtime/recorded_work.h"
#include "collage/support/error.h"

namespace collage::cuda_driver {
namespace {

// Bytes go through memory of the host that the GPU reads by itself: while it reads one half, the other is filled.
constexpr size_t kStagingBytes = size_t{4} << 20;

Address AddressOf(const void* pointer) { return reinterpret_cast<Address>(pointer); }

/// A CUDA graph of what was captured.
class CapturedWork : public RecordedWork {
 public:
  CapturedWork(const Driver& driver, CudaDevice& device, GraphExec exec)
      : driver_(driver), device_(device), exec_(exec) {}
  CapturedWork(const CapturedWork&) = delete;
  CapturedWork& operator=(const CapturedWork&) = delete;
  ~CapturedWork() override {
    device_.Enter();
    driver_.GraphExecDestroy(exec_);
  }

  void Run() override {
    const Stream stream = device_.Enter();
    driver_.Check(driver_.GraphLaunch(exec_, stream), "launch a graph");
  }

 private:
  const Driver& driver_;
  CudaDevice& device_;
  GraphExec exec_;
};

class OnlyDevice : public CudaDevice, public RecordsWork, public TimesWork {
 public:
  OnlyDevice() : driver_(GetDriver()) {
    DeviceNumber device = 0;
    driver_.Check(driver_.DeviceGet(&device, 0), "find the GPU");
    driver_.Check(driver_.DevicePrimaryCtxRetain(&context_, device), "use the GPU");
    Enter();
    driver_.Check(driver_.StreamCreate(&stream_, kStreamAlone), "create a stream");
    for (Event* event : {&begin_, &end_}) {
      driver_.Check(driver_.EventCreate(event, kEventWithTime), "create an event");
    }
    int bytes = 0;
    driver_.Check(driver_.DeviceGetAttribute(&bytes, Attribute::kL2CacheBytes, device), "ask for the GPU's cache");
    cache_bytes_ = static_cast<size_t>(std::max(bytes, 0));
    std::array<char, 32> bus_id{};
    driver_.Check(driver_.DeviceGetPCIBusId(bus_id.data(), bus_id.size(), device), "ask for the GPU's bus");
    bus_id_ = bus_id.data();
    for (Staging& half : staging_) {
      driver_.Check(driver_.MemAllocHost(&half.bytes, kStagingBytes), "allocate pinned memory");
      driver_.Check(driver_.EventCreate(&half.done, kEventWithoutTime), "create an event");
    }
  }

  Stream Enter() override {
    driver_.Check(driver_.CtxSetCurrent(context_), "use the GPU");
    return stream_;
  }

  void* Allocate(size_t bytes, Memory) override {
    Enter();
    Address address = 0;
    const Status status = driver_.MemAlloc(&address, bytes);
    if (status == kOutOfMemory) {
      size_t free = 0, total = 0;
      driver_.Check(driver_.MemGetInfo(&free, &total), "ask for free memory");
      throw Error(ErrorCategory::kResource,
                  fmt::format("the GPU has no room for {} bytes: {} of {} are free", bytes, free, total), "cuda");
    }
    driver_.Check(status, "allocate memory of the GPU");
    return reinterpret_cast<void*>(address);
  }

  void Free(void* address) noexcept override {
    driver_.CtxSetCurrent(context_);
    driver_.MemFree(AddressOf(address));
  }

  void CopyIn(void* target, const void* source, size_t bytes) override {
    Enter();
    const auto* from = static_cast<const std::byte*>(source);
    for (size_t done = 0; done < bytes; done += kStagingBytes) {
      const size_t part = std::min(kStagingBytes, bytes - done);
      Staging& half = NextHalf();
      std::memcpy(half.bytes, from + done, part);
      driver_.Check(driver_.MemcpyHtoDAsync(AddressOf(target) + done, half.bytes, part, stream_), "copy to the GPU");
      driver_.Check(driver_.EventRecord(half.done, stream_), "record an event");
    }
  }

  void CopyOut(void* target, const void* source, size_t bytes) override {
    Enter();
    auto* to = static_cast<std::byte*>(target);
    size_t taken = 0;  // bytes that are in `target`
    std::array<size_t, 2> parts{};
    const auto take = [&](size_t number) {
      driver_.Check(driver_.EventSynchronize(staging_[number].done), "wait for the GPU");
      std::memcpy(to + taken, staging_[number].bytes, parts[number]);
      taken += std::exchange(parts[number], 0);
    };
    for (size_t asked = 0; asked < bytes; asked += kStagingBytes) {
      Staging& half = NextHalf();
      const auto number = static_cast<size_t>(&half - staging_.data());
      if (parts[number] > 0) take(number);
      parts[number] = std::min(kStagingBytes, bytes - asked);
      driver_.Check(driver_.MemcpyDtoHAsync(half.bytes, AddressOf(source) + asked, parts[number], stream_),
                    "copy from the GPU");
      driver_.Check(driver_.EventRecord(half.done, stream_), "record an event");
    }
    for (size_t count = 0; count < staging_.size(); ++count) {
      const size_t number = (next_ + count) % staging_.size();
      if (parts[number] > 0) take(number);
    }
  }

  void CopyWithin(void* target, const void* source, size_t bytes) override {
    Enter();
    driver_.Check(driver_.MemcpyDtoDAsync(AddressOf(target), AddressOf(source), bytes, stream_), "copy on the GPU");
  }

  std::unique_ptr<RecordedWork> Record(const std::function<void()>& work) override {
    Enter();
    driver_.Check(driver_.StreamBeginCapture(stream_, kCaptureOfThread), "begin a graph");
    bool is_whole = true;
    try {
      work();
    } catch (const Error&) {
      is_whole = false;  // the caller, who does it as it is, sees the same, unless it was the capture's fault
    }
    Graph graph = nullptr;
    const bool is_captured = driver_.StreamEndCapture(stream_, &graph) == 0 && graph != nullptr;
    GraphExec exec = nullptr;
    if (is_captured && is_whole && driver_.GraphInstantiate(&exec, graph, 0) != 0) exec = nullptr;
    if (is_captured) driver_.GraphDestroy(graph);
    return exec == nullptr ? nullptr : std::make_unique<CapturedWork>(driver_, *this, exec);
  }

  double SecondsOfWork(const std::function<void()>& before, const std::function<void()>& work) override {
    constexpr double kMillisecond = 1e-3;
    Enter();
    before();
    driver_.Check(driver_.EventRecord(begin_, stream_), "record an event");
    work();
    driver_.Check(driver_.EventRecord(end_, stream_), "record an event");
    driver_.Check(driver_.EventSynchronize(end_), "wait for the GPU");
    float milliseconds = 0;
    driver_.Check(driver_.EventElapsedTime(&milliseconds, begin_, end_), "read the GPU's clock");
    return static_cast<double>(milliseconds) * kMillisecond;
  }
  size_t CacheBytes() override { return cache_bytes_; }
  double Slowdown() override {
    const std::optional<GpuClocks> clocks = ReadClocks(bus_id_);
    return clocks ? clocks->Slowdown() : 1;
  }

  void Synchronize() override {
    Enter();
    driver_.Check(driver_.StreamSynchronize(stream_), "wait for the GPU");
  }

 private:
  struct Staging {
    void* bytes = nullptr;
    Event done = nullptr;  ///< the GPU has read, or written, what was asked for last
  };

  /// The half that was used longest ago, with nothing of it on its way any more.
  Staging& NextHalf() {
    Staging& half = staging_[next_];
    next_ = (next_ + 1) % staging_.size();
    driver_.Check(driver_.EventSynchronize(half.done), "wait for the GPU");
    return half;
  }

  const Driver& driver_;
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  Event begin_ = nullptr, end_ = nullptr;  ///< around work that is timed
  size_t cache_bytes_ = 0;
  std::string bus_id_;
  std::array<Staging, 2> staging_;
  size_t next_ = 0;
};

}  // namespace
}  // namespace collage::cuda_driver

extern "C" collage::Device* collage_make_device() { return new collage::cuda_driver::OnlyDevice; }
extern "C" void collage_describe_device(std::string& text) { text = collage::cuda_driver::DescribeGpu(); }
extern "C" void collage_gpu_architecture(std::string& text) { text = collage::cuda_driver::GpuArchitecture(); }
