// program_builder.h: the tables of a program that is being made, which all its functions share.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "bytecode/bytecode.h"
#include "collage/vm/vm.h"
#include "ir/eval/interpreter_scope.h"
#include "lowering/lower.h"

namespace collage::vm {

/// Gives constants, constructors, operators, kernels and functions their numbers; equal nodes have one.
class ProgramBuilder {
 public:
  /// A function to be compiled; `scopes` is that of the global function around it.
  struct Waiting {
    int index;
    Function function;
    std::shared_ptr<const ScopeAnalysis> scopes;
  };

  /// All globals of `module` wait.
  ProgramBuilder(const IRModule& module, const CompileOptions& options);

  std::optional<Waiting> TakeWaiting();
  VmFunction& function(int index) { return program_.functions[static_cast<size_t>(index)]; }
  Program Finish() { return std::move(program_); }

  /// Throws kInput when the module has no such function.
  int GlobalIndex(const GlobalVarNode& global) const;
  int ConstantIndex(const ConstantNode& constant);
  int ConstructorIndex(const Constructor& constructor);
  int OpCallIndex(const CallNode& call);
  /// The kernel of a Primitive function; nothing when kernels are not wanted or it cannot be one: null, not of static
  /// tensors, not closed.
  std::optional<int> KernelIndex(const Function& function);
  /// Returns the kernel index of a function of tensors whose types have `?`.
  std::optional<int> DynamicKernelIndex(const Function& function);
  /// Makes `function`, within the one called `outer`, wait for its turn.
  int AddFunction(const std::string& outer, const Function& function, std::shared_ptr<const ScopeAnalysis> scopes);

 private:
  /// The toolchain for a function of dynamic shapes; null if there is none.
  const Toolchain* ToolchainFor(const Function& function) const;
  /// Throws kUnsupported where `toolchain` declines.
  void AddCode(DynamicKernel& kernel, const Toolchain& toolchain, const Function& function, int64_t rows) const;
  /// Makes the code of `plain`, which `function` is without its attributes. Throws as AddCode does.
  DynamicKernel MakeDynamicKernel(const Function& function, const Function& plain, const Toolchain& toolchain) const;

  const IRModule& module_;
  CompileOptions options_;
  Program program_;
  std::vector<Waiting> waiting_;
  std::optional<PartitionCache> partitions_;
  std::map<std::string, int, std::less<>> globals_;
  std::unordered_map<const ExprNode*, int> constants_;
  std::map<std::string, int, std::less<>> constructors_;
  std::unordered_map<const ExprNode*, int> kernels_;
  std::unordered_map<const ExprNode*, std::optional<int>> dynamic_kernels_;
  std::map<std::string, int> dynamic_by_digest_;  ///< one entry for equal functions
  int num_inner_ = 0;
};

}  // namespace collage::vm
