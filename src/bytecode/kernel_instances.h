// kernel_instances.h: the kernels of a program, ready to run.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "bytecode/bytecode.h"
#include "bytecode/dynamic_instance.h"
#include "bytecode/tensor_pool.h"

namespace collage::vm {

/// An instance of each kernel, made when it is first needed. Not thread-safe.
class KernelInstances {
 public:
  /// `program` must outlive it.
  explicit KernelInstances(const Program& program)
      : program_(program), static_(program.kernels.size()), dynamic_(program.dynamic_kernels.size()) {}

  /// The instance of a kernel of `Program::kernels`.
  ExecutionInstance& Static(size_t index) {
    std::unique_ptr<ExecutionInstance>& instance = static_[index];
    if (!instance) instance = std::make_unique<ExecutionInstance>(program_.kernels[index].executable);
    return *instance;
  }
  /// The instance of a kernel of `Program::dynamic_kernels`.
  DynamicInstance& Dynamic(size_t index) {
    std::unique_ptr<DynamicInstance>& instance = dynamic_[index];
    if (!instance) instance = std::make_unique<DynamicInstance>(program_, program_.dynamic_kernels[index]);
    return *instance;
  }

 private:
  const Program& program_;
  std::vector<std::unique_ptr<ExecutionInstance>> static_;
  std::vector<std::unique_ptr<DynamicInstance>> dynamic_;
};

}  // namespace collage::vm
