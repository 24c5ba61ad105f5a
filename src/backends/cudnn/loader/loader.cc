// loader.cc: plans as kernels.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "backends/cuda_driver/device.h"
#include "backends/cudnn/loader/descriptor.h"
#include "backends/cudnn/loader/planner.h"
#include "collage/runtime/kernel.h"
#include "runtime/known_devices.h"
#include "support/dynamic_library.h"

namespace collage::cudnn {
namespace {

std::string ThisArchitecture() {
  std::string architecture;
  reinterpret_cast<DescribeDeviceFn*>(
      FindModuleSymbol(DeviceModule(DeviceTypeOf(Memory::kCuda)), "collage_gpu_architecture"))(architecture);
  return architecture;
}

/// Throws kUnavailable where the plan is for other GPUs, or for another version of the library.
void LoadPlan(const Plan& plan, const Descriptor& descriptor) {
  const std::string here = ThisArchitecture();
  if (plan.architecture != here) {
    throw Error(ErrorCategory::kUnavailable,
                fmt::format("a kernel was made for {}, and the GPU here is of {}", plan.architecture, here), "cudnn",
                "compile on this machine, or with -arch for its GPU");
  }
  descriptor.Set(Attribute::kPlanHandle, Type::kHandle, TheHandle());
  const std::string what = fmt::format("a plan of {} ready", plan.library);
  try {
    descriptor.Set(Attribute::kPlanJson, Type::kChar, std::span<const char>(plan.text));
    descriptor.Finalize(what);
  } catch (const Error& error) {
    if (error.category() == ErrorCategory::kUnavailable) {
      throw Error(error.category(), error.message(), "cudnn",
                  fmt::format("compile on this machine, whose library is {}", LibraryVersion()));
    }
    throw Error(ErrorCategory::kCorrupt, "a kernel's plan cannot be read: " + error.message(), "cudnn");
  }
  const int64_t wanted = descriptor.Number(Attribute::kPlanWorkspaceBytes);
  int64_t planned = plan.workspace_bytes;
  for (const PlanOperand& operand : plan.operands) {
    if (operand.source == Source::kScratch) planned = std::min(planned, operand.number);
  }
  if (wanted > planned) {
    throw Error(ErrorCategory::kCorrupt,
                fmt::format("a kernel's plan wants {} bytes of workspace, {} are planned", wanted, planned), "cudnn");
  }
}

class CudnnKernel : public Kernel {
 public:
  CudnnKernel(Plan plan, std::span<const Tensor> constants)
      : device_(cuda_driver::GetCudaDevice()), library_(GetLibrary()), plan_(std::move(plan)) {
    device_.Enter();
    LoadPlan(plan_, loaded_);
    constants_ = cuda_driver::CopyConstants(device_, constants);
  }

  // The library gives back in the GPU's context what it made of the plan.
  ~CudnnKernel() override { device_.Enter(); }
  CudnnKernel(const CudnnKernel&) = delete;
  CudnnKernel& operator=(const CudnnKernel&) = delete;

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    std::vector<int64_t> ids;
    std::vector<void*> pointers;
    for (PlanOperand& operand : plan_.operands) {
      ids.push_back(operand.id);
      pointers.push_back(AddressOf(operand, inputs, outputs, workspace));
    }
    device_.Enter();
    pack_ = std::make_unique<Descriptor>(DescriptorKind::kVariantPack);
    pack_->Set(Attribute::kPackIds, ids);
    pack_->Set<void*>(Attribute::kPackPointers, Type::kPointer, std::span<void* const>(pointers));
    pack_->Set(Attribute::kPackWorkspace, Type::kPointer, workspace);
    pack_->Finalize("addresses of operands known");
  }

  void Run() override {
    device_.Enter();
    library_.Check(library_.BackendExecute(TheHandle(), loaded_.pointer(), pack_->pointer()), "execute a plan");
  }

 private:
  void* AddressOf(PlanOperand& operand, std::span<void* const> inputs, std::span<void* const> outputs,
                  void* workspace) {
    const auto number = static_cast<size_t>(operand.number);
    switch (operand.source) {
      case Source::kInput:
        if (number < inputs.size()) return inputs[number];
        break;
      case Source::kConstant:
        if (number < constants_.size()) return constants_[number].address();
        break;
      case Source::kResult:
        if (!outputs.empty()) return outputs[0];
        break;
      case Source::kNumber: return &operand.value;
      case Source::kScratch: return static_cast<std::byte*>(workspace) + number;
      case Source::kInside: break;
    }
    throw Error(ErrorCategory::kCorrupt, "a kernel's plan has operands that there are not", "cudnn");
  }

  cuda_driver::CudaDevice& device_;
  const Library& library_;
  Plan plan_;
  Descriptor loaded_{DescriptorKind::kExecutionPlan};
  std::vector<DeviceBuffer> constants_;
  std::unique_ptr<Descriptor> pack_;
};

class CudnnLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    return std::make_unique<CudnnKernel>(PlanFrom(image.blob), image.constants);
  }
};

}  // namespace
}  // namespace collage::cudnn

extern "C" collage::KernelLoader* collage_make_kernel_loader() { return new collage::cudnn::CudnnLoader; }

extern "C" void collage_cudnn_version(std::string& text) { text = collage::cudnn::LibraryVersion(); }

extern "C" void collage_cudnn_plan(const collage::cudnn::PlanRequest& request,
                                   collage::Result<collage::cudnn::Plan>& plan) {
  try {
    plan = collage::cudnn::MakePlan(request);
  } catch (const collage::Error& error) {
    plan = collage::Reason{error.message(), "cudnn"};
  }
}

extern "C" void collage_cudnn_count(const collage::cudnn::PlanRequest& request, int& count) {
  count = collage::cudnn::CountEngines(request);
}
