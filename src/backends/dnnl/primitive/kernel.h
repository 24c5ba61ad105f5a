// kernel.h: a primitive bound to memory.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backends/dnnl/primitive/build.h"
#include "collage/runtime/kernel.h"
#include "collage/runtime/tensor.h"

namespace collage::dnnl_toolchain {

/// Returns the bytes of the workspace that a kernel of `built` is bound to.
size_t WorkspaceBytes(const Built& built);

/// Whether a constant of `binding` is read in another form than it is kept in.
bool IsPacked(const Binding& binding);

/// Memory objects whose addresses `Bind` sets; execution goes through the C interface with arguments made once.
class DnnlKernel : public Kernel {
 public:
  /// Throws kCorrupt where `constants`, which must outlive the kernel, lack one.
  DnnlKernel(std::shared_ptr<const Built> built, std::span<const Tensor> constants, int num_threads);

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void* workspace) override;
  void Run() override;

 private:
  /// An input that the primitive reads in another format than it arrives in.
  struct Conversion {
    size_t source;  // in given_
    dnnl::memory target;
    dnnl::reorder reorder;
  };

  void AddArgument(const Binding& binding, std::span<const Tensor> constants);

  std::shared_ptr<const Built> built_;
  int num_threads_;
  dnnl::memory dst_;
  dnnl::memory scratchpad_;
  std::vector<std::shared_ptr<dnnl::memory>> constants_;
  std::vector<std::pair<int, dnnl::memory>> given_;  // number of the input, and its memory
  std::vector<Conversion> conversions_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace collage::dnnl_toolchain
