// partition_for_cover.h: what the passes of `partition_for_NAME` make of a model, as a choice of partitions.
#pragma once

#include "collage/support/result.h"
#include "collage/transform/pass_context.h"
#include "driver/covers/partitioner.h"
#include "partition/rewrite.h"

namespace collage {

/// Returns the partitions that PartitionPrepared makes of @main of `module`, which `partitioner` covers, for
/// `toolchain`, which has a spec there. A partition has the layouts that the toolchain prefers, and cost and schedule
/// of a candidate that computes the same, where there is one. Candidates of `fall_back` take the rest as in
/// GreedyCover.
///
/// Fails where the toolchain does not take a partition as it is, or cannot compute it, where a plan of devices has
/// other devices for its nodes, where operators are left over, and where partitions need each other in a circle.
Result<OwnedPartitions> PartitionForCover(Partitioner& partitioner, const Toolchain& toolchain,
                                          const Toolchain* fall_back, const IRModule& module,
                                          const PassContext& context);

}  // namespace collage
