// bf16_dot.h: products of float32 values whose factors are rounded to bfloat16, by the instruction that
// multiplies pairs of them and adds both products to a float32 sum.
//
// Two neighbours of the innermost dimension that is summed over lie in four bytes: memory of such pairs is described as
// float32 with half as many elements in that dimension, and loops over it are those of float32. Only what is done with
// an element of a and one of b is another instruction.
#pragma once

#include "backends/native/compiler/contraction/contraction.h"

namespace collage::native {

/// Whether a product is computed in pairs by some algorithm, where that is asked for (bf16_eligibility.h).
bool IsNarrowed(const PartitionState& state, const CallNode& call);

/// Whether it is computed so by every algorithm: no pair is broken.
bool IsInPairs(const PartitionState& state, const CallNode& call);

/// A tensor of bfloat16, whose elements lie next to each other along `axis`, as pairs.
Buffer AsPairs(Buffer buffer, size_t axis);

/// Constants [..., rows, width] of float32, of an even number of rows, rounded: pairs [..., rows / 2, width].
Tensor InPairs(const Tensor& packed);

/// As PackWeights, rounded to bfloat16 and in pairs: [groups, panels, half the product of inner, width].
Buffer PackPairs(PartitionState& state, const Expr& weight, const PackedWeights& packing);

/// Writes a stage that puts rows 2 i and 2 i + 1 of `packed` [groups, panels, rows, width] side by side, element by
/// element: pairs of bfloat16 of float32 values, pairs of int16 of integers, described as float32 or int32.
Buffer InterleaveRows(PartitionState& state, const Buffer& packed);

/// sum + the products of the pairs in `a` and `b`; all are vectors of the type of `sum`.
Vector AddPairProducts(Emitter& e, const Vector& a, const Vector& b, const Vector& sum);

}  // namespace collage::native
