// reading.h: a matched sub-graph as its calls, and the graph that is made of it.
#pragma once

#include <vector>

#include "backends/cudnn/graph.h"
#include "backends/fused_matches/match_reader.h"
#include "collage/ir/expr.h"

namespace collage::cudnn {

using matches::AsImage;
using matches::Operand;
using matches::Refusal;

/// The shape of `expr`, a static one without a dimension of 0 and of a floating type that cuDNN has; else a Refusal.
Shape ShapeOf(const Expr& expr);
DataType DTypeOf(const Expr& expr);

/// Dense strides of `dims`, [N, C, spatial…] if the channels are to lie innermost.
Shape StridesOf(const Shape& dims, bool channels_last);

/// The calls of a composite, or of a partition whose body calls one, and the graph that grows from them.
class Reading : public matches::MatchReader {
 public:
  using matches::MatchReader::MatchReader;

  /// Throws a Refusal where `expr` is computed inside of the match, or of a type that cuDNN does not compute.
  Operand OperandOf(const Expr& expr) const;

  Graph& graph() { return graph_; }
  std::vector<Tensor>& constants() { return constants_; }
  /// Each adds a value to the graph and returns its number.
  int Add(const Operand& operand, Shape dims, Shape strides);
  int AddConstant(Tensor tensor, Shape dims, Shape strides);
  int AddInside(Shape dims, Shape strides);
  int AddNumber(float value, size_t rank);
  int AddScratch(Shape dims);

 private:
  Graph graph_;
  std::vector<Tensor> constants_;
};

}  // namespace collage::cudnn
