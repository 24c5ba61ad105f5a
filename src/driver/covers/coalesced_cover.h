// coalesced_cover.h: covers whose neighbouring partitions became one (RFC 0.7's MaxCoalesce, after the search).
#pragma once

#include <functional>
#include <vector>

#include "driver/covers/candidates.h"
#include "driver/covers/partitioner.h"
#include "partition/rewrite.h"

namespace collage {

/// `chosen`, which are of `candidates`, with those of one spec that touch merged where `merges` says so and all can
/// still be run one after the other. A merged partition is estimated to take as long as its parts, and has, of the
/// layouts that its toolchain offers, those that differ from its parts' at the fewest values. Its parts stay as they
/// are where the toolchain does not take it whole.
OwnedPartitions Coalesced(const Candidates& candidates, const std::vector<ChosenPartition>& chosen,
                          const std::function<bool(const PartitionSpec& spec)>& merges);

/// The partitions of `cover` with neighbours merged where the library behind them plans within its partitions
/// (FusionStyle::kArbitrary): larger ones are what it is best at.
OwnedPartitions CoalescedForLibraries(const Partitioner& partitioner, const Cover& cover);

}  // namespace collage
