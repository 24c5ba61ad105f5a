// pair_dot.h: products of factors of 16 bits, bfloat16 or float16, by instructions that multiply pairs of them and add
// both products to a float32 sum.
//
// Two neighbours of the innermost dimension that is summed over lie in four bytes: memory of such pairs is described as
// float32 with half as many elements in that dimension, and loops over it are those of float32. Only what is done with
// an element of a and one of b is another instruction.
#pragma once

#include "backends/native/compiler/contraction/contraction.h"

namespace collage::native {

/// Whether a product is computed in pairs by some algorithm (narrowing.h).
bool IsNarrowed(const PartitionState& state, const CallNode& call);

/// The pairs that it is computed of by every algorithm; kOne if there is none, or some pair would be broken.
DotKind PairsOf(const PartitionState& state, const CallNode& call);

/// The dtype of each of a pair.
constexpr DataType HalfOf(DotKind kind) { return kind == DotKind::kFloat16 ? kFloat16 : kBFloat16; }

/// A tensor of bfloat16 or float16, whose elements lie next to each other along `axis`, as pairs.
Buffer AsPairs(Buffer buffer, size_t axis);

/// Constants [..., rows, width] of float32, of an even number of rows, rounded: pairs [..., rows / 2, width].
Tensor InPairs(const Tensor& packed, DotKind kind);

/// As PackWeights, rounded and in pairs: [groups, panels, half the product of inner, width].
Buffer PackPairs(PartitionState& state, const Expr& weight, const PackedWeights& packing, DotKind kind);

/// Writes a stage that puts rows 2 i and 2 i + 1 of `packed` [groups, panels, rows, width] side by side, element by
/// element, as elements of `dtype`: pairs of bfloat16 or float16 of float32 values, pairs of int16 of integers,
/// described as float32 or int32.
Buffer InterleaveRows(PartitionState& state, const Buffer& packed, DataType dtype);

/// sum + the products of the pairs in `a` and `b`; all are vectors of the type of `sum`. `is_avx512`: by that
/// instruction for bfloat16.
Vector AddPairProducts(Emitter& e, DotKind kind, bool is_avx512, const Vector& a, const Vector& b, const Vector& sum);

}  // namespace collage::native
