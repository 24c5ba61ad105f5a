// write_executable.h: an executable goes to its place on the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "collage/support/result.h"

namespace collage {

/// Writes an executable to `output`, whole or not at all, and returns its size in bytes: `save` writes it into a file
/// beside, to which `on_written`, if there is one, may add something, before it takes the name. Throws kResource when
/// it cannot be written.
int64_t WriteExecutable(const std::filesystem::path& output,
                        const std::function<Result<void>(const std::filesystem::path& file)>& save,
                        const std::function<void(const std::filesystem::path& file)>& on_written);

}  // namespace collage
