// executable_format.h: the format of executables, for all who read such files.
#pragma once

#include "runtime/plan/piece_file.h"

namespace collage {

inline constexpr PieceFormat kExecutableFormat{
    .magic = 0x45474c43,  // "CLGE"
    .version = 2,
    .index = "plan",
    .other_file = "not a Collage executable",
    .damaged = "the executable is damaged",
    .truncated = "the executable is truncated",
    .other_version = "the executable has format {}, this Collage reads {}",
    .remedy = "compile the model again",
};

/// The name, in the index of an executable or a program, of the place of its explanation, which no run reads.
inline constexpr const char* kExplanationPiece = "explanation";

}  // namespace collage
