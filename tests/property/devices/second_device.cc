// second_device.cc: allocations that are closed but for copies and kernels of the device.
#include "property/devices/second_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "collage/support/error.h"
#include "unit/vm/text_kernel.h"

namespace collage {
namespace {

constexpr int kExtDevType = 12;
constexpr const char* kDeviceLoader = "second_device_text";
constexpr const char* kHostLoader = "host_text";

class SecondDevice : public Device {
 public:
  static SecondDevice& Get() { return static_cast<SecondDevice&>(GetDevice(Memory::kExtDev)); }

  void* Allocate(size_t bytes, Memory) override {
    void* address = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) throw Error(ErrorCategory::kResource, "the second device is full");
    const std::lock_guard lock(mutex_);
    sizes_[address] = bytes;
    return address;
  }
  void Free(void* address) noexcept override {
    const std::lock_guard lock(mutex_);
    munmap(address, sizes_.at(address));
    sizes_.erase(address);
  }
  void CopyIn(void* target, const void* source, size_t bytes) override { Copy(target, source, bytes, {target}); }
  void CopyOut(void* target, const void* source, size_t bytes) override { Copy(target, source, bytes, {source}); }
  void CopyWithin(void* target, const void* source, size_t bytes) override {
    Copy(target, source, bytes, {target, source});
  }
  void Synchronize() override {}

  /// While this lives, addresses of the device can be read and written.
  class Open {
   public:
    explicit Open(SecondDevice& device) : device_(device), lock_(device.mutex_) { Protect(PROT_READ | PROT_WRITE); }
    ~Open() { Protect(PROT_NONE); }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

    void CheckOwns(const void* address) const {
      const auto after = device_.sizes_.upper_bound(const_cast<void*>(address));
      const bool is_owned = after != device_.sizes_.begin() &&
                            address < static_cast<const std::byte*>(std::prev(after)->first) + std::prev(after)->second;
      if (!is_owned) throw Error(ErrorCategory::kInternal, "an address that is not the second device's");
    }

   private:
    void Protect(int access) {
      for (const auto& [address, size] : device_.sizes_) mprotect(address, size, access);
    }
    SecondDevice& device_;
    std::lock_guard<std::mutex> lock_;
  };

  SecondDeviceCounts counts;

 private:
  void Copy(void* target, const void* source, size_t bytes, std::initializer_list<const void*> own) {
    const Open open(*this);
    for (const void* address : own) open.CheckOwns(address);
    std::memcpy(target, source, bytes);
    ++counts.num_copies;
    counts.num_bytes += static_cast<int64_t>(bytes);
  }

  std::mutex mutex_;
  std::map<void*, size_t> sizes_;
};

/// Runs while the device is open, on addresses of the device alone.
class DeviceKernel : public TextKernel {
 public:
  using TextKernel::TextKernel;

  void Run() override {
    const SecondDevice::Open open(SecondDevice::Get());
    for (const std::vector<void*>& all : {inputs(), outputs()}) {
      for (const void* address : all) open.CheckOwns(address);
    }
    TextKernel::Run();
  }
};

template <typename K>
class LoaderOf : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override { return std::make_unique<K>(image); }
};

}  // namespace

void AddSecondDevice() {
  static std::once_flag once;
  std::call_once(once, [] {
    AddDevice(kExtDevType, std::make_unique<SecondDevice>());
    AddKernelLoader(kDeviceLoader, std::make_unique<LoaderOf<DeviceKernel>>());
    AddKernelLoader(kHostLoader, std::make_unique<LoaderOf<TextKernel>>());
  });
}

SecondDeviceCounts SecondDeviceCopies() { return SecondDevice::Get().counts; }

Result<void> TextToolchain::SupportsCall(const CallNode& call) const {
  if (call.op()->name == "nn.softmax" && device_type_ == kExtDevType) return Reason{"the device has no exponential"};
  return {};
}

std::vector<BoundaryLayouts> TextToolchain::Layouts(const Function& function, const std::vector<bool>& eligible_inputs,
                                                    const std::vector<bool>& eligible_outputs) const {
  std::vector<BoundaryLayouts> all = Toolchain::Layouts(function, eligible_inputs, eligible_outputs);
  if (device_type_ != kExtDevType) return all;
  BoundaryLayouts to_scratchpad = all.front();
  for (Layout& layout : to_scratchpad.outputs) layout = In(Memory::kExtDevVtcm, layout);
  BoundaryLayouts from_scratchpad = all.front();
  for (Layout& layout : from_scratchpad.inputs) layout = In(Memory::kExtDevVtcm, layout);
  all.push_back(to_scratchpad);
  all.push_back(from_scratchpad);
  return all;
}

Result<CompiledPartition> TextToolchain::RelayToRuntime(const PartitionRequest& request) const {
  return CompileToText(request, device_type_ == kExtDevType ? kDeviceLoader : kHostLoader);
}

}  // namespace collage
