// embedded_file.h: an executable behind the end of a program, which finds it there.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "collage/runtime/executable.h"

namespace collage {

/// Returns `program` with `executable` behind it: aligned, then a trailer that says where it begins.
std::string WithEmbedded(std::string program, std::span<const std::byte> executable);

/// The executable that lies behind `file`, which stays mapped while it is in use; nothing if there is none. Throws as
/// Executable::Load does.
std::optional<Executable> LoadEmbedded(const std::filesystem::path& file);

}  // namespace collage
