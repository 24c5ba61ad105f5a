// greedy_cover.h: the cover that a toolchain's own partitioning would give.
#pragma once

#include <optional>
#include <vector>

#include "driver/covers/partitioner.h"

namespace collage {

/// Returns the cover that a toolchain's own partitioning would give (`partition_for_NAME`), in the layouts that the
/// toolchain prefers. Its candidates are taken in this order:
///
/// 1. The largest first. Candidates that would tear an operator from the registers of its producer come after the
///    others: those that begin with an element-wise operator behind an anchor, or with rounding to narrower integers,
///    which another of its candidates computes together with the producer.
/// 2. The fall-back toolchain's candidates, for nodes that it cannot take.
/// 3. Matches of rows that are not greedy (PatternTableEntry::is_greedy).
///
/// Asks `partitioner` for the costs of the candidates taken, and begins again without those that turn out not to work.
/// Nothing if nodes are left over; they are added to `open`, if that is given.
std::optional<Cover> GreedyCover(Partitioner& partitioner, const Toolchain& toolchain, const Toolchain* fall_back,
                                 std::vector<int>* open);

}  // namespace collage
