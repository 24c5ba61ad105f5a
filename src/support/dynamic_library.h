// dynamic_library.h: opens Collage's own modules (toolchain compilers, kernel loaders) when they are first needed.
#pragma once

#include <string>

namespace collage {

/// The address of C symbol `symbol` in module `file`, which is looked for in $COLLAGE_MODULE_PATH and then beside the
/// library that holds this function. The module stays open. Throws kUnavailable with the system's reason.
void* FindModuleSymbol(const std::string& file, const std::string& symbol);

}  // namespace collage
