// toolchains.h: looking up toolchains by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collage/target/toolchain.h"
#include "collage/transform/pass_context.h"

namespace collage {

/// The toolchain that option `key` names. Throws kInput when none is named or there is none of that name.
const Toolchain& FindToolchain(const PassContext& context, const char* key);
/// As FindToolchain, several by comma.
std::vector<const Toolchain*> FindToolchains(const PassContext& context, const char* key);

}  // namespace collage
