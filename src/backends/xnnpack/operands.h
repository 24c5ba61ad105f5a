// operands.h: what a match reads and gives, in memory order.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "backends/xnnpack/spec.h"
#include "collage/ir/expr.h"
#include "collage/runtime/layout.h"
#include "collage/target/composite.h"
#include "collage/target/toolchain.h"

namespace collage::xnnpack_toolchain {

/// Thrown while a match is read; becomes the reason.
struct Refusal {
  std::string text;
};

/// Returns the element type of a tensor; refuses types that XNNPACK does not compute on.
Element ElementOf(const Expr& expr);

/// Turns expressions of a match into operands. An operand is a parameter, a constant, or either dequantised.
class OperandReader {
 public:
  OperandReader(const Function& function, const BoundaryLayouts& layouts);

  /// The match's result.
  const Expr& root() const { return body_.root(); }
  Layout result_layout() const { return layouts_.outputs.at(0); }

  /// Returns the partition's argument if `expr` is a parameter of the composite; else `expr`.
  Expr Outside(const Expr& expr) const { return body_.Outside(expr); }
  bool IsLeaf(const Expr& expr) const;
  /// Logical, static.
  Shape ShapeOf(const Expr& expr) const;
  /// Returns the quantisation of a qnn.quantize or qnn.dequantize with constant scales.
  Quantisation QuantisationOf(const CallNode& call) const;

  Operand Plain(const Expr& expr);           ///< in its logical order
  Operand Image(const Expr& expr);           ///< [N, H, W, C]
  Operand InResultLayout(const Expr& expr);  ///< an operand of the result's rank, in its order
  /// Returns an operand that broadcasts to `result`, padded with leading ones to its rank. Constants are reordered if
  /// necessary.
  Operand ElementWise(const Expr& expr, const Expr& result);

  /// A constant beside the blob, `what` for refusals.
  Operand Weights(const Expr& expr, const std::string& what);
  /// A constant vector of float32; one of quantised integers is dequantised.
  Operand Bias(const Expr& expr);

  Shape ResultImage(const Expr& result) const;  ///< [N, H, W, C]
  Shape ResultInMemory() const;
  /// Returns the position of the result's logical axis in memory order.
  size_t MemoryAxis(int64_t axis) const;

  std::vector<Tensor> TakeConstants() { return std::move(constants_); }

 private:
  Operand Read(const Expr& expr, Layout& layout);
  Shape ImageShape(const Expr& expr, Layout layout) const;

  BoundaryLayouts layouts_;
  std::unordered_map<const ExprNode*, int> parameters_;
  CompositeBody body_;
  std::vector<Tensor> constants_;
};

}  // namespace collage::xnnpack_toolchain
