// loader.cc: kernels from what OpenVINO's CPU plugin exported, or, where its version is another one, from the model.
#include <fmt/format.h>

#include <openvino/openvino.hpp>
#include <vector>

#include "backends/openvino/image/image.h"
#include "backends/openvino/image/plugin.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"
#include "runtime/threads/forked_library.h"

namespace collage::openvino {
namespace {

/// One infer request whose tensors wrap the executor's memory.
class OpenVinoKernel : public Kernel {
 public:
  explicit OpenVinoKernel(ov::CompiledModel model)
      : model_(std::move(model)), request_(model_.create_infer_request()) {}

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    BindPorts(model_.inputs(), inputs, [this](const auto& port, const ov::Tensor& t) { request_.set_tensor(port, t); });
    BindPorts(model_.outputs(), outputs,
              [this](const auto& port, const ov::Tensor& t) { request_.set_tensor(port, t); });
  }

  void Run() override {
    try {
      request_.infer();
    } catch (const std::exception& e) {
      throw Error(ErrorCategory::kInternal, fmt::format("OpenVINO failed: {}", e.what()));
    }
  }

 private:
  template <typename SetFn>
  static void BindPorts(const std::vector<ov::Output<const ov::Node>>& ports, std::span<void* const> addresses,
                        SetFn set) {
    if (ports.size() != addresses.size()) {
      throw Error(ErrorCategory::kCorrupt,
                  fmt::format("a kernel of OpenVINO has {} inputs or outputs, the plan gives it {}", ports.size(),
                              addresses.size()));
    }
    for (size_t i = 0; i < ports.size(); ++i) {
      set(ports[i], ov::Tensor(ports[i].get_element_type(), ports[i].get_shape(), addresses[i]));
    }
  }

  ov::CompiledModel model_;
  ov::InferRequest request_;
};

class OpenVinoLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    UseLibraryWithThreads("OpenVINO");
    const Image parts(image.blob);
    ov::AnyMap config;
    try {
      config = PluginConfig(image.num_threads, parts.precision());
    } catch (const std::exception& e) {
      throw Error(ErrorCategory::kCorrupt, fmt::format("a kernel of OpenVINO is damaged: {}", e.what()));
    }
    try {
      if (parts.version() == RuntimeVersion()) return std::make_unique<OpenVinoKernel>(Import(parts, config));
    } catch (const ov::Exception&) {
      // The plugin of another processor may want what this one did not export: the model is there for that too.
    }
    try {
      return std::make_unique<OpenVinoKernel>(Compile(parts, config));
    } catch (const ov::Exception& e) {
      throw Error(ErrorCategory::kCorrupt,
                  fmt::format("OpenVINO {} cannot load a kernel of version {}: {}", RuntimeVersion(), parts.version(),
                              e.what()),
                  "", "compile the model again");
    }
  }

 private:
  /// The tensor wraps the blob, so that weights stay in the mapped file; OpenVINO only reads it.
  ov::CompiledModel Import(const Image& parts, const ov::AnyMap& config) {
    const ov::Tensor exported(
        ov::element::u8, ov::Shape{parts.exported().size()},
        const_cast<std::byte*>(parts.exported().data()));  // NOLINT: no constructor from const memory
    return core_.import_model(exported, "CPU", config);
  }

  /// Exported by another version: the model is compiled again, which takes longer and gives the same kernel.
  ov::CompiledModel Compile(const Image& parts, const ov::AnyMap& config) {
    ov::Tensor weights(ov::element::u8, ov::Shape{parts.weights_bytes()});
    parts.CopyWeights(static_cast<std::byte*>(weights.data()));
    return core_.compile_model(core_.read_model(std::string(parts.model()), weights), "CPU", config);
  }

  ov::Core core_;
};

}  // namespace
}  // namespace collage::openvino

extern "C" collage::KernelLoader* collage_make_kernel_loader() { return new collage::openvino::OpenVinoLoader(); }
