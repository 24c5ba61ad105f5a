// greedy_cover.h: the cover that a toolchain's own partitioning would give.
#pragma once

#include <optional>
#include <vector>

#include "driver/covers/partitioner.h"

namespace collage {

/// The cover that a toolchain's own partitioning would give (`partition_for_NAME`): its largest candidates first,
/// but behind the others those that begin with what one of its candidates computes in the registers of what is
/// before: element-wise behind an anchor, or rounding to narrower integers; what it cannot take by the fall-back
/// toolchain, layouts as the toolchain likes them best. Matches of rows that are not greedy
/// (PatternTableEntry::is_greedy) come last: for what nobody else takes. Asks `partitioner` for the costs of what it
/// takes, and passes over what turns out not to work. Nothing when nodes stay open, which are then added to `open` if
/// it is given.
std::optional<Cover> GreedyCover(Partitioner& partitioner, const Toolchain& toolchain, const Toolchain* fall_back,
                                 std::vector<int>* open);

}  // namespace collage
