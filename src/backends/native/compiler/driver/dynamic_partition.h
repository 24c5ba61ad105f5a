// dynamic_partition.h: kernels for dynamic shapes.
#pragma once

#include "backends/native/description/options.h"
#include "collage/target/toolchain.h"

namespace collage::native {

/// Writes the loops of a function that HasDynamicSizes: at most one stage, and operators computed in place around it.
/// The kernel has one more input, behind the others: the values of FindDynamicSizes' variables, as int64. Throws
/// kUnsupported for functions that it has no loops for.
LoweredPartition LowerDynamicPartition(const PartitionRequest& request, const NativeOptions& options);

}  // namespace collage::native
