// tensor_cores.h: the instructions that functions of contraction/tensor_functions.h become.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "llvm/IR/IRBuilder.h"

namespace collage::native {

/// NVPTX's number of the memory that a block's threads share.
inline constexpr unsigned kSharedSpace = 3;

/// Writes such instructions for the threads of one function.
class TensorCores {
 public:
  /// `function` is as it was before any call was replaced: its calls say how much memory a warp's threads share.
  explicit TensorCores(llvm::Function& function);

  /// Warps of a block that computes units together; 0: each warp computes its own.
  int64_t block_warps() const { return block_warps_; }
  /// Bytes that the threads of such a block, or else of a warp, share.
  int64_t shared_bytes() const { return shared_bytes_; }

  /// Writes what a call of function `name` does, given this thread's elements of its vectors. Returns its elements of
  /// the results; nothing where there is no such function.
  std::optional<std::vector<llvm::Value*>> Call(llvm::IRBuilder<>& builder, std::string_view name,
                                                const std::vector<llvm::Value*>& arguments);

 private:
  using Values = std::vector<llvm::Value*>;

  /// The beginning of the shared memory, known from the function's entry on.
  llvm::Value* Shared();
  /// This thread's place in it: the first two of a function's arguments.
  llvm::Value* Place(llvm::IRBuilder<>& builder, const Values& arguments);
  /// The number of this thread's warp in its block, as a value that is the same in all threads of the warp.
  static llvm::Value* Warp(llvm::IRBuilder<>& builder);
  Values LoadMatrices(llvm::IRBuilder<>& builder, llvm::Value* place);
  Values MultiplyGroup(llvm::IRBuilder<>& builder, std::string_view name, Values arguments);

  llvm::Function& function_;
  int64_t block_warps_ = 0;
  int64_t shared_bytes_ = 0;
  llvm::Value* shared_ = nullptr;
};

}  // namespace collage::native
