// elementwise.cc: one row per operator that computes each element from the same element of its arguments.
#include <array>
#include <cmath>

#include "backends/native/compiler/emit/expressions.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

using Unary = std::function<Value(VectorMath& m, const Value& x, const CallNode& call)>;
using Binary = std::function<Value(VectorMath& m, const Value& a, const Value& b)>;

DataType ResultType(const CallNode& call) { return AsTensorType(call.checked_type())->dtype(); }

/// Functions of floats alone; integers pass through them as float64 and are rounded toward zero, as the reference does.
InPlaceFn FloatRow(Unary fn) {
  return [fn](Expressions& x, const CallNode& call, const Indices& indices) {
    const Value value = x.Operand(call, 0, indices);
    if (IsFloat(value)) return fn(x.math(), value, call);
    const Value result = fn(x.math(), x.math().Convert(value, kFloat64), call);
    return result.kind == ElementKind::kDouble ? x.math().Convert(result, ResultType(call)) : result;
  };
}

/// Functions of any kind of element.
InPlaceFn UnaryRow(Unary fn) {
  return [fn](Expressions& x, const CallNode& call, const Indices& indices) {
    return x.math().Wrap(fn(x.math(), x.Operand(call, 0, indices), call), ResultType(call));
  };
}

Value AsInteger(VectorMath& m, const Value& x) { return x.kind == ElementKind::kBool ? m.Convert(x, kInt64) : x; }

/// Truth values count as the integers 0 and 1.
InPlaceFn BinaryRow(Binary fn) {
  return [fn](Expressions& x, const CallNode& call, const Indices& indices) {
    VectorMath& m = x.math();
    const Value a = AsInteger(m, x.Operand(call, 0, indices));
    const Value result = fn(m, a, AsInteger(m, x.Operand(call, 1, indices)));
    const DataType dtype = ResultType(call);
    if (dtype.is_bool() && result.kind != ElementKind::kBool) return m.Convert(result, kBool);
    return m.Wrap(result, dtype);
  };
}

/// Operators on truth values; numbers are true when they are not 0.
InPlaceFn LogicalRow(const char* op) {
  return [op](Expressions& x, const CallNode& call, const Indices& indices) {
    VectorMath& m = x.math();
    const Value a = m.Convert(x.Operand(call, 0, indices), kBool);
    const Value result = m.Binary(op, a, m.Convert(x.Operand(call, 1, indices), kBool));
    return ResultType(call).is_bool() ? result : m.Convert(result, ResultType(call));
  };
}

Unary Plain(const char* op) {
  return [op](VectorMath& m, const Value& x, const CallNode&) { return m.Unary(op, x); };
}

Binary Comparison(const char* on_floats, const char* on_integers) {
  return [=](VectorMath& m, const Value& a, const Value& b) { return m.Compare(on_floats, on_integers, a, b); };
}

/// Of floats, the floor of the rounded quotient: a product with a reciprocal may be less than 1 where a is b.
Value FloorDivide(VectorMath& m, const Value& a, const Value& b) {
  if (IsFloat(a)) return m.Unary("math.floor", m.DivideExactly(a, b));
  const Value zero = m.Integer(0);
  const Value remainder = m.Remainder(a, b);
  const Value signs_differ = m.Compare("olt", "slt", m.Xor(a, b), zero);
  const Value is_lower = m.And(signs_differ, m.Compare("une", "ne", remainder, zero));
  const Value quotient = m.Divide(a, b);
  return m.Select(is_lower, m.Subtract(quotient, m.Integer(1)), quotient);
}

Value Shift(VectorMath& m, const char* op, const Value& a, const Value& b) {
  return m.Binary(op, a, m.And(b, m.Integer(63)));
}

/// A constant exponent that a few products or a root replace.
Value Power(Expressions& x, const CallNode& call, const Indices& indices) {
  VectorMath& m = x.math();
  const Value base = x.Operand(call, 0, indices);
  const ConstantNode* exponent = As<ConstantNode>(call.args()[1]);
  if (exponent != nullptr && exponent->value().num_elements() == 1 && IsFloat(base)) {
    const double p = exponent->value().At(0);
    if (p == 1) return base;
    if (p == 2) return m.Multiply(base, base);
    if (p == 3) return m.Multiply(m.Multiply(base, base), base);
    if (p == 0.5) return m.Sqrt(base);
    if (p == -0.5) return m.Divide(m.Like(1, base), m.Sqrt(base));
    if (p == -1) return m.Divide(m.Like(1, base), base);
  }
  return m.Wrap(m.Power(base, x.Operand(call, 1, indices)), ResultType(call));
}

void AddFloatFunctions(InPlaceTable& rows) {
  using C = const CallNode&;
  const auto add = [&](const char* name, Unary fn) { rows[name] = FloatRow(std::move(fn)); };
  for (const auto& [name, op] : {std::pair{"asin", "math.asin"},
                                 {"acos", "math.acos"},
                                 {"atan", "math.atan"},
                                 {"sqrt", "math.sqrt"},
                                 {"floor", "math.floor"},
                                 {"ceil", "math.ceil"},
                                 {"round", "math.roundeven"},
                                 {"trunc", "math.trunc"}}) {
    add(name, Plain(op));
  }
  add("tan", [](VectorMath& m, const Value& x, C) {
    return x.kind == ElementKind::kDouble ? m.Unary("math.tan", x) : m.Divide(m.Sin(x), m.Cos(x));
  });
  add("rsqrt", [](VectorMath& m, const Value& x, C) { return m.Divide(m.Like(1, x), m.Sqrt(x)); });
  add("sin", [](VectorMath& m, const Value& x, C) { return m.Sin(x); });
  add("cos", [](VectorMath& m, const Value& x, C) { return m.Cos(x); });
  add("log", [](VectorMath& m, const Value& x, C) { return m.Log(x); });
  add("exp", [](VectorMath& m, const Value& x, C) { return m.Exp(x); });
  add("erf", [](VectorMath& m, const Value& x, C) { return m.Erf(x); });
  add("tanh", [](VectorMath& m, const Value& x, C) { return m.Tanh(x); });
  add("sigmoid", [](VectorMath& m, const Value& x, C) { return m.Sigmoid(x); });
  add("sinh", [](VectorMath& m, const Value& x, C) {
    return m.Multiply(m.Like(0.5, x), m.Subtract(m.Exp(x), m.Exp(m.Negate(x))));
  });
  add("cosh",
      [](VectorMath& m, const Value& x, C) { return m.Multiply(m.Like(0.5, x), m.Add(m.Exp(x), m.Exp(m.Negate(x)))); });
  add("asinh", [](VectorMath& m, const Value& x, C) {
    const Value a = m.Abs(x);
    return m.Binary("math.copysign", m.Log(m.Add(a, m.Sqrt(m.FusedMultiplyAdd(a, a, m.Like(1, x))))), x);
  });
  add("acosh", [](VectorMath& m, const Value& x, C) {
    return m.Log(m.Add(x, m.Sqrt(m.FusedMultiplyAdd(x, x, m.Like(-1, x)))));
  });
  add("atanh", [](VectorMath& m, const Value& x, C) {
    const Value one = m.Like(1, x);
    return m.Multiply(m.Like(0.5, x), m.Log(m.Divide(m.Add(one, x), m.Subtract(one, x))));
  });
  add("nn.leaky_relu", [](VectorMath& m, const Value& x, C call) {
    const Value scaled = m.Multiply(x, m.Like(call.attrs().Double("alpha"), x));
    return m.Select(m.Compare("ogt", "sgt", x, m.Like(0, x)), x, scaled);
  });
}

void AddUnaryRows(InPlaceTable& rows) {
  using C = const CallNode&;
  const auto add = [&](const char* name, Unary fn) { rows[name] = UnaryRow(std::move(fn)); };
  add("abs", [](VectorMath& m, const Value& x, C) { return m.Abs(x); });
  add("negative", [](VectorMath& m, const Value& x, C) { return m.Negate(x); });
  add("sign", [](VectorMath& m, const Value& x, C) { return m.Sign(x); });
  add("copy", [](VectorMath&, const Value& x, C) { return x; });
  add("nn.relu", [](VectorMath& m, const Value& x, C) {
    const Value zero = m.Like(0, x);
    return m.Select(m.Compare("olt", "slt", x, zero), zero, x);
  });
  add("clip", [](VectorMath& m, const Value& x, C call) {
    return m.Limit(x, call.attrs().Double("a_min"), call.attrs().Double("a_max"));
  });
  add("cast", [](VectorMath& m, const Value& x, C call) { return m.Convert(x, call.attrs().Type("dtype")); });
  add("logical_not",
      [](VectorMath& m, const Value& x, C call) { return m.Convert(m.Not(m.Convert(x, kBool)), ResultType(call)); });
  add("bitwise_not", [](VectorMath& m, const Value& x, C) {
    return x.kind == ElementKind::kBool ? m.Not(x) : m.Xor(x, m.Integer(-1));
  });
  add("isnan",
      [](VectorMath& m, const Value& x, C) { return IsFloat(x) ? m.Compare("uno", "ne", x, x) : m.Bool(false); });
  add("isinf", [](VectorMath& m, const Value& x, C) {
    return IsFloat(x) ? m.Compare("oeq", "eq", m.Abs(x), m.Like(INFINITY, x)) : m.Bool(false);
  });
  add("isfinite", [](VectorMath& m, const Value& x, C) {
    return IsFloat(x) ? m.Compare("olt", "slt", m.Abs(x), m.Like(INFINITY, x)) : m.Bool(true);
  });
}

void AddBinaryRows(InPlaceTable& rows) {
  const auto add = [&](const char* name, Binary fn) { rows[name] = BinaryRow(std::move(fn)); };
  using V = const Value&;
  add("add", [](VectorMath& m, V a, V b) { return m.Add(a, b); });
  add("subtract", [](VectorMath& m, V a, V b) { return m.Subtract(a, b); });
  add("multiply", [](VectorMath& m, V a, V b) { return m.Multiply(a, b); });
  add("divide", [](VectorMath& m, V a, V b) { return m.Divide(a, b); });
  add("mod", [](VectorMath& m, V a, V b) { return m.Remainder(a, b); });
  add("floor_divide", FloorDivide);
  add("floor_mod", [](VectorMath& m, V a, V b) {
    const Value remainder = m.Subtract(a, m.Multiply(FloorDivide(m, a, b), b));
    if (!IsFloat(a)) return m.Select(m.Compare("oeq", "eq", b, m.Integer(0)), m.Integer(0), remainder);
    // A quotient just below a whole number may have been rounded up to it.
    const Value is_beyond = m.Compare("olt", "slt", m.Multiply(remainder, b), m.Like(0, a));
    return m.Select(is_beyond, m.Add(remainder, b), remainder);
  });
  add("maximum", [](VectorMath& m, V a, V b) { return m.Maximum(a, b); });
  add("minimum", [](VectorMath& m, V a, V b) { return m.Minimum(a, b); });
  add("bitwise_and", [](VectorMath& m, V a, V b) { return m.And(a, b); });
  add("bitwise_or", [](VectorMath& m, V a, V b) { return m.Or(a, b); });
  add("bitwise_xor", [](VectorMath& m, V a, V b) { return m.Xor(a, b); });
  add("left_shift", [](VectorMath& m, V a, V b) { return Shift(m, "arith.shli", a, b); });
  add("right_shift", [](VectorMath& m, V a, V b) { return Shift(m, "arith.shrsi", a, b); });
  add("equal", Comparison("oeq", "eq"));
  add("not_equal", Comparison("une", "ne"));
  add("less", Comparison("olt", "slt"));
  add("less_equal", Comparison("ole", "sle"));
  add("greater", Comparison("ogt", "sgt"));
  add("greater_equal", Comparison("oge", "sge"));
  rows["logical_and"] = LogicalRow("arith.andi");
  rows["logical_or"] = LogicalRow("arith.ori");
  rows["logical_xor"] = LogicalRow("arith.xori");
  rows["power"] = Power;
}

}  // namespace

void AddElementwiseRows(InPlaceTable& rows) {
  AddFloatFunctions(rows);
  AddUnaryRows(rows);
  AddBinaryRows(rows);
  rows["where"] = [](Expressions& x, const CallNode& call, const Indices& indices) {
    const Value condition = x.math().Convert(x.Operand(call, 0, indices), kBool);
    const Value a = x.Operand(call, 1, indices);
    return x.math().Select(condition, a, x.Operand(call, 2, indices));
  };
  rows["nn.bias_add"] = [](Expressions& x, const CallNode& call, const Indices& indices) {
    const Value data = x.At(call.args()[0], indices);
    return x.math().Add(data, x.At(call.args()[1], {indices[AxisAttr(call, "axis", indices.size())]}));
  };
  rows["nn.prelu"] = [](Expressions& x, const CallNode& call, const Indices& indices) {
    const Value data = x.At(call.args()[0], indices);
    const Value alpha = x.At(call.args()[1], {indices[AxisAttr(call, "axis", indices.size())]});
    return x.math().Select(x.math().Compare("ogt", "sgt", data, x.math().Like(0, data)), data,
                           x.math().Multiply(data, alpha));
  };
}

}  // namespace collage::native
