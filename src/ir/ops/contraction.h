// contraction.h: what convolutions and matrix products share.
#pragma once

#include <cstdint>
#include <span>

#include "collage/ir/op.h"

namespace collage {

/// Writes `sums` to the elements of `output` from `offset` on.
void Store(std::span<const double> sums, const Tensor& output, int64_t offset);

/// What attribute out_dtype asks for; `data` when it is empty.
DataType OutDType(const OpCall& call, DataType data);
/// Fails unless the first two arguments have one dtype.
void CheckSameDType(const OpCall& call);

}  // namespace collage
