// greedy_cover.h: covers that take the largest candidates first, as a toolchain's own partitioning would.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "driver/covers/partitioner.h"

namespace collage {

struct GreedyOptions {
  const Toolchain* fall_back = nullptr;  ///< for nodes that the toolchain cannot take; null: none
  /// Whether a candidate may be taken; empty: each may.
  std::function<bool(const CandidatePartition& candidate)> may_take = {};
  /// The nodes to be covered; none: all that must be (MustBeCovered).
  std::optional<IndexSet> nodes = {};
};

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
std::optional<Cover> GreedyCover(Partitioner& partitioner, const Toolchain& toolchain, const GreedyOptions& options,
                                 std::vector<int>* open);

/// Returns the cover that pass FuseOps gives for functions of at most `max_calls` operators
/// (`relay.FuseOps.max_depth`): the greedy cover by those candidates of `toolchain` whose operators are all in one of
/// its functions. A function that the toolchain cannot compute whole is covered by smaller candidates within it;
/// nothing if that cannot be.
std::optional<Cover> FuseOpsCover(Partitioner& partitioner, const Toolchain& toolchain, const Toolchain* fall_back,
                                  int64_t max_calls);

}  // namespace collage
