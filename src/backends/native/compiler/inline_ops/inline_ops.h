// inline_ops.h: operators whose elements are computed wherever they are read. Rows of operator_rows.inc name these
// functions, or make one of what they do to single values.
#pragma once

#include <functional>

#include "backends/native/compiler/emit/expressions.h"

namespace collage::native::inline_ops {

using X = Expressions;
using M = VectorMath;
using V = const Value&;
using C = const CallNode&;
using I = const Indices&;

using Unary = std::function<Value(M& m, V x, C call)>;
using Binary = std::function<Value(M& m, V a, V b)>;

/// The value of an integer expression as a coordinate: one for all lanes when it is read at one place.
Index IndexAt(X& x, const Expr& expr, I indices);
/// The position in a dimension of dynamic `length`, not 0, that `at` behind or before its ends stands for: pad_mode
/// wrap or reflect.
Index PadSourceOfAny(Emitter& e, const std::string& mode, const Index& at, int64_t length);
/// The index at `indices` of `expr` into a dimension of `length`: below 0 it counts from the end, and beyond it is
/// clipped, or wrapped around.
Index IndexInto(X& x, const Expr& expr, I indices, int64_t length, bool wraps = false);

// ---- element-wise ----

/// Functions of floats alone; integers pass through them as float64 and are rounded toward zero, as the reference does.
InPlaceFn Floats(Unary fn);
/// The function of floats that `op` of MLIR is.
InPlaceFn Floats(const char* op);
/// Functions of any kind of element.
InPlaceFn Each(Unary fn);
/// Functions of two elements; truth values count as the integers 0 and 1.
InPlaceFn Pairs(Binary fn);
/// Functions of two truth values; numbers are true when they are not 0.
InPlaceFn Logical(const char* op);
/// Predicates of arith.cmpf and arith.cmpi.
InPlaceFn Compares(const char* on_floats, const char* on_integers);

/// The dtype of the result.
DataType ResultType(C call);

Value Asinh(M& m, V x, C call);
Value Acosh(M& m, V x, C call);
Value Atanh(M& m, V x, C call);
Value LeakyRelu(M& m, V x, C call);
Value Relu(M& m, V x, C call);
/// Returns, for floats, the floor of the rounded quotient: a product with a reciprocal may be below 1 where a is b.
Value FloorDivide(M& m, V a, V b);
Value FloorMod(M& m, V a, V b);
/// Shifts by more bits than there are, or by a negative number, shift everything out.
Value LeftShift(M& m, V a, V b);
Value RightShift(M& m, V a, V b);

/// A constant exponent that a few products or a root replace.
Value Power(X& x, C call, I indices);
Value Where(X& x, C call, I indices);
Value BiasAdd(X& x, C call, I indices);
Value Prelu(X& x, C call, I indices);
Value Quantize(X& x, C call, I indices);
Value Dequantize(X& x, C call, I indices);
/// An element of a row of packed numbers.
Value TakeNBits(X& x, C call, I indices);

// ---- one element at a computed position, or a few ----

Value Transpose(X& x, C call, I indices);
/// Letters say which dimension is which.
Value LayoutTransform(X& x, C call, I indices);
Value Reshape(X& x, C call, I indices);
Value BroadcastTo(X& x, C call, I indices);
Value StridedSlice(X& x, C call, I indices);
Value SliceByValues(X& x, C call, I indices);
Value Pad(X& x, C call, I indices);
Value PadByValues(X& x, C call, I indices);
Value Arange(X& x, C call, I indices);
Value Take(X& x, C call, I indices);
Value Gather(X& x, C call, I indices);
/// Index tuples lie along the first axis of the indices.
Value GatherNd(X& x, C call, I indices);
Value Concatenate(X& x, C call, I indices);
Value Stack(X& x, C call, I indices);
Value OneHot(X& x, C call, I indices);
Value Trilu(X& x, C call, I indices);
Value DepthToSpace(X& x, C call, I indices);
Value SpaceToDepth(X& x, C call, I indices);
Value ReverseSequence(X& x, C call, I indices);
Value Reverse(X& x, C call, I indices);
/// Keeps the bits: 32 or 64 of them, or between integers.
Value Reinterpret(X& x, C call, I indices);
Value Resize(X& x, C call, I indices);
Value Tile(X& x, C call, I indices);
Value Repeat(X& x, C call, I indices);
Value Full(X& x, C call, I indices);
/// A row for tensors of one number.
InPlaceFn Filled(double number);
Value ShapeOfData(X& x, C call, I indices);
Value NdarraySize(X& x, C call, I indices);

// ---- several elements of images ----

Value GridSample(X& x, C call, I indices);
Value RoiAlign(X& x, C call, I indices);
Value RoiPool(X& x, C call, I indices);
Value MaxPoolIndices(X& x, C call, I indices);
Value LocalResponse(X& x, C call, I indices);

// ---- decision trees ----

/// Lanes walk through trees of their own until all have come to a leaf.
Value TreeLeaves(X& x, C call, I indices);

// ---- fields of a result ----

Value SplitField(X& x, C call, int field, I indices);
Value DropoutField(X& x, C call, int field, I indices);
Value BatchNormField(X& x, C call, int field, I indices);

}  // namespace collage::native::inline_ops
