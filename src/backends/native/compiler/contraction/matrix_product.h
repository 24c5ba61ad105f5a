// matrix_product.h: nn.dense, nn.matmul and nn.batch_matmul, and matrices as the factors of other products.
#pragma once

#include <functional>

#include "backends/native/compiler/contraction/contraction.h"

namespace collage::native {

/// A buffer of two or three dimensions as [batch, first, second], where `swap` exchanges the last two. One matrix is
/// read again for each of the batch.
Buffer AsMatrices(Buffer buffer, bool swap, int64_t batch);

/// Gives `form`, whose dtype, outer and inner sizes and channels are known, the matrices `right`: [K, N], or [N, K]
/// when `transpose`, for each of its outer positions or one for all. Rows are read as they lie where they are
/// contiguous; else they are packed by a stage, or as a constant. `is_read` as PackedWeights has it.
void SetRightMatrices(PartitionState& state, Contraction& form, const Expr& right, bool transpose,
                      const std::function<I1(const I64& group, const I64& panel)>& is_read = {});

void EmitMatrixProduct(PartitionState& state, const CallNode& call, const StageOutput& output);
/// As EmitMatrixProduct, for dynamic shapes.
void EmitDynamicProduct(PartitionState& state, const CallNode& call, const StageOutput& output);

}  // namespace collage::native
