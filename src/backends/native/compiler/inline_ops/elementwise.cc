// elementwise.cc: operators that compute each element from the same element of their arguments.
#include <array>
#include <cmath>

#include "backends/native/compiler/inline_ops/inline_ops.h"
#include "collage/support/error.h"

namespace collage::native::inline_ops {

DataType ResultType(const CallNode& call) { return AsTensorType(call.checked_type())->dtype(); }

InPlaceFn Floats(Unary fn) {
  return [fn](Expressions& x, const CallNode& call, const Indices& indices) {
    const Value value = x.Operand(call, 0, indices);
    if (IsFloat(value)) return fn(x.math(), value, call);
    const Value result = fn(x.math(), x.math().Convert(value, kFloat64), call);
    return result.kind == ElementKind::kDouble ? x.math().Convert(result, ResultType(call)) : result;
  };
}

InPlaceFn Floats(const char* op) {
  return Floats([op](M& m, V x, C) { return m.Unary(op, x); });
}

InPlaceFn Each(Unary fn) {
  return [fn](Expressions& x, const CallNode& call, const Indices& indices) {
    return x.math().Wrap(fn(x.math(), x.Operand(call, 0, indices), call), ResultType(call));
  };
}

namespace {

Value AsInteger(VectorMath& m, const Value& x) { return x.kind == ElementKind::kBool ? m.Convert(x, kInt64) : x; }

}  // namespace

InPlaceFn Pairs(Binary fn) {
  return [fn](Expressions& x, const CallNode& call, const Indices& indices) {
    VectorMath& m = x.math();
    const Value a = AsInteger(m, x.Operand(call, 0, indices));
    const Value result = fn(m, a, AsInteger(m, x.Operand(call, 1, indices)));
    const DataType dtype = ResultType(call);
    if (dtype.is_bool() && result.kind != ElementKind::kBool) return m.Convert(result, kBool);
    return m.Wrap(result, dtype);
  };
}

InPlaceFn Logical(const char* op) {
  return [op](Expressions& x, const CallNode& call, const Indices& indices) {
    VectorMath& m = x.math();
    const Value a = m.Convert(x.Operand(call, 0, indices), kBool);
    const Value result = m.Binary(op, a, m.Convert(x.Operand(call, 1, indices), kBool));
    return ResultType(call).is_bool() ? result : m.Convert(result, ResultType(call));
  };
}

InPlaceFn Compares(const char* on_floats, const char* on_integers) {
  return Pairs([=](M& m, V a, V b) { return m.Compare(on_floats, on_integers, a, b); });
}

Value FloorDivide(VectorMath& m, const Value& a, const Value& b) {
  if (IsFloat(a)) return m.Unary("math.floor", m.DivideExactly(a, b));
  const Value zero = m.Integer(0);
  const Value remainder = m.Remainder(a, b);
  const Value signs_differ = m.Compare("olt", "slt", m.Xor(a, b), zero);
  const Value is_lower = m.And(signs_differ, m.Compare("une", "ne", remainder, zero));
  const Value quotient = m.Divide(a, b);
  return m.Select(is_lower, m.Subtract(quotient, m.Integer(1)), quotient);
}

Value LeftShift(VectorMath& m, const Value& a, const Value& b) {
  const Value is_beyond = m.Compare("ugt", "ugt", b, m.Integer(63));
  return m.Select(is_beyond, m.Integer(0), m.Binary("arith.shli", a, m.And(b, m.Integer(63))));
}

Value RightShift(VectorMath& m, const Value& a, const Value& b) {
  const Value is_beyond = m.Compare("ugt", "ugt", b, m.Integer(63));
  return m.Binary("arith.shrsi", a, m.Select(is_beyond, m.Integer(63), b));
}

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

Value Asinh(M& m, V x, C) {
  const Value a = m.Abs(x);
  return m.Binary("math.copysign", m.Log(m.Add(a, m.Sqrt(m.FusedMultiplyAdd(a, a, m.Like(1, x))))), x);
}

Value Acosh(M& m, V x, C) { return m.Log(m.Add(x, m.Sqrt(m.FusedMultiplyAdd(x, x, m.Like(-1, x))))); }

Value Atanh(M& m, V x, C) {
  const Value one = m.Like(1, x);
  return m.Multiply(m.Like(0.5, x), m.Log(m.Divide(m.Add(one, x), m.Subtract(one, x))));
}

Value LeakyRelu(M& m, V x, C call) {
  const Value scaled = m.Multiply(x, m.Like(call.attrs().Double("alpha"), x));
  return m.Select(m.Compare("ogt", "sgt", x, m.Like(0, x)), x, scaled);
}

Value Relu(M& m, V x, C) {
  const Value zero = m.Like(0, x);
  return m.Select(m.Compare("olt", "slt", x, zero), zero, x);
}

Value FloorMod(M& m, V a, V b) {
  if (!IsFloat(a)) {
    const Value remainder = m.Subtract(a, m.Multiply(FloorDivide(m, a, b), b));
    return m.Select(m.Compare("oeq", "eq", b, m.Integer(0)), m.Integer(0), remainder);
  }
  // The remainder that `mod` has is exact; a quotient that is rounded would lose it where it is large.
  const Value zero = m.Like(0, a), remainder = m.Remainder(a, b);
  const auto is_negative = [&](V x) { return m.Compare("olt", "slt", x, zero); };
  const Value signs_differ = m.Xor(is_negative(remainder), is_negative(b));
  const Value moved = m.Select(signs_differ, m.Add(remainder, b), remainder);
  return m.Select(m.Compare("oeq", "eq", remainder, zero), m.Binary("math.copysign", zero, b), moved);
}

Value Where(X& x, C call, I indices) {
  const Value condition = x.math().Convert(x.Operand(call, 0, indices), kBool);
  const Value a = x.Operand(call, 1, indices);
  return x.math().Select(condition, a, x.Operand(call, 2, indices));
}

Value BiasAdd(X& x, C call, I indices) {
  const Value data = x.At(call.args()[0], indices);
  return x.math().Add(data, x.At(call.args()[1], {indices[AxisAttr(call, "axis", indices.size())]}));
}

Value Prelu(X& x, C call, I indices) {
  const Value data = x.At(call.args()[0], indices);
  const Value alpha = x.At(call.args()[1], {indices[AxisAttr(call, "axis", indices.size())]});
  return x.math().Select(x.math().Compare("ogt", "sgt", data, x.math().Like(0, data)), data,
                         x.math().Multiply(data, alpha));
}

}  // namespace collage::native::inline_ops
