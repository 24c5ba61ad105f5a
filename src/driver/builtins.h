// builtins.h: the toolchains and passes that every process of the compiler knows.
#pragma once

namespace collage {

/// Registers the toolchains of this build and the pass CollagePartition, once in a process.
void AddBuiltins();

}  // namespace collage
