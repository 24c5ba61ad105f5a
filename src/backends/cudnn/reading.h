// reading.h: a matched sub-graph as its calls, and the graph that is made of it.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backends/cudnn/graph.h"
#include "collage/ir/expr.h"
#include "collage/target/composite.h"
#include "collage/target/toolchain.h"

namespace collage::cudnn {

/// Thrown while a match is read: why cuDNN does not compute it.
struct Refusal {
  std::string text;
};

/// A value from outside of the match.
struct Operand {
  int64_t input = -1;  ///< number of the partition's parameter; -1 for constants
  Tensor constant;
  Shape shape;
  DataType dtype = kFloat32;
  Layout layout = Layout::kPlain;
};

/// The shape of `expr`, a static one without a dimension of 0 and of a floating type that cuDNN has; else a Refusal.
Shape ShapeOf(const Expr& expr);
DataType DTypeOf(const Expr& expr);

/// Dense strides of `dims`, [N, C, spatial…] if the channels are to lie innermost.
Shape StridesOf(const Shape& dims, bool channels_last);
/// [N, C, W] as an image of one row; images as they are.
Shape AsImage(Shape shape);

/// The calls of a composite, or of a partition whose body calls one, and the graph that grows from them.
class Reading {
 public:
  /// `layouts` must outlive it. Throws a Refusal where there is more than one composite.
  Reading(const Function& function, const BoundaryLayouts& layouts);

  const std::vector<Call>& calls() const { return calls_; }
  const Expr& root() const { return body_.root(); }
  Layout result_layout() const { return layouts_.outputs.at(0); }

  /// Throws a Refusal where `expr` is computed inside of the match.
  Operand OperandOf(const Expr& expr) const;

  Graph& graph() { return graph_; }
  std::vector<Tensor>& constants() { return constants_; }
  /// Each adds a value to the graph and returns its number.
  int Add(const Operand& operand, Shape dims, Shape strides);
  int AddConstant(Tensor tensor, Shape dims, Shape strides);
  int AddInside(Shape dims, Shape strides);
  int AddNumber(float value, size_t rank);

 private:
  const BoundaryLayouts& layouts_;
  std::unordered_map<const ExprNode*, int64_t> parameters_;
  CompositeBody body_;
  std::vector<Call> calls_;
  Graph graph_;
  std::vector<Tensor> constants_;
};

}  // namespace collage::cudnn
