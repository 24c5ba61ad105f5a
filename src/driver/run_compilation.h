// run_compilation.h: the main job. Explanations are added behind it (collage/compile.h declares what users call).
#pragma once

#include <filesystem>
#include <string>

#include "collage/compile.h"

namespace collage {

/// Compiles a model as CompileModel, or a module as CompileModule, does; `options.on_written` adds the explanation.
CompileReport RunCompilation(const std::filesystem::path& model, const CompileOptions& options);
CompileReport RunCompilation(const IRModule& module, const std::string& name, const CompileOptions& options);

/// Compiles one region of a model that is a program, by its number in the program's report, into a plan of its own
/// (driver/programs/compile_program.h). Throws kInput where there is no such region.
CompileReport RunRegion(const std::filesystem::path& model, size_t region, const CompileOptions& options);

}  // namespace collage
