// pack_models.h: what packing models shares with compiling them.
#pragma once

#include <filesystem>
#include <vector>

#include "collage/compile.h"

namespace collage {

class PackBuilder;

/// Adds the candidates of the model at `model`, of a program those of its static graphs, to `pack`.
CompileReport PackModel(const std::filesystem::path& model, const CompileOptions& options, PackBuilder& pack);

/// ProbeToolchains() for a compilation by `options`: where nothing is run here, a toolchain is available if it
/// compiles.
std::vector<ToolchainReport> ProbeFor(const CompileOptions& options);

}  // namespace collage
