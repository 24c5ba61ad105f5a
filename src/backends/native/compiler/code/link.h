// link.h: from an object file to a shared object, by a program that links.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backends/native/compiler/code/llvm_steps.h"
#include "llvm/ADT/SmallVector.h"

namespace collage::native {

/// A program that links, and the folder of its libraries; empty: where the system looks.
struct Linker {
  std::string program;
  std::string library_folder;
};

/// The linker for objects of that processor.
Linker LinkerFor(const Cpu& cpu);

/// Runs a program and waits for it. Its libraries are looked for in `library_folder` before all others, unless that is
/// empty. Returns its exit status; throws kUnavailable where it cannot be run.
int RunProgram(const std::vector<std::string>& words, const std::string& library_folder = "");

/// A shared object. Throws kUnavailable without a linker, kInternal where it fails.
std::vector<std::byte> Link(const llvm::SmallVector<char>& object, const Cpu& cpu);

}  // namespace collage::native
