// loader.cc: kernels from blobs that OpenVINO's CPU plugin exported.
#include <fmt/format.h>

#include <openvino/openvino.hpp>
#include <vector>

#include "collage/runtime/kernel.h"
#include "collage/support/error.h"

namespace collage::openvino {
namespace {

/// One infer request whose tensors wrap the executor's memory.
class OpenVinoKernel : public Kernel {
 public:
  explicit OpenVinoKernel(ov::CompiledModel model) : model_(std::move(model)), request_(model_.create_infer_request()) {}

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    BindPorts(model_.inputs(), inputs, [this](const auto& port, const ov::Tensor& t) { request_.set_tensor(port, t); });
    BindPorts(model_.outputs(), outputs, [this](const auto& port, const ov::Tensor& t) { request_.set_tensor(port, t); });
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
  static void BindPorts(const std::vector<ov::Output<const ov::Node>>& ports, std::span<void* const> addresses, SetFn set) {
    COLLAGE_CHECK(ports.size() == addresses.size()) << ports.size() << " ports, " << addresses.size() << " addresses";
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
    const ov::AnyMap config = {ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY),
                               ov::hint::inference_precision(ov::element::f32),
                               ov::inference_num_threads(image.num_threads),
                               ov::num_streams(1),
                               ov::hint::enable_cpu_pinning(false)};
    // The tensor wraps the blob, so that weights stay in the mapped file; OpenVINO only reads it.
    const ov::Tensor blob(ov::element::u8, ov::Shape{image.blob.size()},
                          const_cast<std::byte*>(image.blob.data()));  // NOLINT: no constructor from const memory
    try {
      return std::make_unique<OpenVinoKernel>(core_.import_model(blob, "CPU", config));
    } catch (const std::exception& e) {
      throw Error(ErrorCategory::kCorrupt, fmt::format("OpenVINO cannot read a kernel: {}", e.what()), "",
                  "was the file compiled with another version of OpenVINO?");
    }
  }

 private:
  ov::Core core_;
};

}  // namespace
}  // namespace collage::openvino

extern "C" collage::KernelLoader* collage_make_kernel_loader() { return new collage::openvino::OpenVinoLoader(); }
