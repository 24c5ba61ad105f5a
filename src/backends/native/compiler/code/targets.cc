// targets.cc: LLVM's functions that register a target, by weak references: the module for bundles is linked with code
// for some of these only (src/backends/native/CMakeLists.txt).
#include "backends/native/compiler/code/targets.h"

#include <mutex>

#define FOR_EACH_TARGET(function) function(X86) function(AArch64) function(NVPTX)

#define DECLARE(target)                                            \
  __attribute__((weak)) void LLVMInitialize##target##TargetInfo(); \
  __attribute__((weak)) void LLVMInitialize##target##Target();     \
  __attribute__((weak)) void LLVMInitialize##target##TargetMC();   \
  __attribute__((weak)) void LLVMInitialize##target##AsmPrinter();

extern "C" {
FOR_EACH_TARGET(DECLARE)
}

#define INITIALISE(target)                             \
  if (LLVMInitialize##target##TargetInfo != nullptr) { \
    LLVMInitialize##target##TargetInfo();              \
    LLVMInitialize##target##Target();                  \
    LLVMInitialize##target##TargetMC();                \
    LLVMInitialize##target##AsmPrinter();              \
  }

namespace collage::native {

void InitialiseTargets() {
  static std::once_flag once;
  std::call_once(once, [] { FOR_EACH_TARGET(INITIALISE) });
}

}  // namespace collage::native
