// collage_partition.h: RFC 0.81's CollagePartition as a pass: its four phases, and nothing before or behind them.
#pragma once

#include "collage/ir/module.h"
#include "collage/transform/pass_context.h"

namespace collage {

/// Covers @main of a typed module, or each static graph of a program, by partitions of the targets' toolchains that the
/// search finds best by the estimator's costs. Config keys "relay.collage.…" give targets, estimator, threads, database
/// and budget. The module is taken as it is: preparation passes are the caller's. Throws kInput for a target that
/// cannot be used, kUnsupported where no cover exists.
IRModule CollagePartition(IRModule module, const PassContext& context);

}  // namespace collage
