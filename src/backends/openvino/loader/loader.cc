// loader.cc: kernels from what OpenVINO's CPU plugin exported, or, where its version is another one, from the model.
#include <fmt/format.h>

#include <algorithm>
#include <openvino/openvino.hpp>
#include <vector>

#include "backends/openvino/image/image.h"
#include "backends/openvino/image/plugin.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"
#include "runtime/threads/forked_library.h"

namespace collage::openvino {
namespace {

using Ports = std::vector<ov::Output<const ov::Node>>;

[[noreturn]] void FailAsDamaged(size_t ports, size_t addresses) {
  throw Error(ErrorCategory::kCorrupt,
              fmt::format("a kernel of OpenVINO has {} inputs or outputs, the plan gives it {}", ports, addresses));
}

void Infer(ov::InferRequest& request) {
  try {
    request.infer();
  } catch (const std::exception& e) {
    throw Error(ErrorCategory::kInternal, fmt::format("OpenVINO failed: {}", e.what()));
  }
}

/// A kernel of any size. Its last input has all dimensions of the others and of the outputs, of which tensors around
/// the executor's memory are made in each run (collage/target/symbolic_sizes.h).
class SymbolicKernel : public Kernel {
 public:
  explicit SymbolicKernel(ov::CompiledModel model)
      : model_(std::move(model)), request_(model_.create_infer_request()) {}

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    if (inputs.size() != model_.inputs().size() + 1) FailAsDamaged(model_.inputs().size() + 1, inputs.size());
    if (outputs.size() != model_.outputs().size()) FailAsDamaged(model_.outputs().size(), outputs.size());
    inputs_.assign(inputs.begin(), inputs.end() - 1);
    outputs_.assign(outputs.begin(), outputs.end());
    sizes_ = static_cast<const int64_t*>(inputs.back());
  }

  void Run() override {
    const int64_t* next = sizes_;
    SetTensors(model_.inputs(), inputs_, next);
    const std::vector<ov::Tensor> results = SetTensors(model_.outputs(), outputs_, next);
    Infer(request_);
    for (size_t i = 0; i < results.size(); ++i) CheckResult(model_.outputs()[i], results[i]);
  }

 private:
  /// Returns the tensors that it sets. `next` is moved behind their sizes.
  std::vector<ov::Tensor> SetTensors(const Ports& ports, const std::vector<void*>& addresses, const int64_t*& next) {
    std::vector<ov::Tensor> tensors;
    for (size_t i = 0; i < ports.size(); ++i) {
      const auto rank = ports[i].get_partial_shape().rank().get_length();
      const ov::Shape shape(next, next + rank);
      next += rank;
      tensors.emplace_back(ports[i].get_element_type(), shape, addresses[i]);
      try {
        request_.set_tensor(ports[i], tensors.back());
      } catch (const std::exception& e) {
        throw Error(ErrorCategory::kInternal, fmt::format("OpenVINO refused a tensor: {}", e.what()));
      }
    }
    return tensors;
  }

  /// The result is in the memory that it was to be in, in the shape that the caller found for it.
  void CheckResult(const ov::Output<const ov::Node>& port, const ov::Tensor& expected) {
    const ov::Tensor actual = request_.get_tensor(port);
    if (actual.get_shape() != expected.get_shape()) {
      throw Error(ErrorCategory::kInternal,
                  fmt::format("OpenVINO gave a result of shape {}, expected {}", actual.get_shape().to_string(),
                              expected.get_shape().to_string()));
    }
    if (actual.data() != expected.data()) actual.copy_to(expected);
  }

  ov::CompiledModel model_;
  ov::InferRequest request_;
  std::vector<void*> inputs_, outputs_;
  const int64_t* sizes_ = nullptr;
};

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

  void Run() override { Infer(request_); }

 private:
  template <typename SetFn>
  static void BindPorts(const Ports& ports, std::span<void* const> addresses, SetFn set) {
    if (ports.size() != addresses.size()) FailAsDamaged(ports.size(), addresses.size());
    for (size_t i = 0; i < ports.size(); ++i) {
      set(ports[i], ov::Tensor(ports[i].get_element_type(), ports[i].get_shape(), addresses[i]));
    }
  }

  ov::CompiledModel model_;
  ov::InferRequest request_;
};

std::unique_ptr<Kernel> KernelOf(ov::CompiledModel model) {
  const auto is_dynamic = [](const auto& port) { return port.get_partial_shape().is_dynamic(); };
  if (std::ranges::any_of(model.inputs(), is_dynamic) || std::ranges::any_of(model.outputs(), is_dynamic)) {
    return std::make_unique<SymbolicKernel>(std::move(model));
  }
  return std::make_unique<OpenVinoKernel>(std::move(model));
}

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
      if (parts.version() == RuntimeVersion()) return KernelOf(Import(parts, config));
    } catch (const ov::Exception&) {
      // The plugin of another processor may want what this one did not export: the model is there for that too.
    }
    try {
      return KernelOf(Compile(parts, config));
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
