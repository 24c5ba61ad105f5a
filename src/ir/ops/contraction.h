// contraction.h: what convolutions and matrix products share.
#pragma once

#include <cstdint>
#include <span>

#include "collage/ir/op.h"

namespace collage {

/// Columns of a panel, and of its product.
inline constexpr int64_t kPanelColumns = 16;

/// `panel` [K, kPanelColumns], of which `columns` count, from the left by `a` [M, K]. Row i of the product goes to
/// `output` from element `offset` + i `row_stride` on.
void MultiplyPanel(const float* a, int64_t m, int64_t k, const float* panel, int64_t columns, const Tensor& output,
                   int64_t offset, int64_t row_stride);

/// Writes `sums` to the elements of `output` from `offset` on.
void Store(std::span<const double> sums, const Tensor& output, int64_t offset);

/// Returns the attribute out_dtype; `data` if it is empty.
DataType OutDType(const OpCall& call, DataType data);
/// Fails unless the first two arguments have one dtype.
void CheckSameDType(const OpCall& call);

}  // namespace collage
