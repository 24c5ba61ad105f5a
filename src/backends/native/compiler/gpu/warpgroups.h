// warpgroups.h: instructions of four warps together (wgmma), which GPUs of architecture sm_90a have.
#pragma once

#include <optional>
#include <string_view>

#include "backends/cuda_driver/emulation.h"

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace collage::native {

/// A function of contraction/tensor_functions.h for four warps. The code of one thread calls it by the same name: its
/// sums, its words of rows, and the address of the columns in shared memory; it returns the sums.
struct GroupFunction {
  cuda_driver::EmulatedProduct product;
  unsigned columns = 0;
  unsigned sums = 0;   ///< a thread's
  unsigned words = 0;  ///< a thread's

  /// The words of a row that are multiplied.
  unsigned depth() const { return words * 2; }
};

/// Whether `name` is that of such a function.
bool IsGroupFunction(std::string_view name);
/// The function that code calls; nothing for others.
std::optional<GroupFunction> GroupFunctionOf(const llvm::Function& function);

/// Gives such functions, as far as code calls them, the instructions of the GPU.
void DefineGroupFunctions(llvm::Module& module);

/// The function void(): what a thread has written to shared memory is there for instructions of four warps.
inline constexpr const char* kProxyFence = "collage_proxy_fence";

}  // namespace collage::native
