// anchors.h: the operation of a match that others follow.
#pragma once

#include "backends/cutlass/describe.h"
#include "backends/fused_matches/match_reader.h"

namespace collage::cutlass {

/// Adds a constant to the kernel's.
Place AddConstant(Description& description, Tensor tensor);

/// Elements that can be read at a time of rows of `elements`: the most that divide it, up to 16 bytes.
int AlignmentOf(int element_bytes, int64_t elements);

// Each reads `call` into instance, sizes and kernel. Throws a Refusal.

void ReadProduct(const matches::MatchReader& reader, const CallNode& call, Description& description);
void ReadConvolution(const matches::MatchReader& reader, const CallNode& call, Description& description);

}  // namespace collage::cutlass
