// function_elementwise.cc: random steps that keep every element in its place.
#include <cmath>

#include "property/native/function_generator.h"

namespace collage {

FunctionGenerator::Made FunctionGenerator::Unary() {
  const auto x = Any();
  const double low = x.low, high = x.high;
  const double large = x.magnitude();
  if (x.dtype.is_bool()) return Call("logical_not", {x.expr}, {}, 0, 1, x.is_exact);
  const auto same = [&](const char* op, double from, double to) {
    return Call(op, {x.expr}, {}, from, to, x.is_exact);
  };
  const auto rounded = [&](const char* op, double from, double to) { return Call(op, {x.expr}, {}, from, to, false); };
  if (!x.dtype.is_floating()) {
    switch (Below(6)) {
      case 0: return same("nn.relu", std::max(low, 0.0), std::max(high, 0.0));
      case 1: return low > -100 ? same("abs", 0, large) : std::nullopt;
      case 2: return low >= 0 && x.dtype == kUInt8 ? std::nullopt : same("negative", -high, -low);
      case 3: return same("sign", -1, 1);
      case 4: return same("copy", low, high);
      default: return x.dtype == kUInt8 ? same("bitwise_not", 0, 255) : same("bitwise_not", -high - 1, -low - 1);
    }
  }
  switch (Below(32)) {
    case 0:
    case 1: return same("nn.relu", std::max(low, 0.0), std::max(high, 0.0));
    case 2: return rounded("sigmoid", 0, 1);
    case 3: return rounded("tanh", -1, 1);
    case 4: return high > 6 ? std::nullopt : rounded("exp", std::exp(low) * 0.9, std::exp(high) * 1.1);
    case 5: return low < 0.05 ? std::nullopt : rounded("log", std::log(low) - 0.1, std::log(high) + 0.1);
    case 6: return low < 0.01 ? std::nullopt : rounded("sqrt", std::sqrt(low) * 0.9, std::sqrt(high) * 1.1);
    case 7: return low < 0.01 ? std::nullopt : rounded("rsqrt", 0.9 / std::sqrt(high), 1.1 / std::sqrt(low));
    case 8: return rounded("erf", -1, 1);
    case 9: return same("negative", -high, -low);
    case 10: return same("abs", low > 0 ? low : 0, large);
    case 11: return x.is_exact ? same("floor", low - 1, high) : std::nullopt;
    case 12: return x.is_exact ? same("ceil", low, high + 1) : std::nullopt;
    case 13: return x.is_exact ? same("round", low - 1, high + 1) : std::nullopt;
    case 14: return x.is_exact ? same("trunc", low - 1, high + 1) : std::nullopt;
    case 15: return x.is_exact ? same("sign", -1, 1) : std::nullopt;
    case 16: return large > 50 ? std::nullopt : rounded("sin", -1, 1);
    case 17: return large > 50 ? std::nullopt : rounded("cos", -1, 1);
    case 18: return large > 1.2 ? std::nullopt : rounded("tan", -3, 3);
    case 19: return large > 0.9 ? std::nullopt : rounded("asin", -1.3, 1.3);
    case 20: return large > 0.9 ? std::nullopt : rounded("acos", 0.3, 3);
    case 21: return rounded("atan", -1.6, 1.6);
    case 22: return large > 5 ? std::nullopt : rounded("sinh", -75, 75);
    case 23: return large > 5 ? std::nullopt : rounded("cosh", 1, 75);
    case 24: return rounded("asinh", -large, large);
    case 25: return low < 1.1 ? std::nullopt : rounded("acosh", 0, high);
    case 26: return large > 0.9 ? std::nullopt : rounded("atanh", -1.6, 1.6);
    case 27: return same("isnan", 0, 1);
    case 28: return same("isfinite", 0, 1);
    case 29: return same("isinf", 0, 1);
    default: return same("copy", low, high);
  }
}

FunctionGenerator::Made FunctionGenerator::IntegerBinary(const Value& a) {
  const Value b = Partner(a, OneIn(3) ? 0 : -9, 9);
  const bool is_unsigned = a.dtype == kUInt8;
  const double large = a.magnitude(), other = b.magnitude();
  const bool is_exact = a.is_exact && b.is_exact;
  const auto made = [&](const char* op, double low, double high) {
    return Call(op, {a.expr, b.expr}, {}, low, high, is_exact);
  };
  switch (Below(14)) {
    case 0: return made("add", a.low + b.low, a.high + b.high);
    case 1: return is_unsigned && a.low < b.high ? std::nullopt : made("subtract", a.low - b.high, a.high - b.low);
    case 2: return made("multiply", is_unsigned ? 0 : -large * other, large * other);
    case 3: return made("maximum", std::max(a.low, b.low), std::max(a.high, b.high));
    case 4: return made("minimum", std::min(a.low, b.low), std::min(a.high, b.high));
    case 5: return made("divide", -large, large);
    case 6: return made("floor_divide", -large - 1, large + 1);
    case 7: return made("mod", -large, large);
    case 8: return made("floor_mod", -other, other);
    case 9: return made("bitwise_and", is_unsigned ? 0 : -256 - large - other, large + other + 256);
    case 10: return made("bitwise_or", is_unsigned ? 0 : -256 - large - other, large + other + 256);
    case 11: return made("bitwise_xor", is_unsigned ? 0 : -256 - large - other, large + other + 256);
    case 12: return b.low < 0 ? std::nullopt : made("right_shift", -large, large);
    default:
      return b.low < 0 || large > 100 ? std::nullopt : made("left_shift", is_unsigned ? 0 : -large * 512, large * 512);
  }
}

FunctionGenerator::Made FunctionGenerator::Binary() {
  const Value a = Any();
  if (a.dtype.is_bool()) return std::nullopt;
  if (!a.dtype.is_floating()) return IntegerBinary(a);
  const int kind = Below(14);
  const bool is_divisor = kind >= 6 && kind <= 9;
  const Value b = is_divisor ? Partner(a, 0.25, 3) : kind == 10 ? Partner(a, -2, 2) : Partner(a, -5, 5);
  const double product = a.magnitude() * b.magnitude();
  const bool is_exact = a.is_exact && b.is_exact;
  const bool swaps = OneIn(2);
  const auto made = [&](const char* op, double low, double high, bool keeps_exact) {
    return Call(op,
                swaps && !is_divisor && kind != 10 ? std::vector<Expr>{b.expr, a.expr} : std::vector{a.expr, b.expr},
                {}, low, high, keeps_exact && is_exact);
  };
  switch (kind) {
    case 0:
    case 1: return made("add", a.low + b.low, a.high + b.high, false);
    case 2: return made("subtract", -a.magnitude() - b.magnitude(), a.magnitude() + b.magnitude(), false);
    case 3:
    case 4: return made("multiply", -product, product, false);
    case 5: return made("maximum", std::max(a.low, b.low), std::max(a.high, b.high), true);
    case 6:
    case 7: return made("divide", -a.magnitude() * 4, a.magnitude() * 4, false);
    case 8: return is_exact ? made("floor_mod", 0, b.high, false) : std::nullopt;
    case 9: return is_exact ? made("mod", -b.high, b.high, false) : std::nullopt;
    case 10: return a.low < 0.1 || a.high > 10 ? std::nullopt : made("power", 0, 100, false);
    default: return made("minimum", std::min(a.low, b.low), std::min(a.high, b.high), true);
  }
}

FunctionGenerator::Made FunctionGenerator::Comparison() {
  const Value a = Any();
  if (a.dtype.is_bool() || !a.is_exact) return std::nullopt;
  Value b = Partner(a, a.low, a.high);
  if (!b.is_exact) return std::nullopt;
  static const std::vector<const char*> ops{"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"};
  return Call(random_.Pick(ops), {a.expr, b.expr}, {}, 0, 1, true);
}

FunctionGenerator::Made FunctionGenerator::Logical() {
  for (const Value& a : values_) {
    if (!a.dtype.is_bool()) continue;
    const Value b = Partner(a, 0, 1);
    static const std::vector<const char*> ops{"logical_and", "logical_or", "logical_xor", "equal", "bitwise_and"};
    return Call(random_.Pick(ops), {a.expr, b.expr}, {}, 0, 1, true);
  }
  return std::nullopt;
}

FunctionGenerator::Made FunctionGenerator::Where() {
  const Value x = Any();
  const Value y = Partner(x, x.low, x.high);
  Shape both = x.shape;  // that x and y are broadcast to
  if (both.size() < y.shape.size()) both.insert(both.begin(), y.shape.size() - both.size(), 1);
  for (size_t i = 1; i <= y.shape.size(); ++i) {
    int64_t& size = both[both.size() - i];
    if (size == 1) size = y.shape[y.shape.size() - i];
  }
  const Value condition = Partner({x.expr, both, kBool, 0, 1, true}, 0, 1);
  return Call("where", {condition.expr, x.expr, y.expr}, {}, std::min(x.low, y.low), std::max(x.high, y.high),
              x.is_exact && y.is_exact && condition.is_exact);
}

FunctionGenerator::Made FunctionGenerator::Cast() {
  const Value x = Any();
  static const std::vector<DataType> dtypes{kFloat32, kFloat32, kFloat16,          kBFloat16,          kFloat64, kInt8,
                                            kUInt8,   kInt32,   DataType::Int(16), DataType::UInt(16), kInt64,   kBool};
  const DataType to = random_.Pick(dtypes);
  if (!to.is_floating() && !x.is_exact) return std::nullopt;
  const bool holds_exactly = !to.is_floating() || (x.dtype.is_bool() && x.is_exact) ||
                             (x.is_exact && (x.dtype == to || to == kFloat64 ||
                                             (x.dtype != kFloat64 && to == kFloat32 && x.magnitude() < 1e6)));
  // Floats beyond an integer's range saturate, integers wrap around; both are defined.
  double low = x.low - 1, high = x.high + 1;
  if (to == kInt8 && x.magnitude() > 126) low = -128, high = 127;
  if (to == kUInt8 && (x.low < 1 || x.high > 254)) low = 0, high = 255;
  if (to.bits == 16 && !to.is_floating() && (x.magnitude() > 3e4 || x.low < 1)) low = -32767, high = 32767;
  return Call("cast", {x.expr}, {{"dtype", to}}, low, high, x.is_exact && holds_exactly);
}

FunctionGenerator::Made FunctionGenerator::ClipOrSlope() {
  const Value x = Any();
  if (x.dtype.is_bool()) return std::nullopt;
  if (x.dtype.is_floating() && OneIn(2)) {
    return Call("nn.leaky_relu", {x.expr}, {{"alpha", random_.Pick<double>({0.1, 0.25, 0.01})}}, x.low, x.high, false);
  }
  const double from = OneIn(2) ? 0 : -1, to = random_.Pick<double>({1, 2, 6});
  if (x.dtype == kUInt8 && from < 0) return std::nullopt;
  return Call("clip", {x.expr}, {{"a_min", from}, {"a_max", to}}, from, to, x.is_exact);
}

FunctionGenerator::Made FunctionGenerator::Quantise() {
  const Value x = AnyFloats();
  if (x.dtype != kFloat32) return std::nullopt;
  const bool is_per_axis = x.rank() > 0 && OneIn(3);
  const int axis = is_per_axis ? Axis(x) : 0;
  const Shape shape = is_per_axis ? Shape{x.size(axis)} : Shape{};
  const DataType to = OneIn(2) ? kInt8 : kUInt8;
  const Expr scale = MakeConstant(Elements(shape, kFloat32, 0.02, 0.2));
  const Expr zero =
      MakeConstant(Elements(shape, OneIn(2) ? to : kInt32, to == kInt8 ? -9 : 100, to == kInt8 ? 9 : 140));
  return Call("qnn.quantize", {x.expr, scale, zero}, {{"axis", axis}, {"out_dtype", to}}, to == kInt8 ? -128 : 0,
              to == kInt8 ? 127 : 255, false);
}

FunctionGenerator::Made FunctionGenerator::Dequantise() {
  const Value x = Any();
  if (x.dtype.is_floating() || x.dtype.is_bool() || x.dtype.bits == 64) return std::nullopt;
  const bool is_per_axis = x.rank() > 0 && OneIn(3);
  const int axis = is_per_axis ? Axis(x) : 0;
  const Shape shape = is_per_axis ? Shape{x.size(axis)} : Shape{};
  const Expr scale = MakeConstant(Elements(shape, kFloat32, 0.02, 0.2));
  const Expr zero = MakeConstant(Elements(shape, kInt32, x.dtype == kUInt8 ? 100 : -9, x.dtype == kUInt8 ? 140 : 9));
  const double large = 0.2 * (x.magnitude() + 140);
  return Call("qnn.dequantize", {x.expr, scale, zero}, {{"axis", axis}}, -large, large, false);
}

/// One value for each index of an axis.
FunctionGenerator::Made FunctionGenerator::AlongChannels() {
  const Value x = Any();
  if (x.rank() == 0 || x.dtype.is_bool()) return std::nullopt;
  const int axis = Axis(x);
  const Value along = Fresh({x.size(axis)}, x.dtype, x.dtype.is_floating() ? -1 : 0, 1);
  if (x.dtype.is_floating() && OneIn(2)) {
    return Call("nn.prelu", {x.expr, along.expr}, {{"axis", axis}}, -x.magnitude(), x.magnitude(), false);
  }
  return Call("nn.bias_add", {x.expr, along.expr}, {{"axis", axis}}, x.low - 1, x.high + 1,
              x.is_exact && !x.dtype.is_floating());
}

}  // namespace collage
