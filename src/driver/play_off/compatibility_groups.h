// compatibility_groups.h: play-offs among contenders that cannot all be in one process.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "driver/play_off/play_off.h"

namespace collage {

/// Contenders, by index, in groups that can each be timed in one process (first fit). `toolchains` are those of each
/// contender, which go together.
std::vector<std::vector<size_t>> CompatibilityGroups(std::span<const std::vector<const Toolchain*>> toolchains);

/// A play-off of some of the contenders, as RunPlayOff.
using RunGroup = std::function<PlayOffResult(const std::vector<ContenderModule>& group)>;

/// One play-off for each of the compatibility groups; the fastest of their winners, by its median, is the winner.
/// Throws kUnsupported when no group has a winner.
PlayOffResult RunInGroups(const std::vector<ContenderModule>& modules, const RunGroup& run);

}  // namespace collage
