// elementwise.cc: operators that compute each element from the same element of each (broadcast) argument.
#include <fmt/format.h>

#include <cmath>

#include "ir/eval/rounding.h"
#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"
#include "runtime/dispatch.h"

namespace collage {
namespace {

using UnaryFn = double (*)(double);

Type SameType(const OpCall& call) {
  TensorArg(call, 0);
  return call.args[0];
}

Type BoolLikeFirst(const OpCall& call) { return TensorType(TensorArg(call, 0).shape(), kBool); }

ReferenceFn UnaryReference(UnaryFn fn) {
  return [fn](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    const int64_t count = inputs[0].num_elements();
    DispatchType(inputs[0].dtype(), [&]<typename From>() {
      DispatchType(outputs[0].dtype(), [&]<typename To>() {
        const From* x = inputs[0].data<From>();
        To* y = outputs[0].data<To>();
        for (int64_t i = 0; i < count; ++i) y[i] = FromDouble<To>(fn(ToDouble(x[i])));
      });
    });
  };
}

OpDef Unary(std::string name, std::string doc, UnaryFn fn, double low = -1, double high = 1) {
  OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.args = {"data"};
  op.pattern = OpPatternKind::kElemWise;
  op.relation = Relation(SameType);
  op.reference = UnaryReference(fn);
  op.layout_agnostic = true;
  SetElementwise(op);
  op.examples = {{{F32({2, 3, 5, 7})}, {}, low, high}, {{F32({1, 33})}, {}, low, high}, {{F32({})}, {}, low, high}};
  return op;
}

OpDef Predicate(std::string name, std::string doc, UnaryFn fn) {
  OpDef op = Unary(std::move(name), std::move(doc), fn);
  op.relation = Relation(BoolLikeFirst);
  return op;
}

/// `op`, whose results are as exact as its arguments.
OpDef Exact(OpDef op) {
  op.is_exact = true;
  return op;
}

using BinaryFn = double (*)(double, double);
using IntegerFn = int64_t (*)(int64_t, int64_t);

/// Visits the elements of a broadcast result: `visit(result offset, offset in a, offset in b)`.
template <typename Visit>
void ForEachBroadcast(const Shape& a, const Shape& b, const Shape& result, Visit&& visit) {
  const std::vector<int64_t> a_strides = BroadcastStrides(a, result);
  const std::vector<int64_t> b_strides = BroadcastStrides(b, result);
  const size_t rank = result.size();
  const int64_t inner = rank == 0 ? 1 : result[rank - 1];
  const int64_t a_step = rank == 0 ? 0 : a_strides[rank - 1];
  const int64_t b_step = rank == 0 ? 0 : b_strides[rank - 1];
  const int64_t count = NumElements(result);
  std::vector<int64_t> index(rank, 0);
  for (int64_t i = 0; i < count; i += inner) {
    const int64_t a0 = Offset(index, a_strides);
    const int64_t b0 = Offset(index, b_strides);
    for (int64_t j = 0; j < inner; ++j) visit(i + j, a0 + j * a_step, b0 + j * b_step);
    for (size_t d = rank - 1; rank > 0 && d-- > 0;) {
      if (++index[d] < result[d]) break;
      index[d] = 0;
    }
  }
}

Type BroadcastRelation(const OpCall& call) {
  const TensorTypeNode& a = TensorArg(call, 0);
  const TensorTypeNode& b = TensorArg(call, 1);
  if (a.dtype() != b.dtype()) {
    throw RelationFailure{
        fmt::format("expects equal dtypes, got {} and {}", ToString(call.args[0]), ToString(call.args[1]))};
  }
  return TensorType(BroadcastShapes(a.shape(), b.shape()), a.dtype());
}

Type BroadcastBoolRelation(const OpCall& call) {
  return TensorType(AsTensorType(BroadcastRelation(call))->shape(), kBool);
}

ReferenceFn BinaryReference(BinaryFn fn, IntegerFn integer_fn) {
  return [fn, integer_fn](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    DispatchType(inputs[0].dtype(), [&]<typename From>() {
      DispatchType(outputs[0].dtype(), [&]<typename To>() {
        const From* a = inputs[0].data<From>();
        const From* b = inputs[1].data<From>();
        To* y = outputs[0].data<To>();
        ForEachBroadcast(inputs[0].shape(), inputs[1].shape(), outputs[0].shape(),
                         [&](int64_t o, int64_t i, int64_t j) {
                           if constexpr (std::is_integral_v<From>) {
                             const int64_t value = integer_fn(static_cast<int64_t>(a[i]), static_cast<int64_t>(b[j]));
                             y[o] = ConvertElement<To>(value);
                           } else if constexpr (std::is_same_v<From, BoolByte>) {
                             y[o] = ConvertElement<To>(integer_fn(a[i].value, b[j].value));
                           } else {
                             y[o] = FromDouble<To>(fn(ToDouble(a[i]), ToDouble(b[j])));
                           }
                         });
      });
    });
  };
}

OpDef Binary(std::string name, std::string doc, BinaryFn fn, IntegerFn integer_fn, double low = -1, double high = 1) {
  OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.args = {"lhs", "rhs"};
  op.pattern = OpPatternKind::kBroadcast;
  op.relation = Relation(BroadcastRelation);
  op.reference = BinaryReference(fn, integer_fn);
  op.layout_agnostic = true;
  SetElementwise(op);
  op.examples = {{{F32({2, 3, 5, 7}), F32({2, 3, 5, 7})}, {}, low, high},
                 {{F32({2, 3, 5, 7}), F32({3, 1, 1})}, {}, low, high},
                 {{F32({1, 5, 1}), F32({4, 1, 9})}, {}, low, high},
                 {{F32({8, 33}), F32({})}, {}, low, high}};
  return op;
}

OpDef Comparison(std::string name, std::string doc, BinaryFn fn, IntegerFn integer_fn) {
  OpDef op = Binary(std::move(name), std::move(doc), fn, integer_fn);
  op.relation = Relation(BroadcastBoolRelation);
  op.constant_hint = ConstantHint::kBeyond;
  return op;
}

OpDef Equality(std::string name, std::string doc, BinaryFn fn, IntegerFn integer_fn) {
  OpDef op = Comparison(std::move(name), std::move(doc), fn, integer_fn);
  op.constant_hint = ConstantHint::kUpTo;
  return op;
}

OpDef Modulo(std::string name, std::string doc, BinaryFn fn, IntegerFn integer_fn) {
  OpDef op = Binary(std::move(name), std::move(doc), fn, integer_fn, 0.5, 2);
  op.constant_hint = ConstantHint::kUpTo;
  return op;
}

/// The larger or the smaller of two.
OpDef Choice(std::string name, std::string doc, BinaryFn fn, IntegerFn integer_fn) {
  OpDef op = Exact(Binary(std::move(name), std::move(doc), fn, integer_fn));
  op.value_sources = {0, 1};
  op.constant_hint = ConstantHint::kUpTo;
  return op;
}

OpDef Logical(std::string name, std::string doc, BinaryFn fn, IntegerFn integer_fn) {
  OpDef op = Binary(std::move(name), std::move(doc), fn, integer_fn);
  op.examples = {{{TensorType(Shape{2, 9}, kBool), TensorType(Shape{9}, kBool)}, {}}};
  return op;
}

OpDef Bitwise(std::string name, std::string doc, IntegerFn integer_fn) {
  OpDef op = Binary(
      std::move(name), std::move(doc), [](double, double) { return 0.0; }, integer_fn);
  op.relation = Relation([](const OpCall& call) {
    if (TensorArg(call, 0).dtype().is_floating()) {
      throw RelationFailure{"expects integers, got " + ToString(call.args[0])};
    }
    return BroadcastRelation(call);
  });
  op.examples = {{{I64({2, 9}), I64({9})}, {}, 0, 20}};
  return op;
}

// Integers wrap around; what is divided by 0 is 0. Dividing by -1 is negating, which wraps for the smallest number.
int64_t Wrapped(uint64_t a) { return static_cast<int64_t>(a); }
uint64_t Bits(int64_t a) { return static_cast<uint64_t>(a); }
int64_t Divide(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? Wrapped(-Bits(a)) : a / b; }
int64_t Remainder(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
int64_t FloorDivide(int64_t a, int64_t b) {
  return Divide(a, b) - (Remainder(a, b) != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
int64_t FloorRemainder(int64_t a, int64_t b) {
  const int64_t remainder = Remainder(a, b);
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

// Shifting by more bits than there are shifts everything out, as shifting by a negative number does.
int64_t LeftShift(int64_t a, int64_t b) {
  return b < 0 || b > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
}
int64_t RightShift(int64_t a, int64_t b) { return b < 0 || b > 63 ? (a < 0 ? -1 : 0) : a >> b; }

/// The remainder with the sign of `b`, zeros included; -1 mod infinity is infinity.
double FloorMod(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

int64_t IntegerPower(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0;
  uint64_t result = 1;
  for (auto factor = static_cast<uint64_t>(base); exponent > 0; exponent /= 2, factor *= factor) {
    if (exponent % 2 != 0) result *= factor;
  }
  return static_cast<int64_t>(result);
}

OpDef Clip() {
  OpDef op = Exact(Unary("clip", "Limits every element to [a_min, a_max].", [](double x) { return x; }));
  op.value_sources = {0};
  op.attrs = {{"a_min", AttrKind::kDouble, {}, "lower bound", true},
              {"a_max", AttrKind::kDouble, {}, "upper bound", true}};
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const double low = attrs.Double("a_min");
    const double high = attrs.Double("a_max");
    DispatchType(inputs[0].dtype(), [&]<typename T>() {
      for (int64_t i = 0; i < inputs[0].num_elements(); ++i) {
        const double x = ToDouble(inputs[0].data<T>()[i]);
        outputs[0].data<T>()[i] = std::isnan(x) ? FromDouble<T>(x) : FromDouble<T>(std::min(std::max(x, low), high));
      }
    });
  };
  op.examples = {{{F32({2, 3, 5, 7})}, {{"a_min", -0.5}, {"a_max", 0.25}}},
                 {{F32({17})}, {{"a_min", 0.0}, {"a_max", 6.0}}, -9, 9}};
  return op;
}

OpDef LeakyRelu() {
  OpDef op = Unary("nn.leaky_relu", "x where x > 0, else alpha * x.", [](double x) { return x; });
  op.attrs = {{"alpha", AttrKind::kDouble, 0.25, "slope for negative elements"}};
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const double alpha = attrs.Double("alpha");
    for (int64_t i = 0; i < inputs[0].num_elements(); ++i) {
      const double x = inputs[0].At(i);
      outputs[0].Set(i, x > 0 ? x : alpha * x);
    }
  };
  op.examples = {{{F32({2, 3, 5, 7})}, {{"alpha", 0.1}}}};
  return op;
}

OpDef Round() {
  OpDef op = Exact(Unary("round", "Nearest integer, ties to even.", [](double x) { return std::nearbyint(x); }));
  op.random_rounding = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs, uint64_t seed) {
    Rounder round = Rounder::AtRandom(seed);
    for (int64_t i = 0; i < inputs[0].num_elements(); ++i) outputs[0].Set(i, round(inputs[0].At(i)));
  };
  return op;
}

OpDef Cast() {
  OpDef op = Unary("cast", "Converts every element to another dtype.", [](double x) { return x; });
  op.value_sources = {0};
  op.attrs = {{"dtype", AttrKind::kDType, {}, "the dtype of the result", true}};
  op.relation =
      Relation([](const OpCall& call) { return TensorType(TensorArg(call, 0).shape(), call.attrs.Type("dtype")); });
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    outputs[0] = inputs[0].Cast(outputs[0].dtype());
  };
  op.examples = {{{I64({3, 7})}, {{"dtype", "float32"}}, 0, 9},
                 {{F32({3, 17})}, {{"dtype", "int64"}}, -9, 9},
                 {{F32({3, 17})}, {{"dtype", "float16"}}},
                 {{TensorType(Shape{19}, kBool)}, {{"dtype", "float32"}}}};
  return op;
}

OpDef BitwiseNot() {
  OpDef op = Unary("bitwise_not", "Inverted bits.", [](double x) { return x; });
  op.relation = Relation([](const OpCall& call) {
    if (!TensorArg(call, 0).dtype().is_integer())
      throw RelationFailure{"expects integers, got " + ToString(call.args[0])};
    return call.args[0];
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    DispatchType(inputs[0].dtype(), [&]<typename T>() {
      if constexpr (std::is_integral_v<T>) {
        for (int64_t i = 0; i < inputs[0].num_elements(); ++i)
          outputs[0].data<T>()[i] = static_cast<T>(~inputs[0].data<T>()[i]);
      }
    });
  };
  op.examples = {{{I64({2, 9})}, {}, 0, 20}};
  return op;
}

/// Negates integers, unsigned ones too, modulo the size of their type.
OpDef Negative() {
  OpDef op = Exact(Unary("negative", "-x.", [](double x) { return -x; }));
  op.reference = [of_others = op.reference](std::span<const Tensor> inputs, const Attrs& attrs,
                                            std::span<Tensor> outputs) {
    DispatchType(inputs[0].dtype(), [&]<typename T>() {
      if constexpr (std::is_integral_v<T>) {
        for (int64_t i = 0; i < inputs[0].num_elements(); ++i) {
          outputs[0].data<T>()[i] = static_cast<T>(0 - static_cast<uint64_t>(inputs[0].data<T>()[i]));
        }
      } else {
        of_others(inputs, attrs, outputs);
      }
    });
  };
  return op;
}

OpDef Where() {
  OpDef op;
  op.name = "where";
  op.doc = "Elements of x where the condition holds, of y elsewhere.";
  op.args = {"condition", "x", "y"};
  op.pattern = OpPatternKind::kBroadcast;
  op.layout_agnostic = true;
  SetElementwise(op);
  op.is_exact = true;
  op.value_sources = {1, 2};
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& x = TensorArg(call, 1);
    const TensorTypeNode& y = TensorArg(call, 2);
    if (x.dtype() != y.dtype()) {
      throw RelationFailure{
          fmt::format("expects equal dtypes, got {} and {}", ToString(call.args[1]), ToString(call.args[2]))};
    }
    return TensorType(BroadcastShapes(TensorArg(call, 0).shape(), BroadcastShapes(x.shape(), y.shape())), x.dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    const Shape& shape = outputs[0].shape();
    const auto c = BroadcastStrides(inputs[0].shape(), shape);
    const auto x = BroadcastStrides(inputs[1].shape(), shape);
    const auto y = BroadcastStrides(inputs[2].shape(), shape);
    int64_t o = 0;
    ForEachIndex(shape, [&](const std::vector<int64_t>& index) {
      const bool holds = inputs[0].At(Offset(index, c)) != 0;
      CopyElement(holds ? inputs[1] : inputs[2], Offset(index, holds ? x : y), outputs[0], o++);
    });
  };
  const Type mask = TensorType(Shape{1, 1, 4, 9}, kBool);
  op.examples = {{{mask, F32({2, 3, 4, 9}), F32({})}, {}}, {{mask, F32({1, 1, 4, 9}), F32({1, 1, 4, 9})}, {}}};
  return op;
}

void AddUnary(std::vector<OpDef>& rows) {
  rows.push_back(Exact(Unary("nn.relu", "max(x, 0).", [](double x) { return x > 0 ? x : (std::isnan(x) ? x : 0.0); })));
  rows.push_back(Unary("sigmoid", "1 / (1 + exp(-x)).", [](double x) { return 1 / (1 + std::exp(-x)); }));
  rows.push_back(Unary("tanh", "Hyperbolic tangent.", [](double x) { return std::tanh(x); }));
  rows.push_back(Unary("exp", "e to the x.", [](double x) { return std::exp(x); }));
  rows.push_back(Unary(
      "log", "Natural logarithm.", [](double x) { return std::log(x); }, 0.1, 4));
  rows.push_back(Unary(
      "sqrt", "Square root.", [](double x) { return std::sqrt(x); }, 0, 4));
  rows.push_back(Unary(
      "rsqrt", "1 / sqrt(x).", [](double x) { return 1 / std::sqrt(x); }, 0.1, 4));
  rows.push_back(Unary("erf", "Error function.", [](double x) { return std::erf(x); }));
  rows.push_back(Negative());
  rows.push_back(Exact(Unary("abs", "Magnitude.", [](double x) { return std::abs(x); })));
  rows.push_back(Exact(Unary("floor", "Largest integer not above x.", [](double x) { return std::floor(x); })));
  rows.push_back(Exact(Unary("ceil", "Smallest integer not below x.", [](double x) { return std::ceil(x); })));
  rows.push_back(Round());
  rows.push_back(Exact(Unary("trunc", "Rounds toward zero.", [](double x) { return std::trunc(x); })));
  rows.push_back(Exact(Unary("sign", "-1, 0 or 1.", [](double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; })));
  rows.push_back(Unary("sin", "Sine.", [](double x) { return std::sin(x); }));
  rows.push_back(Unary("cos", "Cosine.", [](double x) { return std::cos(x); }));
  rows.push_back(Unary("tan", "Tangent.", [](double x) { return std::tan(x); }));
  rows.push_back(Unary("asin", "Inverse sine.", [](double x) { return std::asin(x); }));
  rows.push_back(Unary("acos", "Inverse cosine.", [](double x) { return std::acos(x); }));
  rows.push_back(Unary("atan", "Inverse tangent.", [](double x) { return std::atan(x); }));
  rows.push_back(Unary("sinh", "Hyperbolic sine.", [](double x) { return std::sinh(x); }));
  rows.push_back(Unary("cosh", "Hyperbolic cosine.", [](double x) { return std::cosh(x); }));
  rows.push_back(Unary("asinh", "Inverse hyperbolic sine.", [](double x) { return std::asinh(x); }));
  rows.push_back(Unary(
      "acosh", "Inverse hyperbolic cosine.", [](double x) { return std::acosh(x); }, 1.1, 4));
  rows.push_back(Unary(
      "atanh", "Inverse hyperbolic tangent.", [](double x) { return std::atanh(x); }, -0.9, 0.9));
  rows.push_back(Exact(Unary("copy", "The same elements.", [](double x) { return x; })));
  SetMovesElements(rows.back());
  rows.push_back(Unary("logical_not", "Not.", [](double x) { return x == 0 ? 1.0 : 0.0; }));
  rows.back().examples = {{{TensorType(Shape{19}, kBool)}, {}}};
  rows.push_back(BitwiseNot());
  rows.push_back(Predicate("isnan", "Whether x is not a number.", [](double x) { return std::isnan(x) ? 1.0 : 0.0; }));
  rows.push_back(Predicate("isinf", "Whether x is infinite.", [](double x) { return std::isinf(x) ? 1.0 : 0.0; }));
  rows.push_back(Predicate("isfinite", "Whether x is finite.", [](double x) { return std::isfinite(x) ? 1.0 : 0.0; }));
}

void AddArithmetic(std::vector<OpDef>& rows) {
  using I = int64_t;
  rows.push_back(Binary(
      "add", "a + b.", [](double a, double b) { return a + b; }, [](I a, I b) { return Wrapped(Bits(a) + Bits(b)); }));
  rows.push_back(Binary(
      "subtract", "a - b.", [](double a, double b) { return a - b; },
      [](I a, I b) { return Wrapped(Bits(a) - Bits(b)); }));
  rows.push_back(Binary(
      "multiply", "a * b.", [](double a, double b) { return a * b; },
      [](I a, I b) { return Wrapped(Bits(a) * Bits(b)); }));
  rows.push_back(Binary(
      "divide", "a / b; integers truncate.", [](double a, double b) { return a / b; }, Divide, 0.5, 2));
  rows.push_back(Binary(
      "power", "a to the b.", [](double a, double b) { return std::pow(a, b); }, IntegerPower, 0.5, 2));
  rows.push_back(Modulo(
      "mod", "Remainder with the sign of a.", [](double a, double b) { return std::fmod(a, b); }, Remainder));
  rows.push_back(Modulo("floor_mod", "Remainder with the sign of b.", FloorMod, FloorRemainder));
  rows.push_back(Binary(
      "floor_divide", "floor(a / b).", [](double a, double b) { return std::floor(a / b); }, FloorDivide, 0.5, 2));
  rows.push_back(Choice(
      "maximum", "The larger.", [](double a, double b) { return std::isnan(a) || a > b ? a : b; },
      [](I a, I b) -> I { return std::max(a, b); }));
  rows.push_back(Choice(
      "minimum", "The smaller.", [](double a, double b) { return std::isnan(a) || a < b ? a : b; },
      [](I a, I b) -> I { return std::min(a, b); }));
}

void AddComparisons(std::vector<OpDef>& rows) {
  using I = int64_t;
  rows.push_back(Equality(
      "equal", "a == b.", [](double a, double b) { return a == b ? 1.0 : 0.0; }, [](I a, I b) -> I { return a == b; }));
  rows.push_back(Equality(
      "not_equal", "a != b.", [](double a, double b) { return a != b ? 1.0 : 0.0; },
      [](I a, I b) -> I { return a != b; }));
  rows.push_back(Comparison(
      "less", "a < b.", [](double a, double b) { return a < b ? 1.0 : 0.0; }, [](I a, I b) -> I { return a < b; }));
  rows.push_back(Comparison(
      "less_equal", "a <= b.", [](double a, double b) { return a <= b ? 1.0 : 0.0; },
      [](I a, I b) -> I { return a <= b; }));
  rows.push_back(Comparison(
      "greater", "a > b.", [](double a, double b) { return a > b ? 1.0 : 0.0; }, [](I a, I b) -> I { return a > b; }));
  rows.push_back(Comparison(
      "greater_equal", "a >= b.", [](double a, double b) { return a >= b ? 1.0 : 0.0; },
      [](I a, I b) -> I { return a >= b; }));
}

void AddLogic(std::vector<OpDef>& rows) {
  using I = int64_t;
  rows.push_back(Logical(
      "logical_and", "a and b.", [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; },
      [](I a, I b) -> I { return a != 0 && b != 0; }));
  rows.push_back(Logical(
      "logical_or", "a or b.", [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; },
      [](I a, I b) -> I { return a != 0 || b != 0; }));
  rows.push_back(Logical(
      "logical_xor", "Either, not both.", [](double a, double b) { return (a != 0) != (b != 0) ? 1.0 : 0.0; },
      [](I a, I b) -> I { return (a != 0) != (b != 0); }));
  rows.push_back(Bitwise("bitwise_and", "Bits of both.", [](I a, I b) -> I { return a & b; }));
  rows.push_back(Bitwise("bitwise_or", "Bits of either.", [](I a, I b) -> I { return a | b; }));
  rows.push_back(Bitwise("bitwise_xor", "Bits of one of both.", [](I a, I b) -> I { return a ^ b; }));
  rows.push_back(Bitwise("left_shift", "a times 2 to the b.", LeftShift));
  rows.push_back(Bitwise("right_shift", "a over 2 to the b.", RightShift));
}

}  // namespace

void AddElementwiseOps(std::vector<OpDef>& rows) {
  AddUnary(rows);
  AddArithmetic(rows);
  AddComparisons(rows);
  AddLogic(rows);
  rows.push_back(Clip());
  rows.push_back(LeakyRelu());
  rows.push_back(Cast());
  rows.push_back(Where());
}

}  // namespace collage
