// ranking.h: ranks contenders that were timed in turn.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collage/compile.h"
#include "cost/measure/timing.h"

namespace collage {

/// Contenders within this fraction of the best are treated as ties: the same cover, built again, differs by as much.
constexpr double kAsGood = 0.005;
/// A play-off has a final: of contenders that first rounds put this close together, noise alone may have chosen.
constexpr double kFinalMargin = 1.03;
constexpr size_t kMaxFinalists = 4;

/// Returns the median over rounds of contender `index`'s time divided by the mean of its round. A machine that is
/// slower for some rounds is slower for all who run in them, so this tells contenders apart where their medians cannot.
/// `rounds` has as many samples of each contender, in the order of the rounds.
double RelativeToRounds(std::span<const Samples> rounds, size_t index);

/// Whether more rounds would hardly change who wins, or matter: for each contender but the fastest, the 95 % interval
/// of how much slower it is lies on one side of `kAsGood`, or is at most twice as wide. False if there are too few
/// rounds for an interval.
bool RoundsSuffice(std::span<const Samples> rounds);

/// Whether it is clear who does not run in the final: the 95 % interval of how many times as long a contender takes as
/// the fastest is above `kFinalMargin`, or its median is not. False if there are too few rounds for an interval.
bool FinalistsAreClear(std::span<const Samples> rounds);

/// Returns the indices of the contenders that are not certainly slower than the fastest by `kFinalMargin`, the fastest
/// first, `kMaxFinalists` at most.
std::vector<size_t> Finalists(std::span<const Samples> rounds);

/// Returns the seconds that a contender takes when `other` takes its p50, by the rounds in which both ran: their p50s
/// may come from different rounds, in which the machine ran at different speeds.
double SecondsBeside(const Contender& contender, const Contender& other);

/// Returns the indices of the contenders without a failure, the best first; finalists come before the others. The first
/// is, among the ties with the fastest, the contender of fewest toolchains, then of the lowest sum of their priorities.
std::vector<size_t> Ranked(std::span<const Contender> contenders);

}  // namespace collage
