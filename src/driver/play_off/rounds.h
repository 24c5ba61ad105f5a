// rounds.h: what can be told of contestants that were timed in turn.
#pragma once

#include <span>

#include "cost/measure/timing.h"

namespace collage {

/// What is slower than the best by no more than this share is as good: the same cover, built again, differs by as much.
constexpr double kAsGood = 0.005;

/// The median over rounds of contestant `index`'s time by the mean of its round. A machine that is slower for some
/// rounds is slower for all who run in them, so this tells contestants apart where their medians cannot. `rounds` has
/// as many samples of each contestant, in the order of the rounds.
double RelativeToRounds(std::span<const Samples> rounds, size_t index);

/// Whether more rounds would hardly change who wins: of each contestant but the fastest, the 95 % interval of how much
/// slower it is lies on one side of `kAsGood`. False where there are too few rounds for an interval.
bool AreToldApart(std::span<const Samples> rounds);

}  // namespace collage
