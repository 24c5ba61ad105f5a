// text_kernel.h: kernels whose code is Relay text, which they evaluate.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collage/ir/text.h"
#include "collage/runtime/kernel.h"
#include "collage/target/toolchain.h"
#include "ir/eval/evaluate.h"

namespace collage {

/// Compiles `request` to its own text, for the loader called `loader`.
inline CompiledPartition CompileToText(const PartitionRequest& request, const std::string& loader) {
  CompiledPartition compiled;
  compiled.loader = loader;
  for (const char c : PrintModule(IRModule::FromFunction(request.function))) {
    compiled.blob.push_back(static_cast<std::byte>(c));
  }
  return compiled;
}

/// Evaluates the function that CompileToText wrote.
class TextKernel : public Kernel {
 public:
  explicit TextKernel(const KernelImage& image)
      : function_(
            ParseModule(std::string(reinterpret_cast<const char*>(image.blob.data()), image.blob.size())).main()) {}

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    inputs_.assign(inputs.begin(), inputs.end());
    outputs_.assign(outputs.begin(), outputs.end());
  }

  void Run() override {
    std::vector<Tensor> args;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const TensorTypeNode* type = AsTensorType(function_->params()[i]->type_annotation());
      args.push_back(Tensor::View(type->static_shape(), type->dtype(), inputs_[i], nullptr));
    }
    const std::vector<Tensor> results = Evaluate(function_, args);
    for (size_t i = 0; i < results.size(); ++i) std::memcpy(outputs_[i], results[i].raw(), results[i].size_bytes());
  }

 protected:
  const std::vector<void*>& inputs() const { return inputs_; }
  const std::vector<void*>& outputs() const { return outputs_; }

 private:
  Function function_;
  std::vector<void*> inputs_;
  std::vector<void*> outputs_;
};

}  // namespace collage
