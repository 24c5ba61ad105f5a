// heats.h: play-offs among entrants that cannot all be in one process.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "driver/play_off/play_off.h"

namespace collage {

/// Entrants, by index, in fields that can each be timed in one process: in as few as come of putting each into the
/// first that it fits. `toolchains` are those of each entrant, which go together.
std::vector<std::vector<size_t>> Heats(std::span<const std::vector<const Toolchain*>> toolchains);

/// A play-off of some of the entrants, as RunPlayOff.
using RunHeat = std::function<PlayOffResult(const std::vector<Entrant>& field, const PlayOffOptions& options)>;

/// One play-off for each of `Heats`; the fastest of their winners, by its median, is the winner and is written. Throws
/// kUnsupported when no heat has a winner.
PlayOffResult RunHeats(const std::vector<Entrant>& entrants, const PlayOffOptions& options, const RunHeat& run);

}  // namespace collage
