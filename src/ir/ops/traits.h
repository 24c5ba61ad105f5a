// traits.h: values that rows give to their traits (OpDef), shared by the families of operators.
#pragma once

#include "collage/ir/op.h"

namespace collage {

/// An element-wise operator, whose arguments broadcast.
void SetElementwise(OpDef& op);
/// An operator whose results are elements of its first argument, or of its fields.
void SetMovesElements(OpDef& op);
/// An operator on the samples of its first argument, [N, C, spatial…].
void SetSpatial(OpDef& op);

// ---- equal dimensions ----

/// The result has the shape of the first argument.
void SameShapeDims(const OpCall& call, const Type& result, DimEquations& equations);
/// As SameShapeDims; the second argument is a vector along attribute `axis`.
void PerChannelDims(const OpCall& call, const Type& result, DimEquations& equations);
/// By attribute `axes`; None: in reverse order.
void TransposedDims(const OpCall& call, const Type& result, DimEquations& equations);
/// Matrices [M, K] x [K, N], or their transposes, with or without a batch that broadcasts.
EqualDimsFn ProductDims(bool transpose_a, bool transpose_b);
/// As ProductDims; attributes transpose_a and transpose_b say which are transposed.
void MatmulDims(const OpCall& call, const Type& result, DimEquations& equations);
/// Windows that slide by one over as much more as they take keep the size of the data.
void ConvolutionDims(const OpCall& call, const Type& result, DimEquations& equations);
void PoolDims(const OpCall& call, const Type& result, DimEquations& equations);
/// Batch and channels stay.
void GlobalPoolDims(const OpCall& call, const Type& result, DimEquations& equations);
void TakeDims(const OpCall& call, const Type& result, DimEquations& equations);
/// Dimensions that attribute `axes` does not name stay.
void SliceDims(const OpCall& call, const Type& result, DimEquations& equations);
/// Dimensions but `axis` are those of each field of the argument, or of the result.
void JoinDims(const OpCall& call, const Type& result, DimEquations& equations);
void PartDims(const OpCall& call, const Type& result, DimEquations& equations);
/// Attributes axis, keepdims, exclude.
void ReduceDims(const OpCall& call, const Type& result, DimEquations& equations);

// ---- rows of batches ----

/// The first argument is a batch, and no other.
bool RowsOfFirst(const OpCall& call, const Type& result);
/// As RowsOfFirst; attribute `axis`, a number or several, does not name the first dimension.
bool RowsOffAxis(const OpCall& call, const Type& result);
/// Attribute `name` of one argument names dimensions, and the first is not among them.
KeepsRowsFn RowsUnlessFirstIn(const char* name);
bool RowsOfReduction(const OpCall& call, const Type& result);
bool RowsOfReshape(const OpCall& call, const Type& result);

// ---- indices ----

/// Argument `index` counts elements along attribute `axis` of the first.
IndexLimitFn IndicesAlongAxis(size_t index);
/// Argument 1 holds index tuples along its first dimension, into the first argument behind `batch_dims` dimensions.
std::optional<int64_t> IndexTuples(const OpCall& call, size_t argument);
/// Arguments from `first` on are sizes, counts or bounds of sizes.
IndexLimitFn SizesFrom(size_t first);
/// The size of dimension `dim`, counted from the back below 0, of argument `argument`; -1: not known.
int64_t KnownSize(const OpCall& call, size_t argument, int64_t dim);

}  // namespace collage
