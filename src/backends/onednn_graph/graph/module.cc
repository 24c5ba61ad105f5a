// module.cc: what the module offers: kernels, and answers about graphs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "backends/onednn_graph/graph/build.h"
#include "backends/onednn_graph/query.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"

namespace collage::onednn_graph {
namespace {

/// Weights in the formats that kernels read are kept from the first run on.
void KeepPackedConstants() {
  static std::once_flag once;
  std::call_once(once, [] { dnnl::graph::set_constant_tensor_cache(1); });
}

class GraphKernel : public Kernel {
 public:
  explicit GraphKernel(const KernelImage& image) : num_threads_(image.num_threads) {
    const std::string_view text(reinterpret_cast<const char*>(image.blob.data()), image.blob.size());
    spec_ = FromJson(text);
    built_ = Build(spec_);
    for (const CompiledPart& part : built_.parts) {
      Step step;
      for (int number : part.inputs) step.inputs.push_back(MakeTensor(number, image.constants));
      for (int number : part.outputs) step.outputs.push_back(MakeTensor(number, image.constants));
      steps_.push_back(std::move(step));
    }
  }

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    const auto set = [&](int port, dnnl::graph::tensor& tensor) {
      const int number = built_.RootOf(port);
      const GraphTensor& from = spec_.tensors[static_cast<size_t>(number)];
      if (from.constant >= 0) return;
      if (from.input >= 0 && static_cast<size_t>(from.input) >= inputs.size()) {
        throw Error(ErrorCategory::kCorrupt, "a kernel of oneDNN's graphs reads inputs that there are not");
      }
      if (from.input >= 0) return tensor.set_data_handle(inputs[static_cast<size_t>(from.input)]);
      if (const auto offset = built_.offsets.find(number); offset != built_.offsets.end()) {
        return tensor.set_data_handle(static_cast<std::byte*>(workspace) + offset->second);
      }
      for (size_t i = 0; i < std::min(spec_.outputs.size(), outputs.size()); ++i) {
        if (spec_.outputs[i] == number) tensor.set_data_handle(outputs[i]);
      }
    };
    for (size_t i = 0; i < steps_.size(); ++i) {
      const CompiledPart& part = built_.parts[i];
      for (size_t j = 0; j < part.inputs.size(); ++j) set(part.inputs[j], steps_[i].inputs[j]);
      for (size_t j = 0; j < part.outputs.size(); ++j) set(part.outputs[j], steps_[i].outputs[j]);
    }
  }

  void Run() override {
    UseThreads(num_threads_);
    try {
      for (size_t i = 0; i < steps_.size(); ++i) {
        built_.parts[i].compiled.execute(Stream(), steps_[i].inputs, steps_[i].outputs);
      }
    } catch (const dnnl::error& error) {
      throw Error(ErrorCategory::kInternal, fmt::format("oneDNN failed: {}", error.what()));
    }
  }

 private:
  struct Step {
    std::vector<dnnl::graph::tensor> inputs;
    std::vector<dnnl::graph::tensor> outputs;
  };

  dnnl::graph::tensor MakeTensor(int number, std::span<const Tensor> constants) const {
    const int constant = spec_.tensors[static_cast<size_t>(number)].constant;
    void* address = nullptr;
    if (constant >= 0) {
      if (static_cast<size_t>(constant) >= constants.size()) {
        throw Error(ErrorCategory::kCorrupt, "a kernel of oneDNN's graphs lacks a constant");
      }
      address = constants[static_cast<size_t>(constant)].raw();
    }
    return {built_.tensors.at(number), Engine(), address};
  }

  int num_threads_;
  GraphSpec spec_;
  Built built_;
  std::vector<Step> steps_;
};

class GraphLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    KeepPackedConstants();
    UseThreads(image.num_threads);
    try {
      return std::make_unique<GraphKernel>(image);
    } catch (const dnnl::error& error) {
      throw Error(ErrorCategory::kUnavailable, fmt::format("oneDNN cannot make a kernel: {}", error.what()));
    }
  }
};

Result<Implementation> Query(const GraphSpec& spec, int num_threads) {
  UseThreads(num_threads);
  try {
    const Built built = Build(spec);
    std::string partitions;
    for (const CompiledPart& part : built.parts) partitions += part.kinds + "\n";
    return Implementation{built.workspace_bytes, partitions};
  } catch (const dnnl::error& error) {
    return Reason{fmt::format("oneDNN has no implementation: {}", error.what()), "onednn_graph"};
  } catch (const Error& error) {
    return Reason{error.message(), "onednn_graph"};
  }
}

}  // namespace
}  // namespace collage::onednn_graph

extern "C" collage::KernelLoader* collage_onednn_graph_make_loader() {
  return new collage::onednn_graph::GraphLoader();
}

extern "C" collage::Result<collage::onednn_graph::Implementation> collage_onednn_graph_query_implementation(
    const collage::onednn_graph::GraphSpec& spec, int num_threads) {
  return collage::onednn_graph::Query(spec, num_threads);
}

extern "C" std::vector<std::vector<int>> collage_onednn_graph_find_partitions(
    const collage::onednn_graph::GraphSpec& spec) {
  return collage::onednn_graph::FindPartitions(spec);
}
