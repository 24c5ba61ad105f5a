// crafted_files.h: files of executables and programs with something changed, checksums made to fit again, as somebody
// would make who wants to do harm, or without that, as a failing disk makes them.
#pragma once

#include <string>

#include "collage/ir/attrs.h"
#include "property/random_source.h"

namespace collage {

/// One to four fields of the plan of the executable `bytes` changed, removed, copied or given another type, or bytes of
/// its pieces or its header; all checksums of pieces, plan and header fit, those of code and what it is for do not.
std::string CraftExecutable(std::string bytes, RandomSource& random);

/// Changes the bytecode of a program: numbers, texts and stretches of it, or a kernel in it that is an executable.
std::string CraftProgram(std::string bytes, RandomSource& random);

/// `attrs` with one or two of them changed.
Attrs CraftAttrs(Attrs attrs, RandomSource& random);

/// `bytes` with one to three bits flipped, and nothing else.
std::string FlipBits(std::string bytes, RandomSource& random);

}  // namespace collage
