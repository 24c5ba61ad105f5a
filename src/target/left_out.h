// left_out.h: toolchains that a bundle was made without.
#pragma once

#include <memory>

#include "collage/target/toolchain.h"

namespace collage {

/// The file beside Collage's libraries that every bundle has: the names of the toolchains that it was made without, one
/// a line.
inline constexpr const char* kLeftOutFile = "collage_bundle_left_out.txt";

/// Returns `toolchain`; in a bundle without it, one that answers the same but says, where it is not available, that it
/// was left out and how to get it.
std::unique_ptr<Toolchain> UnlessLeftOut(std::unique_ptr<Toolchain> toolchain);

}  // namespace collage
