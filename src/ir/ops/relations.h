// relations.h: what type relations and reference evaluations of several families share.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collage/ir/op.h"

namespace collage {

/// Thrown inside a relation, caught by `Relation`: why the arguments do not fit.
struct RelationFailure {
  std::string text;
};

/// Wraps a function that throws RelationFailure into a TypeRelation. Arguments and results of negative sizes, or of
/// more than 2^62 bytes, are refused here: what is computed of the sizes of others does not overflow.
TypeRelation Relation(std::function<Type(const OpCall&)> function);

/// Argument `index` as a tensor; fails when it is another kind of type.
const TensorTypeNode& TensorArg(const OpCall& call, size_t index);
/// As TensorArg, of rank `rank`.
const TensorTypeNode& TensorArg(const OpCall& call, size_t index, int rank);
/// `axis` counted from the front; fails when it is out of [-rank, rank).
int NormalAxis(int64_t axis, int rank);
/// NumPy broadcasting, with `Any`; fails naming both shapes.
std::vector<Dim> BroadcastShapes(const std::vector<Dim>& a, const std::vector<Dim>& b);
/// The axes that a reduction reduces, from attributes axis (None: all), exclude.
std::vector<int> ReduceAxes(const Attrs& attrs, int rank);
/// Products and sums of sizes, unknown where one is; they fail where 63 bits do not hold the result.
Dim Times(Dim a, Dim b);
Dim Plus(Dim a, Dim b);
/// Fails unless all `values` are from `least` to 2^31 - 1; `name` is the attribute that has them.
void CheckRange(const char* name, const std::vector<int64_t>& values, int64_t least);
/// Fails unless argument `index` has the dtype of the first.
void CheckDTypeOfFirst(const OpCall& call, size_t index);
/// Fails unless the second argument, indices along `axis` of the first, has its rank and is nowhere else larger.
void CheckWithin(const OpCall& call, int axis);
/// Whether `a` and `b` may be the same size.
inline bool MayEqual(Dim a, Dim b) { return a == b || a.is_any() || b.is_any(); }
/// floor or ceil of (size + padding - dilated kernel) / stride + 1. Fails where the window does not fit, and where
/// kernel, stride or dilation are not positive.
Dim WindowedDim(Dim size, int64_t kernel, int64_t stride, int64_t pad_before, int64_t pad_after, int64_t dilation,
                bool ceil_mode = false);
/// `values` with one entry per spatial dimension: one value is repeated.
std::vector<int64_t> PerDimension(std::vector<int64_t> values, int rank);
/// Begin and end padding per spatial dimension from Relay's padding attribute (1, rank or 2 * rank values).
struct Padding {
  std::vector<int64_t> before;
  std::vector<int64_t> after;
};
Padding SpatialPadding(const Attrs& attrs, int rank);
/// Steps [first, last) among `count` whose position, step * stride + shift, is within [0, size): the outputs of a
/// window for which a tap meets data, or the taps that do for an output.
std::pair<int64_t, int64_t> ValidRange(int64_t size, int64_t count, int64_t stride, int64_t shift);
/// How many elements a slice of a dimension of `length` has; nothing where the signs of its ends, which count from the
/// back below 0, are not known. `step` must not be 0.
std::optional<SymbolicSize> SlicedSize(const SymbolicSize& begin, const SymbolicSize& end, int64_t step,
                                       const SymbolicSize& length);
/// The new shape that reshape's special values ask for.
std::vector<Dim> ReshapedDims(const std::vector<Dim>& shape, const std::vector<int64_t>& newshape);

/// Row-major strides in elements.
std::vector<int64_t> Strides(const Shape& shape);
/// Strides with which a tensor of `shape` is read as if broadcast to `target`: 0 along broadcast dimensions.
std::vector<int64_t> BroadcastStrides(const Shape& shape, const Shape& target);
/// Calls `visit(index)` for every index of `shape` in row-major order.
void ForEachIndex(const Shape& shape, const std::function<void(const std::vector<int64_t>& index)>& visit);
/// Sum of index times stride.
int64_t Offset(const std::vector<int64_t>& index, const std::vector<int64_t>& strides);

/// Runs `body` for parts of [0, count) on the pool.
void InParallel(int64_t count, const std::function<void(int64_t begin, int64_t end)>& body);

/// Copies element `from` of `source` to element `to` of `target`, same dtype.
void CopyElement(const Tensor& source, int64_t from, const Tensor& target, int64_t to);

/// Fills `target`: its element at an index is that of `source` at the sum of index times `strides`, in elements.
void CopyStrided(const Tensor& source, const std::vector<int64_t>& strides, const Tensor& target);

/// A float32 tensor type, for examples.
Type F32(Shape shape);
Type I64(Shape shape);

}  // namespace collage
