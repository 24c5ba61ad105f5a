// reading.h: a matched sub-graph as its calls, and what they read as operands of a primitive.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "backends/dnnl/spec.h"
#include "collage/ir/expr.h"
#include "collage/target/composite.h"
#include "collage/target/toolchain.h"

namespace collage::dnnl_toolchain {

/// Thrown while a match is read: why it is not what one primitive computes.
struct Refusal {
  std::string text;
};

/// The type of `expr`, a tensor of static shape and of a dtype that oneDNN knows; else a Refusal.
const TensorTypeNode& TensorOf(const Expr& expr);
Shape ShapeOf(const Expr& expr);
DataType DTypeOf(const Expr& expr);

/// A call of operator `name`, or null.
const CallNode* CallOf(const Expr& expr, std::string_view name);

/// Scale and zero point of a qnn.quantize or qnn.dequantize.
struct QuantisationOf {
  double scale = 1;
  int64_t zero = 0;
  const ConstantNode* scales = nullptr;  ///< one per index of `axis`, instead of `scale`
  int64_t axis = -1;                     ///< counted from the front; -1 when there is one scale

  /// Throws a Refusal when they are not constants, or when there are several zero points.
  explicit QuantisationOf(const CallNode& call);
};

/// The calls of a composite (or of a partition whose body calls one) in order of computation.
class Reading {
 public:
  /// `layouts` must outlive it. Throws a Refusal when there is more than one composite.
  Reading(const Function& function, const BoundaryLayouts& layouts);

  const std::vector<Call>& calls() const { return calls_; }
  const Expr& root() const { return body_.root(); }
  Layout result_layout() const { return layouts_.outputs.at(0); }

  /// Returns `expr` as an operand of the primitive: a value from outside of the match, a constant, or one of these
  /// dequantised inside of it. Integers that are widened to int32 inside of the match, and their zero point subtracted,
  /// count as quantised with scale 1. `scale_axis`: the only axis that may have a scale for each index; -1 for none.
  Operand OperandOf(const Expr& expr, int64_t scale_axis = -1);

  /// Adds a constant that operands may name by the number that this returns.
  int AddConstant(const Tensor& value);
  /// Constants that operands name by number.
  std::vector<Tensor> TakeConstants() { return std::move(constants_); }
  const Tensor& constant(int number) const { return constants_.at(static_cast<size_t>(number)); }

 private:
  Operand Dequantised(const CallNode& call, int64_t scale_axis);
  Operand Widened(const CallNode& cast);
  Operand Shifted(const CallNode& subtract);

  const BoundaryLayouts& layouts_;
  std::unordered_map<const ExprNode*, int> parameters_;  ///< flattened numbers
  CompositeBody body_;
  std::vector<Call> calls_;
  std::vector<Tensor> constants_;
};

}  // namespace collage::dnnl_toolchain
