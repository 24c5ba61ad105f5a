// builders.h: expressions that converters of several families build.
#pragma once

#include "frontend/onnx/importer.h"

namespace collage {

/// nn.convNd of `data` [N, C, …] with `weight` [O, C / groups, …] under this node's window attributes.
Expr Convolve(NodeContext& node, const Expr& data, const Expr& weight);

/// NumPy's matrix product: vectors, matrices and broadcast batches of such, as nn.dense or nn.batch_matmul.
Expr MultiplyMatrices(NodeContext& node, Expr a, Expr b);

/// `data` less its mean, by its deviation, over the dimensions from `axis` on; `bias` may be null. Also the means and
/// the inverse deviations where this node has outputs 1 or 2.
std::vector<Expr> LayerNorm(NodeContext& node, const Expr& data, const Expr& scale, const Expr& bias, int64_t axis,
                            double epsilon);
/// `data` by the root of the mean of its squares over the dimensions from `axis` on.
Expr RmsNorm(NodeContext& node, const Expr& data, const Expr& scale, int64_t axis, double epsilon);

/// `axis` counted from the front; throws kInput when `rank` dimensions do not have it.
int64_t NormalAxis(NodeContext& node, int64_t axis, int rank);

/// A tensor of `shape` with equal elements: a constant, or `full` where that would be large.
Expr Filled(double value, const Shape& shape, DataType dtype);
/// begin, begin + 1, … end - 1; throws kUnsupported when these are too many for a constant.
std::vector<int64_t> CountedUp(NodeContext& node, int64_t begin, int64_t end);
/// Zeros to be filled in; throws kUnsupported when these are too many for a constant.
Tensor ZerosOf(NodeContext& node, const Shape& shape, DataType dtype);
/// A constant vector of int64.
Expr Int64s(const std::vector<int64_t>& values);

/// clip with numbers, relu, and the arithmetic that decompositions are made of; scalars take the operand's dtype.
Expr Scaled(NodeContext& node, const Expr& x, double factor);
Expr Shifted(NodeContext& node, const Expr& x, double term);

/// concatenate; one part alone is itself.
Expr Concatenate(NodeContext& node, std::vector<Expr> parts, int64_t axis);
/// Elements [begin, end) of one axis.
Expr Slice(NodeContext& node, const Expr& x, int64_t axis, int64_t begin, int64_t end);
/// Elements [begin, end) of one axis, both 0 or more, as far as there are any.
Expr SliceBetween(NodeContext& node, const Expr& x, int64_t axis, const SymbolicSize& begin, const SymbolicSize& end);
/// `data` with `before` and `after` elements around it, as nn.pad has it, for widths that a run computes.
Expr PadBy(NodeContext& node, const Expr& data, const Sizes& before, const Sizes& after, const Expr& value,
           const std::string& mode);
/// The elements of one axis in reverse order.
Expr Reversed(NodeContext& node, const Expr& x, int64_t axis);
Expr Transpose(NodeContext& node, const Expr& x, const std::vector<int64_t>& axes);
/// [N, …, C] → [N, C, …], and back.
Expr ChannelsFirst(NodeContext& node, const Expr& x);
Expr ChannelsLast(NodeContext& node, const Expr& x);
/// x * sigmoid(alpha * x).
Expr Swish(NodeContext& node, const Expr& x, double alpha);
/// GELU with a hyperbolic tangent.
Expr GeluByTanh(NodeContext& node, const Expr& x);

}  // namespace collage
