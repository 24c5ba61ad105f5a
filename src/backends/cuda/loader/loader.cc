// loader.cc: kernels as launches of an image's functions on the GPU's stream.
#include <algorithm>
#include <memory>
#include <vector>

#include "backends/cuda_driver/device.h"
#include "backends/cuda_driver/gpu_kernel.h"
#include "backends/cuda_driver/loaded_module.h"
#include "collage/runtime/kernel.h"

namespace collage::cuda {
namespace {

using cuda_driver::Address;
using cuda_driver::Driver;
using cuda_driver::GpuKernel;
using cuda_driver::Launch;
using cuda_driver::LoadedModule;

constexpr unsigned kWarpThreads = 32;
/// Blocks of a launch; warps, or blocks, take further units in turn.
constexpr int64_t kMostBlocks = int64_t{1} << 20;

class GpuLaunches : public Kernel {
 public:
  GpuLaunches(GpuKernel kernel, std::span<const Tensor> constants)
      : device_(cuda_driver::GetCudaDevice()),
        driver_(cuda_driver::GetDriver()),
        kernel_(std::move(kernel)),
        constants_(cuda_driver::CopyConstants(device_, constants)) {
    device_.Enter();
    module_ = std::make_unique<LoadedModule>(driver_, kernel_.images, kernel_.architecture, "cuda");
    for (const cuda_driver::GpuFunction& function : kernel_.functions) {
      functions_.push_back(module_->Find(function.name, function.shared_bytes));
    }
  }

  // The module is unloaded in the GPU's context.
  ~GpuLaunches() override { device_.Enter(); }
  GpuLaunches(const GpuLaunches&) = delete;
  GpuLaunches& operator=(const GpuLaunches&) = delete;

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    addresses_.clear();
    const auto add = [&](const void* address) { addresses_.push_back(reinterpret_cast<Address>(address)); };
    for (const void* input : inputs) add(input);
    for (const DeviceBuffer& constant : constants_) add(constant.address());
    for (const void* output : outputs) add(output);
    if (kernel_.has_workspace) add(workspace);
    const bool has_scratch = kernel_.scratch_warps > 0;
    const auto read = static_cast<size_t>(kernel_.num_addresses - (has_scratch ? 1 : 0));
    if (addresses_.size() < read) throw Error(ErrorCategory::kCorrupt, "a kernel reads buffers that there are not");
    addresses_.resize(read);
    if (has_scratch) add(static_cast<std::byte*>(workspace) + kernel_.scratch_offset);
  }

  void Run() override {
    const cuda_driver::Stream stream = device_.Enter();
    for (const Launch& launch : kernel_.launches) {
      if (launch.counter_slot >= 0) Count(launch, stream);
      int64_t count = launch.count, grain = launch.grain;
      void* parameters[] = {addresses_.data(), &count, &grain};
      const auto number = static_cast<size_t>(launch.function);
      const cuda_driver::GpuFunction& function = kernel_.functions[number];
      driver_.Check(driver_.LaunchKernel(functions_[number], Blocks(launch, function), 1, 1,
                                         static_cast<unsigned>(function.warps) * kWarpThreads, 1, 1,
                                         static_cast<unsigned>(function.shared_bytes), stream, parameters, nullptr),
                    "launch a kernel");
    }
  }

 private:
  unsigned Blocks(const Launch& launch, const cuda_driver::GpuFunction& function) const {
    const int64_t workers = (launch.count + launch.grain - 1) / launch.grain;
    const int64_t per_block = function.is_for_blocks ? 1 : function.warps;
    const int64_t most = kernel_.scratch_warps > 0 ? kernel_.scratch_warps / function.warps : kMostBlocks;
    return static_cast<unsigned>(std::min((workers + per_block - 1) / per_block, most));
  }

  /// Writes the number of an iteration.
  void Count(const Launch& launch, cuda_driver::Stream stream) {
    const Address at =
        addresses_[static_cast<size_t>(launch.counter_slot)] + static_cast<Address>(launch.counter_offset);
    const auto value = static_cast<uint64_t>(launch.counter);
    driver_.Check(driver_.MemsetD32Async(at, static_cast<unsigned>(value), 1, stream), "count");
    driver_.Check(driver_.MemsetD32Async(at + 4, static_cast<unsigned>(value >> 32), 1, stream), "count");
  }

  cuda_driver::CudaDevice& device_;
  const Driver& driver_;
  GpuKernel kernel_;
  std::vector<DeviceBuffer> constants_;
  std::unique_ptr<LoadedModule> module_;
  std::vector<cuda_driver::Function> functions_;
  std::vector<Address> addresses_;
};

class CudaLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    return std::make_unique<GpuLaunches>(cuda_driver::GpuKernelFrom(image.blob), image.constants);
  }
};

}  // namespace
}  // namespace collage::cuda

extern "C" collage::KernelLoader* collage_make_kernel_loader() { return new collage::cuda::CudaLoader; }
