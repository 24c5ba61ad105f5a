// lane_constants.h: elements of constant vectors, one for each thread.
#pragma once

#include "llvm/IR/IRBuilder.h"

namespace collage::native {

/// Writes code for element `lane`, an i32 that may differ between threads, of `vector`. Null where an element is no
/// simple constant.
llvm::Value* ElementOfLane(llvm::IRBuilder<>& builder, llvm::Constant& vector, llvm::Value* lane);

}  // namespace collage::native
