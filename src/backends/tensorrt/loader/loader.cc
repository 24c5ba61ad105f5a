// loader.cc: engines as kernels, and engines of models. Both are made by host.py.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "backends/cuda_driver/device.h"
#include "backends/tensorrt/engine.h"
#include "backends/tensorrt/loader/interpreter.h"
#include "collage/runtime/kernel.h"
#include "runtime/known_devices.h"
#include "support/dynamic_library.h"

namespace collage::tensorrt {
namespace {

/// The library wants tensors to begin at such addresses; the executor promises less.
constexpr uintptr_t kAlignment = 256;

std::string ThisArchitecture() {
  std::string architecture;
  reinterpret_cast<DescribeDeviceFn*>(
      FindModuleSymbol(DeviceModule(DeviceTypeOf(Memory::kCuda)), "collage_gpu_architecture"))(architecture);
  return architecture;
}

size_t BytesOf(const Port& port) {
  return static_cast<size_t>(NumElements(port.shape)) * DataType::FromString(port.dtype).size_bytes();
}

/// Memory of its own for a tensor that lies elsewhere, at an address that the library does not take.
struct Moved {
  void* place;  ///< the address that it has otherwise
  size_t bytes;
  DeviceBuffer own;
};

class TensorRtKernel : public Kernel {
 public:
  explicit TensorRtKernel(Engine engine) : device_(cuda_driver::GetCudaDevice()), engine_(std::move(engine)) {
    const std::string here = ThisArchitecture();
    if (engine_.architecture != here) {
      throw Error(ErrorCategory::kUnavailable,
                  fmt::format("a kernel was made for {}, and the GPU here is of {}", engine_.architecture, here),
                  "tensorrt", "compile on this machine, or with -arch for its GPU");
    }
    const Interpreter& python = Interpreter::Get();
    device_.Enter();
    kernel_ = python.Call("Kernel", {AsBytes(engine_.bytes), Describe(engine_)});
    bind_ = python.Attribute(kernel_, "bind");
    enqueue_ = python.Attribute(kernel_, "enqueue");
    engine_.bytes.clear();
  }

  // The library gives back in the GPU's context what it made of the engine.
  ~TensorRtKernel() override { device_.Enter(); }
  TensorRtKernel(const TensorRtKernel&) = delete;
  TensorRtKernel& operator=(const TensorRtKernel&) = delete;

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    if (inputs.size() != engine_.inputs.size() || outputs.size() != engine_.outputs.size()) {
      throw Error(ErrorCategory::kCorrupt, "a kernel of TensorRT has other inputs and outputs than the plan says");
    }
    device_.Enter();
    std::vector<Argument> addresses;
    moved_in_ = Aligned(inputs, engine_.inputs, addresses);
    moved_out_ = Aligned(outputs, engine_.outputs, addresses);
    Interpreter::Get().Call(bind_, addresses);
  }

  void Run() override {
    const cuda_driver::Stream stream = device_.Enter();
    for (const Moved& one : moved_in_) device_.CopyWithin(one.own.address(), one.place, one.bytes);
    Interpreter::Get().Call(enqueue_, {reinterpret_cast<uint64_t>(stream)});
    for (const Moved& one : moved_out_) device_.CopyWithin(one.place, one.own.address(), one.bytes);
  }

 private:
  /// Adds addresses that the library takes for tensors at `places`. Returns those that had to be moved.
  static std::vector<Moved> Aligned(std::span<void* const> places, const std::vector<Port>& ports,
                                    std::vector<Argument>& addresses) {
    std::vector<Moved> moved;
    for (size_t i = 0; i < places.size(); ++i) {
      void* address = places[i];
      if (reinterpret_cast<uintptr_t>(address) % kAlignment != 0) {
        const size_t bytes = BytesOf(ports[i]);
        moved.push_back({address, bytes, DeviceBuffer(Memory::kCuda, bytes)});
        address = moved.back().own.address();
      }
      addresses.emplace_back(reinterpret_cast<uint64_t>(address));
    }
    return moved;
  }

  cuda_driver::CudaDevice& device_;
  Engine engine_;
  std::vector<Moved> moved_in_, moved_out_;
  Owned kernel_, bind_, enqueue_;
};

class TensorRtLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    return std::make_unique<TensorRtKernel>(EngineFrom(image.blob));
  }
};

}  // namespace
}  // namespace collage::tensorrt

extern "C" collage::KernelLoader* collage_make_kernel_loader() { return new collage::tensorrt::TensorRtLoader; }

extern "C" void collage_tensorrt_look(const std::string& module, std::string& text) {
  text = collage::tensorrt::LookInPython(module);
}

extern "C" void collage_tensorrt_build(std::string_view model, const collage::tensorrt::BuildRequest& request,
                                       collage::Result<std::string>& bytes) {
  using namespace collage::tensorrt;
  const std::string options = nlohmann::json{{"module", request.module}, {"architecture", request.architecture},
                                             {"here", request.here},     {"allows_tf32", request.allows_tf32},
                                             {"level", request.level},   {"timings", request.timings}}
                                  .dump();
  try {
    const Interpreter& python = Interpreter::Get();
    bytes = python.Bytes(python.Call("build", {AsBytes(model), options}));
  } catch (const collage::Error& error) {
    bytes = collage::Reason{error.message(), "tensorrt"};
  }
}
