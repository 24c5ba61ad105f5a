// elementwise.cc: element-wise operators.
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

#include "frontend/onnx_export/exporter.h"

namespace collage {
namespace {

using Pairs = std::initializer_list<std::pair<const char*, const char*>>;

OnnxExportRow Direct(const char* onnx) {
  return [onnx](OnnxExportCall& call) -> OnnxNames {
    OnnxNames inputs;
    for (size_t i = 0; i < call.num_args(); ++i) inputs.push_back(call.Arg(i));
    return {call.Node(onnx, inputs)};
  };
}

/// Makes a direct row of an operator that came with `opset`.
OnnxExportRow DirectSince(int64_t opset, const char* onnx) {
  return [opset, row = Direct(onnx)](OnnxExportCall& call) -> OnnxNames {
    call.NeedsOpset(opset);
    return row(call);
  };
}

/// Makes a row for bools only: ONNX has no logic of numbers.
OnnxExportRow Logical(const char* onnx) {
  return [onnx](OnnxExportCall& call) -> OnnxNames {
    OnnxNames inputs;
    for (size_t i = 0; i < call.num_args(); ++i) inputs.push_back(call.Cast(call.Arg(i), call.DTypeOf(i), kBool));
    return {call.Cast(call.Node(onnx, inputs), kBool, call.ResultType().dtype())};
  };
}

OnnxNames Rsqrt(OnnxExportCall& call) { return {call.Node("Reciprocal", {call.Node("Sqrt", {call.Arg(0)})})}; }

/// sign(x) * floor(|x|).
OnnxNames Trunc(OnnxExportCall& call) {
  if (!call.DTypeOf(0).is_floating()) return {call.Node("Identity", {call.Arg(0)})};
  const std::string magnitude = call.Node("Floor", {call.Node("Abs", {call.Arg(0)})});
  return {call.Node("Mul", {call.Node("Sign", {call.Arg(0)}), magnitude})};
}

OnnxNames IsInf(OnnxExportCall& call) {
  if (call.DTypeOf(0).bits < 32) call.NeedsOpset(20);
  return {call.Node("IsInf", {call.Arg(0)})};
}

OnnxNames IsFinite(OnnxExportCall& call) {
  const std::string not_finite = call.Node("Or", {IsInf(call)[0], call.Node("IsNaN", {call.Arg(0)})});
  return {call.Node("Not", {not_finite})};
}

OnnxNames NotEqual(OnnxExportCall& call) {
  return {call.Node("Not", {call.Node("Equal", {call.Arg(0), call.Arg(1)})})};
}

OnnxNames Mod(OnnxExportCall& call) { return {call.Node("Mod", {call.Arg(0), call.Arg(1)}, {{"fmod", 1}})}; }

/// The remainder with the sign of the divisor; of floats ONNX has the one with the dividend's sign only.
std::string FloorRemainder(OnnxExportCall& call) {
  const std::string& a = call.Arg(0);
  const std::string& b = call.Arg(1);
  if (!call.DTypeOf(0).is_floating()) return call.Node("Mod", {a, b});
  const std::string zero = call.Scalar(0, call.DTypeOf(0));
  const std::string rest = call.Node("Mod", {a, b}, {{"fmod", 1}});
  const std::string differs = call.Node("Xor", {call.Node("Less", {rest, zero}), call.Node("Less", {b, zero})});
  const std::string is_rest = call.Node("Not", {call.Node("Equal", {rest, zero})});
  const std::string moved = call.Node("Where", {differs, call.Node("Add", {rest, b}), rest});
  return call.Node("Where", {is_rest, moved, rest});
}

OnnxNames FloorMod(OnnxExportCall& call) { return {FloorRemainder(call)}; }

OnnxNames FloorDivide(OnnxExportCall& call) {
  if (call.DTypeOf(0).is_floating()) return {call.Node("Floor", {call.Node("Div", {call.Arg(0), call.Arg(1)})})};
  const std::string whole = call.Node("Sub", {call.Arg(0), FloorRemainder(call)});
  return {call.Node("Div", {whole, call.Arg(1)})};
}

OnnxExportRow Shift(const char* direction) {
  return [direction](OnnxExportCall& call) -> OnnxNames {
    if (call.DTypeOf(0).code != DataType::Code::kUInt) call.Unsupported("signed integers");
    return {call.Node("BitShift", {call.Arg(0), call.Arg(1)}, {{"direction", direction}})};
  };
}

/// A bound as an element of `dtype`; nothing where it bounds nothing.
std::string Bound(OnnxExportCall& call, const char* attr) {
  const double bound = call.attrs().Double(attr);
  const DataType dtype = call.DTypeOf(0);
  if (std::isinf(bound)) return "";
  if (dtype.is_integer()) {
    const bool is_signed = dtype.code == DataType::Code::kInt;
    const double high = std::ldexp(1.0, dtype.bits - (is_signed ? 1 : 0));
    if (bound >= high || bound < (is_signed ? -high : 0)) return "";
  }
  return call.Scalar(bound, dtype);
}

OnnxNames Clip(OnnxExportCall& call) {
  return {call.Node("Clip", {call.Arg(0), Bound(call, "a_min"), Bound(call, "a_max")})};
}

OnnxNames LeakyRelu(OnnxExportCall& call) {
  return {call.Node("LeakyRelu", {call.Arg(0)}, {{"alpha", call.attrs().Double("alpha")}})};
}

OnnxNames Cast(OnnxExportCall& call) {
  return {call.Node("Cast", {call.Arg(0)}, {{"to", OnnxTypeOf(call.ResultType().dtype())}})};
}

OnnxNames Reinterpret(OnnxExportCall& call) {
  call.NeedsOpset(26);
  return {call.Node("BitCast", {call.Arg(0)}, {{"to", OnnxTypeOf(call.ResultType().dtype())}})};
}

}  // namespace

void AddElementwiseRows(OnnxExportRows& rows) {
  for (const auto& [relay, onnx] : Pairs{{"nn.relu", "Relu"},
                                         {"sigmoid", "Sigmoid"},
                                         {"tanh", "Tanh"},
                                         {"exp", "Exp"},
                                         {"log", "Log"},
                                         {"sqrt", "Sqrt"},
                                         {"erf", "Erf"},
                                         {"negative", "Neg"},
                                         {"abs", "Abs"},
                                         {"floor", "Floor"},
                                         {"ceil", "Ceil"},
                                         {"round", "Round"},
                                         {"sign", "Sign"},
                                         {"sin", "Sin"},
                                         {"cos", "Cos"},
                                         {"tan", "Tan"},
                                         {"asin", "Asin"},
                                         {"acos", "Acos"},
                                         {"atan", "Atan"},
                                         {"sinh", "Sinh"},
                                         {"cosh", "Cosh"},
                                         {"asinh", "Asinh"},
                                         {"acosh", "Acosh"},
                                         {"atanh", "Atanh"},
                                         {"isnan", "IsNaN"},
                                         {"add", "Add"},
                                         {"subtract", "Sub"},
                                         {"multiply", "Mul"},
                                         {"divide", "Div"},
                                         {"power", "Pow"},
                                         {"maximum", "Max"},
                                         {"minimum", "Min"},
                                         {"equal", "Equal"},
                                         {"less", "Less"},
                                         {"less_equal", "LessOrEqual"},
                                         {"greater", "Greater"},
                                         {"greater_equal", "GreaterOrEqual"}}) {
    rows[relay] = Direct(onnx);
  }
  for (const auto& [relay, onnx] : Pairs{{"bitwise_not", "BitwiseNot"},
                                         {"bitwise_and", "BitwiseAnd"},
                                         {"bitwise_or", "BitwiseOr"},
                                         {"bitwise_xor", "BitwiseXor"}}) {
    rows[relay] = DirectSince(18, onnx);
  }
  for (const auto& [relay, onnx] :
       Pairs{{"logical_not", "Not"}, {"logical_and", "And"}, {"logical_or", "Or"}, {"logical_xor", "Xor"}}) {
    rows[relay] = Logical(onnx);
  }
  // ONNX has no words for devices and for operators that are compiled together.
  for (const char* same : {"copy", "on_device", "device_copy", "annotation.compiler_begin", "annotation.compiler_end",
                           "annotation.stop_fusion"}) {
    rows[same] = [](OnnxExportCall& call) { return call.Fields(0); };
  }
  rows["rsqrt"] = Rsqrt;
  rows["trunc"] = Trunc;
  rows["isinf"] = IsInf;
  rows["isfinite"] = IsFinite;
  rows["not_equal"] = NotEqual;
  rows["mod"] = Mod;
  rows["floor_mod"] = FloorMod;
  rows["floor_divide"] = FloorDivide;
  rows["left_shift"] = Shift("LEFT");
  rows["right_shift"] = Shift("RIGHT");
  rows["clip"] = Clip;
  rows["nn.leaky_relu"] = LeakyRelu;
  rows["cast"] = Cast;
  rows["reinterpret"] = Reinterpret;
  rows["where"] = [](OnnxExportCall& call) -> OnnxNames {
    const std::string condition = call.Cast(call.Arg(0), call.DTypeOf(0), kBool);
    return {call.Node("Where", {condition, call.Arg(1), call.Arg(2)})};
  };
}

}  // namespace collage
