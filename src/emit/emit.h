// emit.h: a model as something that a linker or a shell takes, with nothing of Collage to install.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace collage {

enum class EmitKind : uint8_t {
  kProgram,  ///< a program that runs the model on arrays of NumPy
  kShared,   ///< a shared library, with the runtime inside
  kStatic,   ///< a static library, with the runtime inside
  kObject,   ///< an object file, to be linked with the runtime
};

/// The kinds by their names, "program", "shared", "static" and "object", in this order.
const std::vector<std::string>& EmitKinds();
/// Throws kInput for another name.
EmitKind EmitKindOf(const std::string& name);

struct Emitted {
  std::vector<std::filesystem::path> files;  ///< the one asked for, then the header, if there is one
  int64_t bytes = 0;                         ///< size of all files
  std::string name;                          ///< by which C calls the model; empty of programs
};

/// Writes the model in `executable`, a `.clg`, to `output` as `kind` says, and for all but programs a header of the
/// same name with ".h". Needs native kernels only: throws kUnsupported, naming the others. Throws kUnavailable where
/// this build lacks the parts, or there is no linker, and kResource where nothing can be written.
Emitted Emit(const std::filesystem::path& executable, EmitKind kind, const std::filesystem::path& output);

}  // namespace collage
