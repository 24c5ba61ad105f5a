// loader.cc: the images of a partition as one launch on the GPU's stream. Triton itself has no part in it.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "backends/cuda_driver/device.h"
#include "backends/cuda_driver/loaded_module.h"
#include "backends/triton/kernel.h"
#include "collage/runtime/kernel.h"

namespace collage::triton {
namespace {

constexpr int kWarp = 32;

class TritonLaunch : public Kernel {
 public:
  TritonLaunch(TritonKernel kernel, std::span<const Tensor> constants)
      : device_(cuda_driver::GetCudaDevice()),
        driver_(cuda_driver::GetDriver()),
        kernel_(std::move(kernel)),
        constants_(cuda_driver::CopyConstants(device_, constants)) {
    device_.Enter();
    module_ = std::make_unique<cuda_driver::LoadedModule>(driver_, kernel_.images, kernel_.architecture, "triton");
    function_ = module_->Find(kKernelName, kernel_.shared_bytes);
  }

  // The module is unloaded in the GPU's context.
  ~TritonLaunch() override { device_.Enter(); }
  TritonLaunch(const TritonLaunch&) = delete;
  TritonLaunch& operator=(const TritonLaunch&) = delete;

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    if (outputs.empty()) throw Error(ErrorCategory::kCorrupt, "a kernel of Triton has no result", "triton");
    addresses_.clear();
    for (const ReadTensor& read : kernel_.reads) addresses_.push_back(AddressOf(read, inputs));
    addresses_.push_back(outputs[0]);
    // The others are of scratch memory, which the kernel was compiled without.
    addresses_.resize(static_cast<size_t>(kernel_.num_parameters), nullptr);
    parameters_.clear();
    for (void*& address : addresses_) parameters_.push_back(&address);
  }

  void Run() override {
    driver_.Check(
        driver_.LaunchKernel(function_, static_cast<unsigned>(kernel_.grid[0]), static_cast<unsigned>(kernel_.grid[1]),
                             1, static_cast<unsigned>(kernel_.warps * kWarp), 1, 1,
                             static_cast<unsigned>(kernel_.shared_bytes), device_.Enter(), parameters_.data(), nullptr),
        "launch a kernel of Triton");
  }

 private:
  void* AddressOf(const ReadTensor& read, std::span<void* const> inputs) const {
    const auto number = static_cast<size_t>(read.number);
    if (read.is_constant) return constants_[number].address();
    if (number < inputs.size()) return inputs[number];
    throw Error(ErrorCategory::kCorrupt, "a kernel of Triton reads inputs that there are not", "triton");
  }

  cuda_driver::CudaDevice& device_;
  const cuda_driver::Driver& driver_;
  TritonKernel kernel_;
  std::vector<DeviceBuffer> constants_;
  std::unique_ptr<cuda_driver::LoadedModule> module_;
  cuda_driver::Function function_ = nullptr;
  std::vector<void*> addresses_;
  std::vector<void*> parameters_;
};

class TritonLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    return std::make_unique<TritonLaunch>(TritonKernelFrom(image.blob, image.constants), image.constants);
  }
};

}  // namespace
}  // namespace collage::triton

extern "C" collage::KernelLoader* collage_make_kernel_loader() { return new collage::triton::TritonLoader; }
