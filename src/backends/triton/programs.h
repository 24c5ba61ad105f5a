// programs.h: the operands of products and of attention.
#pragma once

#include "backends/fused_matches/match_reader.h"
#include "backends/triton/describe.h"

namespace collage::triton {

/// Whether `call` multiplies matrices.
bool IsProduct(const CallNode& call);

/// Reads `call` into parameters, constants and sizes of the instance. Throws a Refusal.
void ReadProduct(const matches::MatchReader& reader, const Call& call, Description& description);

/// Reads `second`(softmax(… `first` …), values). Throws a Refusal where the calls are no attention.
void DescribeAttention(const matches::MatchReader& reader, const Call& first, const Call& softmax, const Call& second,
                       Description& description);

}  // namespace collage::triton
