// dynamic_sizes.h: kernels of functions whose types leave sizes open.
#pragma once

#include "backends/native/description/options.h"
#include "collage/target/toolchain.h"

namespace collage::native {

/// Writes the loops of a function that HasDynamicSizes: operators computed in place, around one that needs loops of its
/// own at most. The kernel has one more input, behind the others: the values of FindDynamicSizes' variables, as int64.
/// Throws kUnsupported for what it has no loops for.
LoweredPartition LowerDynamicPartition(const PartitionRequest& request, const NativeOptions& options);

}  // namespace collage::native
