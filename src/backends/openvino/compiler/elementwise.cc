// elementwise.cc: rows of the element-wise operators.
#include <cmath>
#include <openvino/opsets/opset14.hpp>
#include <openvino/opsets/opset15.hpp>

#include "backends/openvino/compiler/translate.h"

namespace collage::openvino {
namespace {

namespace ops = ov::opset14;

template <typename Node>
ov::OutputVector Unary(const OpArgs& call) {
  return {std::make_shared<Node>(call[0])};
}

template <typename Node>
ov::OutputVector Binary(const OpArgs& call) {
  return {std::make_shared<Node>(call[0], call[1])};
}

ov::OutputVector Same(const OpArgs& call) { return {call[0]}; }

/// Rounds to an integer only where that changes something.
template <typename Node>
ov::OutputVector Rounding(const OpArgs& call) {
  return call[0].get_element_type().is_real() ? Unary<Node>(call) : Same(call);
}

ov::OutputVector Rsqrt(const OpArgs& call) {
  const auto root = std::make_shared<ops::Sqrt>(call[0]);
  return {std::make_shared<ops::Divide>(Scalar(call[0].get_element_type(), 1), root)};
}

ov::OutputVector Round(const OpArgs& call) {
  if (!call[0].get_element_type().is_real()) return Same(call);
  return {std::make_shared<ops::Round>(call[0], ops::Round::RoundMode::HALF_TO_EVEN)};
}

ov::OutputVector Trunc(const OpArgs& call) {
  if (!call[0].get_element_type().is_real()) return Same(call);
  const auto size = std::make_shared<ops::Floor>(std::make_shared<ops::Abs>(call[0]));
  return {std::make_shared<ops::Multiply>(std::make_shared<ops::Sign>(call[0]), size)};
}

ov::OutputVector Clip(const OpArgs& call) {
  const double low = call.attrs.Double("a_min");
  const double high = call.attrs.Double("a_max");
  const ov::element::Type type = call[0].get_element_type();
  if (type.is_real()) return {std::make_shared<ops::Clamp>(call[0], low, high)};
  ov::Output<ov::Node> value = call[0];
  if (std::isfinite(low)) value = std::make_shared<ops::Maximum>(value, Scalar(type, std::ceil(low)));
  if (std::isfinite(high)) value = std::make_shared<ops::Minimum>(value, Scalar(type, std::floor(high)));
  return {value};
}

ov::OutputVector LeakyRelu(const OpArgs& call) {
  return {std::make_shared<ops::PRelu>(
      call[0],
      ops::Constant::create(call[0].get_element_type(), {1}, std::vector<double>{call.attrs.Double("alpha")}))};
}

ov::OutputVector Prelu(const OpArgs& call) {
  const int64_t axis = NormalAxis(call.attrs.Int("axis"), call.rank());
  if (axis == 1 || call.rank() == 1) return {std::make_shared<ops::PRelu>(call[0], call[1])};
  return {std::make_shared<ops::PRelu>(call[0], AlongAxis(call[1], axis, call.rank()))};
}

ov::OutputVector Cast(const OpArgs& call) {
  const ov::element::Type from = call[0].get_element_type();
  const ov::element::Type to = call.result_type();
  if (from == to) return Same(call);
  if (to == ov::element::boolean) return {std::make_shared<ops::NotEqual>(call[0], Scalar(from, 0))};
  return {std::make_shared<ops::Convert>(call[0], to)};
}

ov::OutputVector Divide(const OpArgs& call) {
  // Integers truncate: `pythondiv` off.
  return {std::make_shared<ops::Divide>(call[0], call[1], false)};
}

ov::OutputVector FloorDivide(const OpArgs& call) {
  const auto quotient = std::make_shared<ops::Divide>(call[0], call[1], true);
  if (!call[0].get_element_type().is_real()) return {quotient};
  return {std::make_shared<ops::Floor>(quotient)};
}

ov::OutputVector IsFinite(const OpArgs& call) {
  const auto infinite = std::make_shared<ops::IsInf>(call[0]);
  const auto nan = std::make_shared<ops::IsNaN>(call[0]);
  return {std::make_shared<ops::LogicalNot>(std::make_shared<ops::LogicalOr>(infinite, nan))};
}

ov::OutputVector IsInf(const OpArgs& call) { return {std::make_shared<ops::IsInf>(call[0])}; }

ov::OutputVector Where(const OpArgs& call) { return {std::make_shared<ops::Select>(call[0], call[1], call[2])}; }

void AddUnaryRows(RowMap& rows) {
  rows["nn.relu"] = Unary<ops::Relu>;
  rows["sigmoid"] = Unary<ops::Sigmoid>;
  rows["tanh"] = Unary<ops::Tanh>;
  rows["exp"] = Unary<ops::Exp>;
  rows["log"] = Unary<ops::Log>;
  rows["sqrt"] = Unary<ops::Sqrt>;
  rows["rsqrt"] = Rsqrt;
  rows["erf"] = Unary<ops::Erf>;
  rows["negative"] = Unary<ops::Negative>;
  rows["abs"] = Unary<ops::Abs>;
  rows["floor"] = Rounding<ops::Floor>;
  rows["ceil"] = Rounding<ops::Ceiling>;
  rows["round"] = Round;
  rows["trunc"] = Trunc;
  rows["sign"] = Unary<ops::Sign>;
  rows["sin"] = Unary<ops::Sin>;
  rows["cos"] = Unary<ops::Cos>;
  rows["tan"] = Unary<ops::Tan>;
  rows["asin"] = Unary<ops::Asin>;
  rows["acos"] = Unary<ops::Acos>;
  rows["atan"] = Unary<ops::Atan>;
  rows["sinh"] = Unary<ops::Sinh>;
  rows["cosh"] = Unary<ops::Cosh>;
  rows["asinh"] = Unary<ops::Asinh>;
  rows["acosh"] = Unary<ops::Acosh>;
  rows["atanh"] = Unary<ops::Atanh>;
  rows["logical_not"] = Unary<ops::LogicalNot>;
  rows["bitwise_not"] = Unary<ops::BitwiseNot>;
  rows["isnan"] = Unary<ops::IsNaN>;
  rows["isinf"] = IsInf;
  rows["isfinite"] = IsFinite;
  rows["clip"] = Clip;
  rows["nn.leaky_relu"] = LeakyRelu;
  rows["nn.prelu"] = Prelu;
  rows["cast"] = Cast;
  rows["copy"] = Same;
}

}  // namespace

void AddElementwiseRows(RowMap& rows) {
  AddUnaryRows(rows);
  rows["add"] = Binary<ops::Add>;
  rows["subtract"] = Binary<ops::Subtract>;
  rows["multiply"] = Binary<ops::Multiply>;
  rows["divide"] = Divide;
  rows["power"] = Binary<ops::Power>;
  rows["mod"] = Binary<ops::Mod>;
  rows["floor_mod"] = Binary<ops::FloorMod>;
  rows["floor_divide"] = FloorDivide;
  rows["maximum"] = Binary<ops::Maximum>;
  rows["minimum"] = Binary<ops::Minimum>;
  rows["equal"] = Binary<ops::Equal>;
  rows["not_equal"] = Binary<ops::NotEqual>;
  rows["less"] = Binary<ops::Less>;
  rows["less_equal"] = Binary<ops::LessEqual>;
  rows["greater"] = Binary<ops::Greater>;
  rows["greater_equal"] = Binary<ops::GreaterEqual>;
  rows["logical_and"] = Binary<ops::LogicalAnd>;
  rows["logical_or"] = Binary<ops::LogicalOr>;
  rows["logical_xor"] = Binary<ops::LogicalXor>;
  rows["bitwise_and"] = Binary<ops::BitwiseAnd>;
  rows["bitwise_or"] = Binary<ops::BitwiseOr>;
  rows["bitwise_xor"] = Binary<ops::BitwiseXor>;
  rows["left_shift"] = Binary<ov::op::v15::BitwiseLeftShift>;
  rows["right_shift"] = Binary<ov::op::v15::BitwiseRightShift>;
  rows["where"] = Where;
}

}  // namespace collage::openvino
