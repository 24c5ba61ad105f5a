// write_executable.h: the winner of a play-off goes to its place on the disk.
#pragma once

#include <cstdint>
#include <filesystem>

#include "driver/play_off/play_off.h"

namespace collage {

/// Writes `executable` to `output`, whole or not at all, and returns its size in bytes. Throws kResource when it cannot
/// be written.
int64_t WriteExecutable(BuiltExecutable& executable, const std::filesystem::path& output);

}  // namespace collage
