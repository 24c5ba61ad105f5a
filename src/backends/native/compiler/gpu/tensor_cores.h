// tensor_cores.h: the instructions that functions of contraction/tensor_functions.h become.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "llvm/IR/IRBuilder.h"

namespace collage::native {

/// Writes what a call of function `name` does, given this thread's elements of its vectors. Returns its elements of the
/// results; nothing where there is no such function.
std::optional<std::vector<llvm::Value*>> CallTensorFunction(llvm::IRBuilder<>& builder, std::string_view name,
                                                            const std::vector<llvm::Value*>& arguments);

}  // namespace collage::native
