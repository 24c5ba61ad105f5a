// loader.cc: products as kernels.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "backends/cublas/loader/library.h"
#include "backends/cublas/loader/operation.h"
#include "backends/cublas/product.h"
#include "backends/cuda_driver/device.h"
#include "collage/runtime/kernel.h"

namespace collage::cublas {
namespace {

/// All kernels share it: their work is on one stream.
const DeviceBuffer& Workspace() {
  // Never destroyed: the driver may end before.
  static const DeviceBuffer& workspace = *new DeviceBuffer(Memory::kCuda, kWorkspaceBytes);
  return workspace;
}

Handle TheHandle() {
  static const Handle handle = [] {
    cuda_driver::GetCudaDevice().Enter();
    Handle created = nullptr;
    GetLibrary().Check(GetLibrary().Create(&created), "create a handle");
    return created;
  }();
  return handle;
}

class CublasKernel : public Kernel {
 public:
  CublasKernel(const Product& product, std::span<const Tensor> constants)
      : device_(cuda_driver::GetCudaDevice()), product_(product), constants_(OnDevice(device_, constants)) {
    device_.Enter();
    operation_ = std::make_unique<Operation>(TheHandle(), product,
                                             product.has_scales != 0 ? ConstantAt(product.scales) : nullptr,
                                             product.bias_along != Along::kNone ? ConstantAt(product.bias) : nullptr);
    if (operation_->workspace_bytes() > 0) workspace_ = Workspace().address();
  }

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    const Product::Operand last =
        std::max({product_.a, product_.b, product_.has_addend != 0 ? product_.addend : Product::Operand{0}});
    if (last >= static_cast<int64_t>(inputs.size()) || outputs.empty()) {
      throw Error(ErrorCategory::kCorrupt, "a kernel's product reads inputs that there are not", "cublas");
    }
    const auto address = [&](Product::Operand operand) -> const void* {
      return operand >= 0 ? inputs[static_cast<size_t>(operand)] : ConstantAt(operand);
    };
    addresses_ = {.a = address(product_.a), .b = address(product_.b), .result = outputs[0]};
    if (product_.has_addend != 0) addresses_.addend = address(product_.addend);
  }

  void Run() override { operation_->Enqueue(addresses_, workspace_, device_.Enter()); }

 private:
  static std::vector<DeviceBuffer> OnDevice(Device& device, std::span<const Tensor> constants) {
    std::vector<DeviceBuffer> buffers;
    for (const Tensor& constant : constants) {
      buffers.emplace_back(Memory::kCuda, constant.size_bytes());
      device.CopyIn(buffers.back().address(), constant.raw(), constant.size_bytes());
    }
    return buffers;
  }

  const void* ConstantAt(Product::Operand operand) const {
    return constants_[static_cast<size_t>(-1 - operand)].address();
  }

  cuda_driver::CudaDevice& device_;
  Product product_;
  std::vector<DeviceBuffer> constants_;
  std::unique_ptr<const Operation> operation_;
  void* workspace_ = nullptr;
  Addresses addresses_;
};

class CublasLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    return std::make_unique<CublasKernel>(ProductFrom(image.blob, image.constants), image.constants);
  }
};

}  // namespace
}  // namespace collage::cublas

extern "C" collage::KernelLoader* collage_make_kernel_loader() { return new collage::cublas::CublasLoader; }

extern "C" void collage_cublas_version(std::string& text) {
  const size_t version = collage::cublas::GetLibrary().GetVersion();
  text = fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}
