// device_math.h: elementary functions that GPUs have no instructions for.
#pragma once

#include <string>

#include "llvm/ADT/StringRef.h"

namespace llvm {
class Module;
}

namespace collage::native {

/// Whether `name` is a function of C's library that DefineMath knows: "erf", "expf".
bool IsMathFunction(llvm::StringRef name);

/// Has `module` call NVIDIA's libdevice for elementary functions, and adds what it calls. `file` is the library's.
/// Throws kUnavailable where one is called and the library is not there.
void DefineMath(llvm::Module& module, const std::string& file);

}  // namespace collage::native
