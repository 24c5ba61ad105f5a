// reading.cc: parameters, constants and dequantised values as operands.
#include "backends/dnnl/reading.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/dnnl/activation.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"

namespace collage::dnnl_toolchain {
namespace {

bool IsByte(DataType dtype) { return dtype == kInt8 || dtype == kUInt8; }

bool IsKnown(DataType dtype) {
  return dtype == kFloat32 || dtype == kFloat16 || dtype == kBFloat16 || dtype == kInt32 || IsByte(dtype) ||
         dtype.is_bool();
}

/// The only value of a constant; a Refusal when it has others or is none.
double OneValue(const Expr& expr, const char* what) {
  const ConstantNode* constant = As<ConstantNode>(expr);
  if (constant == nullptr) throw Refusal{fmt::format("takes constant {}s only", what)};
  const Tensor& value = constant->value();
  if (value.num_elements() == 0) throw Refusal{fmt::format("expects a {}", what)};
  for (int64_t i = 1; i < value.num_elements(); ++i) {
    if (value.At(i) != value.At(0)) throw Refusal{fmt::format("takes one {} for all channels only", what)};
  }
  return value.At(0);
}

}  // namespace

const TensorTypeNode& TensorOf(const Expr& expr) {
  const TensorTypeNode* type = AsTensorType(expr->checked_type());
  if (type == nullptr || !type->is_static()) throw Refusal{"takes tensors of static shape only"};
  if (!IsKnown(type->dtype())) {
    throw Refusal{"computes float32, bfloat16, float16 and 8-bit integers, got " + type->dtype().ToString()};
  }
  if (NumElements(type->static_shape()) == 0) throw Refusal{"takes no empty tensors"};
  return *type;
}

Shape ShapeOf(const Expr& expr) { return TensorOf(expr).static_shape(); }

DataType DTypeOf(const Expr& expr) { return TensorOf(expr).dtype(); }

const CallNode* CallOf(const Expr& expr, std::string_view name) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr && call->op()->name == name ? call : nullptr;
}

QuantisationOf::QuantisationOf(const CallNode& call) {
  zero = static_cast<int64_t>(OneValue(call.args()[2], "zero point"));
  const ConstantNode* constant = As<ConstantNode>(call.args()[1]);
  if (constant == nullptr) throw Refusal{"takes constant scales only"};
  if (constant->value().num_elements() == 1) {
    scale = constant->value().At(0);
    if (!(scale > 0)) throw Refusal{"takes positive scales only"};
    return;
  }
  if (constant->value().dtype() != kFloat32) throw Refusal{"takes scales per channel as float32 only"};
  scales = constant;
  axis = call.attrs().Int("axis");
  if (axis < 0) axis += static_cast<int64_t>(ShapeOf(call.args()[0]).size());
}

Reading::Reading(const Function& function, const BoundaryLayouts& layouts) : layouts_(layouts), body_(function) {
  int number = 0;
  for (const Var& param : function->params()) {
    parameters_[param.get()] = number;
    number += static_cast<int>(
        FlattenTensorTypes(param->checked_type() ? param->checked_type() : param->type_annotation()).size());
  }
  PostOrderInScope(root(), [&](const Expr& expr) {
    if (const auto op_call = AsShared<CallNode>(expr)) {
      if (op_call->op() == nullptr) throw Refusal{"holds one composite only"};
      calls_.push_back(op_call);
    }
  });
}

int Reading::AddConstant(const Tensor& value) {
  constants_.push_back(value);
  return static_cast<int>(constants_.size()) - 1;
}

Operand Reading::OperandOf(const Expr& expr, int64_t scale_axis) {
  if (const CallNode* call = CallOf(expr, "qnn.dequantize")) return Dequantised(*call, scale_axis);
  if (const CallNode* call = CallOf(expr, "cast")) return Widened(*call);
  if (const CallNode* call = CallOf(expr, "subtract")) return Shifted(*call);
  Operand operand;
  operand.shape = ShapeOf(expr);
  operand.dtype = DTypeOf(expr);
  const Expr source = body_.Outside(expr);
  if (const ConstantNode* constant = As<ConstantNode>(source)) {
    operand.constant = AddConstant(constant->value());
    return operand;
  }
  const auto it = parameters_.find(source.get());
  if (it == parameters_.end()) throw Refusal{"an operand is computed inside the match"};
  operand.input = it->second;
  operand.layout = layouts_.inputs.at(static_cast<size_t>(it->second));
  // Without several channels, or with nothing but channels, both layouts are one.
  const bool is_one = operand.shape.size() >= 3 &&
                      (operand.shape[1] == 1 || operand.shape[0] * operand.shape[1] == NumElements(operand.shape));
  if (is_one) operand.layout = Layout::kPlain;
  return operand;
}

Operand Reading::Dequantised(const CallNode& call, int64_t scale_axis) {
  Operand operand = OperandOf(call.args()[0]);
  if (!IsByte(operand.dtype)) throw Refusal{"dequantises 8-bit integers only, got " + operand.dtype.ToString()};
  if (operand.is_quantised()) throw Refusal{"an operand is dequantised twice"};
  const QuantisationOf quantisation(call);
  operand.zero = quantisation.zero;
  operand.scale = quantisation.scale;
  if (quantisation.scales == nullptr) return operand;
  if (scale_axis < 0) throw Refusal{"takes one scale for all channels of the data"};
  if (quantisation.axis != scale_axis) {
    throw Refusal{fmt::format("takes scales along the result's channels only (axis {}), got axis {}", scale_axis,
                              quantisation.axis)};
  }
  operand.scales = AddConstant(quantisation.scales->value());
  return operand;
}

Operand Reading::Widened(const CallNode& cast) {
  if (DTypeOf(cast.args()[0]) == cast.attrs().Type("dtype") || cast.attrs().Type("dtype") != kInt32 ||
      !IsByte(DTypeOf(cast.args()[0]))) {
    throw Refusal{"an operand is computed inside the match"};
  }
  return OperandOf(cast.args()[0]);
}

Operand Reading::Shifted(const CallNode& subtract) {
  Operand operand = OperandOf(subtract.args()[0]);
  if (!IsByte(operand.dtype) || operand.is_quantised()) throw Refusal{"an operand is computed inside the match"};
  if (const auto zero = ScalarValue(subtract.args()[1])) {
    operand.zero = static_cast<int64_t>(*zero);
    return operand;
  }
  const Operand zero = OperandOf(subtract.args()[1]);
  if (zero.input < 0 || NumElements(zero.shape) != 1 || zero.dtype != kInt32) {
    throw Refusal{"takes one zero point for all of the data"};
  }
  operand.zero_input = zero.input;
  return operand;
}

}  // namespace collage::dnnl_toolchain
