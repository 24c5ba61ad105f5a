// partition_for.h: partitioning for one toolchain without search or measurement, as before RFC 0.81 (its
// partition_for_NAME and optimize_for_NAME): greedy, the first pattern of the table that matches.
#pragma once

#include <string>
#include <vector>

#include "collage/ir/module.h"
#include "collage/target/toolchain.h"
#include "collage/transform/pass_context.h"

namespace collage {

/// The passes of `toolchain`'s preamble applied to a module. Throws kInput when it names one that there is not.
IRModule OptimizeFor(const Toolchain& toolchain, IRModule module, const PassContext& context = {});

/// The passes by which a module is partitioned for `toolchain` alone: MergeComposite, AnnotateTarget, PartitionGraph,
/// and MergeCompilerRegions before the last for toolchains that take more than one match at a time.
std::vector<std::string> PartitionPasses(const Toolchain& toolchain);

/// OptimizeFor; then PartitionPasses by the toolchain's patterns: each region that the toolchain takes becomes a global
/// function with attribute Compiler. `toolchain` must be registered.
IRModule PartitionFor(const Toolchain& toolchain, IRModule module, const PassContext& context = {});

}  // namespace collage
