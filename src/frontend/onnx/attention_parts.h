// attention_parts.h: the parts that attention of ONNX and of com.microsoft is made of. All sizes may be symbolic.
//
// Letters in shapes: B batches, H heads of queries, K heads of keys and values, which divides H, S queries, T keys, D
// features of a head.
#pragma once

#include "frontend/onnx/builders.h"

namespace collage {

/// [B, S, heads * D] → [B, heads, S, D]. Throws kInput where the heads do not divide the features; a run fails where
/// only it knows.
Expr SplitHeads(NodeContext& node, const Expr& x, int64_t heads);
/// [B, heads, S, D] → [B, S, heads * D].
Expr MergeHeads(NodeContext& node, const Expr& x);

/// 0, 1, … count - 1 as int64, along `axis` of a tensor of rank `rank`.
Expr Positions(NodeContext& node, const SymbolicSize& count, size_t axis, size_t rank = 4);
/// 0 where `condition` holds, `masked` elsewhere.
Expr MaskBias(NodeContext& node, const Expr& condition, DataType dtype, double masked);
/// The sum of both; either may be null.
Expr SumOf(NodeContext& node, const Expr& a, const Expr& b);
/// A tensor [B] of integers as int64 [B, 1, 1, 1].
Expr PerBatch(NodeContext& node, const Expr& integers);

/// `x` by the root of `features`.
Expr ByRootOf(NodeContext& node, const Expr& x, const SymbolicSize& features);
/// Products of queries [B, H, S, D] and keys [B, K, T, D]: [B, H, S, T]. Queries of the heads that share a key are the
/// rows of one product, so that keys are not repeated. Throws kInput where K does not divide H.
Expr AttentionScores(NodeContext& node, const Expr& queries, const Expr& keys);
/// Sums of values [B, K, T, D] with weights [B, H, S, T]: [B, H, S, D].
Expr AttentionResult(NodeContext& node, const Expr& weights, const Expr& values);
/// softmax over the last axis of `scores`, to which `bias` was added; null for none. Rows whose bias is minus infinity
/// everywhere are 0, not undefined.
Expr MaskedSoftmax(NodeContext& node, const Expr& scores, const Expr& bias);

/// Turns pairs of the features of `x` [B, H, S, D], those of the first `2 * half` that follow each other if
/// `interleaved`, else i and i + half, by angles with these cosines and sines [B or 1, 1, S, half].
Expr Rotate(NodeContext& node, const Expr& x, const Expr& cosines, const Expr& sines, const SymbolicSize& half,
            bool interleaved);

}  // namespace collage
