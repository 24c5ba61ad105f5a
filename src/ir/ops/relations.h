// relations.h: what type relations and reference evaluations of several families share.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collage/ir/op.h"

namespace collage {

/// Thrown inside a relation, caught by `Relation`: why the arguments do not fit.
struct RelationFailure {
  std::string text;
};

/// Wraps a function that throws RelationFailure into a TypeRelation.
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
/// floor or ceil of (size + padding - dilated kernel) / stride + 1.
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
