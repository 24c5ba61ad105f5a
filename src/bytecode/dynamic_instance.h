// dynamic_instance.h: a kernel that is told the sizes of its tensors, ready to run.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bytecode/bytecode.h"
#include "bytecode/tensor_pool.h"
#include "collage/ir/value.h"
#include "collage/runtime/kernel.h"

namespace collage::vm {

/// Results of shape inference are kept for the latest few sets of shapes. Not thread-safe.
class DynamicInstance {
 public:
  /// `program`, which `kernel` is of, must outlive it.
  DynamicInstance(const Program& program, const DynamicKernel& kernel);

  /// Everything that a call with certain shapes needs.
  struct Shapes {
    std::vector<Shape> inputs;
    std::vector<Tensor> values;   ///< the arguments that say sizes
    std::optional<Tensor> sizes;  ///< the kernel's sizes; empty if it cannot run
    bool is_evaluated = false;    ///< whether the reference evaluation computes the call in its place
    Type result;
    std::vector<std::pair<Shape, DataType>> outputs;
  };

  /// Results are in memory of `pool`. Throws kInput where shapes do not fit each other.
  Value Run(const std::vector<Value>& args, TensorPool& pool);

  // The parts of Run, for those who plan calls.

  /// Throws kInput unless `args` are tensors of the kernel's parameters.
  std::vector<Tensor> CheckArguments(const std::vector<Value>& args) const;
  /// The reference is good until the next call. Only the shapes of `inputs` are looked at, and the elements of those
  /// that say sizes, such as the shape that dyn.broadcast_to takes. Throws kInput where these have no memory.
  const Shapes& ShapesFor(const std::vector<Tensor>& inputs);
  /// Whether it has code for certain numbers of rows, which RunRows calls.
  bool is_by_rows() const { return codes_.back().code->rows > 0; }
  void RunRows(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs);
  /// Calls the code for any size; the last of `sources` are the sizes.
  void RunCode(std::span<void* const> sources, std::span<void* const> targets);

 private:
  struct LoadedCode {
    const DynamicKernel::Code* code;
    std::vector<Tensor> constants;
    Tensor workspace;
    std::unique_ptr<Kernel> kernel;  ///< once it was needed
  };

  Kernel& Load(LoadedCode& code) const;
  static Tensor DimensionsOf(const Shapes& shapes);
  const Shapes& Remember(Shapes shapes);
  DynamicSizes WithValues(const std::vector<Tensor>& inputs) const;
  Value Evaluate(const std::vector<Value>& args) const;

  static constexpr size_t kMostKnown = 8;

  const Program& program_;
  const DynamicKernel& kernel_;
  std::vector<LoadedCode> codes_;
  bool has_values_ = false;           ///< whether operators read sizes from arguments
  std::vector<size_t> value_params_;  ///< numbers of parameters that say sizes, ascending
  std::vector<Shapes> known_;
  size_t next_ = 0;  ///< next entry of `known_` to replace
};

}  // namespace collage::vm
