// program.h: programs with control flow as the runtime runs them: their @main, from tensors to tensors. The virtual
// machine knows Relay's types and operators; it is in libcollage_ir, which is opened when the first program is loaded.
// None of that is the compiler.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collage/runtime/executable.h"
#include "collage/runtime/tensor.h"

namespace collage {

/// A compiled program. Immutable, safe to use from several threads.
class TensorProgram {
 public:
  /// Runs it. Not thread-safe.
  class Machine {
   public:
    virtual ~Machine() = default;
    /// The results of one call. They may share memory with `inputs` and constants, and are written to `destinations`,
    /// which may be undefined, if that spares a copy.
    virtual std::vector<Tensor> Run(const std::vector<Tensor>& inputs, const std::vector<Tensor>& destinations) = 0;
  };

  virtual ~TensorProgram() = default;
  /// Sizes are -1 where they are known at run time only.
  virtual const std::vector<PortInfo>& inputs() const = 0;
  virtual const std::vector<PortInfo>& outputs() const = 0;
  /// Returns the number of threads that its kernels were compiled for.
  virtual int num_threads() const = 0;
  virtual const std::string& metadata_json() const = 0;
  virtual std::unique_ptr<Machine> NewMachine() const = 0;
  /// Reads constants that nobody has used yet; throws kCorrupt when they are damaged.
  virtual void CheckConstants() const = 0;
};

/// Loads a file of bytecode, which errors call `name`: `bytes`, aligned to 64 bytes, which `owner` keeps alive. Throws
/// kCorrupt when they are damaged, kUnsupported when @main takes or gives what is no tensor, kUnavailable when
/// libcollage_ir is not here.
std::shared_ptr<const TensorProgram> LoadTensorProgram(std::span<std::byte> bytes, std::shared_ptr<void> owner,
                                                       const std::string& name);

/// Type of the C symbol `collage_load_tensor_program`, which libcollage_ir exports for that.
using LoadTensorProgramFn = void(std::span<std::byte> bytes, std::shared_ptr<void> owner, const std::string& name,
                                 std::shared_ptr<const TensorProgram>& program);

/// Whether `shape` is one of those that `pattern`, with -1 for any size, stands for.
bool ShapeFits(const Shape& shape, const Shape& pattern);

/// One execution of a program: what `ExecutionInstance` is of a plan.
class ProgramInstance {
 public:
  /// Sets the process's number of threads to the program's. Kernels are loaded when they are first needed.
  explicit ProgramInstance(std::shared_ptr<const TensorProgram> program);

  /// Uses `tensor`'s memory as input `index`. Throws kInput when dtype or shape do not fit.
  void SetInput(size_t index, const Tensor& tensor);
  /// Lets output `index`, whose shape must be known, be written to `tensor`. Throws kInput when they do not fit.
  void SetOutput(size_t index, const Tensor& tensor);
  /// The tensor that output `index` was written to; undefined before the first run where its shape is known then only.
  /// Overwritten by the next run.
  const Tensor& Output(size_t index) const { return outputs_.at(index); }

  /// Runs the program once. All inputs must have been set.
  void Run();

 private:
  std::shared_ptr<const TensorProgram> program_;
  std::unique_ptr<TensorProgram::Machine> machine_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
};

}  // namespace collage
