// uniform_run.h: numbers of a generator, many at a time.
#pragma once

#include <cstdint>

#include "runtime/split_mix.h"

namespace collage {

/// Writes what `count` calls of `SplitMix::Uniform` return, and leaves `generator` as these would.
void FillUniform(SplitMix& generator, double* numbers, int64_t count);

}  // namespace collage
