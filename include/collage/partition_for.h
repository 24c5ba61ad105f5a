// partition_for.h: partitioning for one toolchain without search or measurement, as before RFC 0.81 (its
// partition_for_NAME and optimize_for_NAME): greedy, the first pattern of the table that matches.
#pragma once

#include <string>
#include <vector>

#include "collage/ir/module.h"
#include "collage/target/toolchain.h"
#include "collage/transform/pass_context.h"
#include "collage/transform/passes.h"

namespace collage {

/// The passes that `toolchain` wants undone: those that its preamble names with a '-' before them,
/// "-SimplifyInference". Its patterns are then written for what the pass replaces.
///
/// Throws kInput when the preamble names a pass that there is not, or wants one undone that prepares no model.
std::vector<std::string> UndoneFor(const Toolchain& toolchain);

/// The module as a compilation prepares it for `toolchain`, in the form that its patterns are written for: PrepareGraph
/// and PrepareForPartitioning under `context` without what UndoneFor says, then `toolchain`'s preamble. Passes of a
/// preamble run at every level, unless `context` disables them; one that consists of passes that prepare every model
/// asks for nothing more.
///
/// Throws kInput as UndoneFor does.
IRModule OptimizeFor(const Toolchain& toolchain, IRModule module,
                     const PassContext& context = PassContext(kPreparationLevel));

/// The passes by which a module is partitioned for `toolchain` alone: MergeComposite, AnnotateTarget, PartitionGraph,
/// and MergeCompilerRegions before the last for toolchains that take more than one match at a time.
std::vector<std::string> PartitionPasses(const Toolchain& toolchain);

/// PartitionPasses, as far as `context` enables them, by the toolchain's patterns: each region of `module` that the
/// toolchain takes becomes a global function with attribute Compiler. `toolchain` must be registered.
IRModule PartitionPrepared(const Toolchain& toolchain, IRModule module, const PassContext& context);

/// OptimizeFor, then PartitionPrepared.
IRModule PartitionFor(const Toolchain& toolchain, IRModule module,
                      const PassContext& context = PassContext(kPreparationLevel));

}  // namespace collage
