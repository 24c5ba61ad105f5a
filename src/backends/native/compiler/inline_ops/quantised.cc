// quantised.cc: between numbers and the integers that stand for them, in registers.
#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/native/compiler/inline_ops/inline_ops.h"

namespace collage::native {
namespace {

DataType ResultType(const CallNode& call) { return AsTensorType(call.checked_type())->dtype(); }

/// The element of a parameter that has one value per index of attribute axis.
Value PerChannel(Expressions& x, const CallNode& call, size_t argument, const Indices& indices) {
  const Expr& parameter = call.args()[argument];
  if (NumElements(ShapeOf(parameter)) == 1) {
    return x.At(parameter, Indices(ShapeOf(parameter).size(), x.emitter().Zero()));
  }
  return x.At(parameter, {indices[AxisAttr(call, "axis", indices.size())]});
}

/// Scale and zero point of a call that has one of each, both known, and a scale whose reciprocal is an ordinary number.
struct Steps {
  float scale = 1;
  int64_t zero = 0;
};

std::optional<Steps> StepsOf(const CallNode& call) {
  const ConstantNode* scale = As<ConstantNode>(call.args()[1]);
  const ConstantNode* zero = As<ConstantNode>(call.args()[2]);
  if (scale == nullptr || zero == nullptr) return std::nullopt;
  if (scale->value().num_elements() != 1 || zero->value().num_elements() != 1) return std::nullopt;
  const auto step = static_cast<float>(scale->value().At(0));
  constexpr float kLeast = 1e-30F;
  if (!(step >= kLeast && step <= 1 / kLeast)) return std::nullopt;
  return Steps{step, static_cast<int64_t>(zero->value().At(0))};
}

/// Returns a bound of the magnitudes of `expr`'s elements, none of which is infinite or NaN then; nothing if none is
/// known, or finding it takes more than `left` looks.
std::optional<double> MagnitudeOf(const Expr& expr, int& left) {
  constexpr double kMost = 1e30;
  const auto limited = [](double bound) { return bound < kMost ? std::optional(bound) : std::nullopt; };
  const TensorTypeNode* type = AsTensorType(expr->checked_type());
  if (type == nullptr || left-- == 0) return std::nullopt;
  if (type->dtype().is_integer()) return std::ldexp(1.0, type->dtype().bits);
  if (const ConstantNode* constant = As<ConstantNode>(expr)) {
    double bound = 0;
    for (int64_t i = 0; i < constant->value().num_elements(); ++i) {
      const double magnitude = std::abs(constant->value().At(i));
      if (!(magnitude < kMost)) return std::nullopt;
      bound = std::max(bound, magnitude);
    }
    return bound;
  }
  const CallNode* call = As<CallNode>(expr);
  if (call == nullptr || call->op() == nullptr) return std::nullopt;
  const std::string& name = call->op()->name;
  const auto of = [&](size_t i) { return MagnitudeOf(call->args()[i], left); };
  if (name == "nn.relu" || name == "copy" || name == "nn.max_pool2d" || name == "nn.global_avg_pool2d") return of(0);
  const bool is_product = name == "nn.conv2d" || name == "nn.dense" || name == "nn.matmul";
  const bool is_sum = name == "add" || name == "subtract" || name == "nn.bias_add";
  if (name == "qnn.dequantize") {
    const std::optional<double> data = of(0), scale = of(1), zero = of(2);
    return data && scale && zero ? limited((*data + *zero) * *scale) : std::nullopt;
  }
  if (!is_product && !is_sum) return std::nullopt;
  const std::optional<double> a = of(0);
  const std::optional<double> b = a ? of(1) : std::nullopt;
  if (!b) return std::nullopt;
  if (is_sum) return limited(*a + *b);
  return limited(*a * *b * static_cast<double>(NumElements(ShapeOf(call->args()[1]))));
}

/// A vector of int32.
std::string Int32Vector(Emitter& e) { return fmt::format("vector<{}xi32>", e.lanes()); }

Vector Int32(Emitter& e, int64_t value) {
  return Vector{e.Def(fmt::format("arith.constant dense<{}> : {}", value, Int32Vector(e)))};
}

/// Numbers by known steps, as integers of up to 16 bits. Limited first, there is nothing to be limited later. The
/// quotient is that of a division: x times the reciprocal, and what this misses (Markstein 1990). Adding 1.5 * 2^23
/// leaves the whole number in the lowest bits.
Value QuantizeBy(Expressions& x, const Steps& steps, const Value& data, DataType dtype, bool is_finite) {
  Emitter& e = x.emitter();
  VectorMath& m = x.math();
  constexpr float kRounds = 12582912;  // 1.5 * 2^23
  const bool is_signed = dtype.code == DataType::Code::kInt;
  const double high = std::ldexp(1.0, dtype.bits - (is_signed ? 1 : 0)) - 1;
  const double low = is_signed ? -high - 1 : 0;
  const auto number_of = [&](double integer) { return (integer - static_cast<double>(steps.zero)) * steps.scale; };
  const Value limited = m.Limit(data, number_of(low), number_of(high));
  const auto divided = [&] {
    // Processors with vectors so short may have no instruction for a product and a sum.
    if (e.native_lanes() < 8) return m.DivideExactly(limited, m.Like(steps.scale, data));
    const Value reciprocal = m.Like(1 / steps.scale, data);
    const Value near = m.Exactly("arith.mulf", {limited, reciprocal});
    const Value less = m.Like(-steps.scale, data);
    const Value rest = m.Exactly("math.fma", {near, less, limited});
    return m.Exactly("math.fma", {rest, reciprocal, near});
  };
  const Value quotient = divided();
  const Value sum = m.Exactly("arith.addf", {quotient, m.Like(kRounds, data)});
  const std::string bits = e.Def(fmt::format("arith.bitcast {} : {} to {}", sum.name, e.FloatVector(), Int32Vector(e)));
  const int64_t less = std::bit_cast<int32_t>(kRounds) - steps.zero;
  std::string whole = e.Def(fmt::format("arith.subi {}, {} : {}", bits, Int32(e, less), Int32Vector(e)));
  if (!is_finite) {
    const Value is_none = m.Compare("uno", "eq", data, data);
    whole = e.Def(fmt::format("arith.select {}, {}, {} : {}, {}", is_none.name, Int32(e, 0), whole,
                              e.TypeOf(ElementKind::kBool), Int32Vector(e)));
  }
  return {e.Def(fmt::format("arith.extsi {} : {} to {}", whole, Int32Vector(e), e.TypeOf(ElementKind::kInt))),
          ElementKind::kInt};
}

Value Quantize(Expressions& x, const CallNode& call, const Indices& indices) {
  VectorMath& m = x.math();
  const DataType dtype = ResultType(call);
  const Expr& argument = call.args()[0];
  const Value data = x.At(argument, indices);
  const std::optional<Steps> steps = StepsOf(call);
  constexpr int64_t kMostZero = 1 << 16;
  if (steps && dtype.bits <= 16 && data.kind == ElementKind::kFloat && std::abs(steps->zero) <= kMostZero) {
    int left = 200;
    return QuantizeBy(x, *steps, data, dtype, MagnitudeOf(argument, left).has_value());
  }
  const DataType type = data.kind == ElementKind::kDouble ? kFloat64 : kFloat32;
  const Value scale = m.Convert(PerChannel(x, call, 1, indices), type);
  const Value quotient = m.Unary("math.roundeven", m.DivideExactly(data, scale));
  const Value zero = m.Convert(PerChannel(x, call, 2, indices), type);
  return m.Convert(m.Add(quotient, zero), dtype);
}

Value Dequantize(Expressions& x, const CallNode& call, const Indices& indices) {
  Emitter& e = x.emitter();
  VectorMath& m = x.math();
  const DataType dtype = ResultType(call) == kFloat64 ? kFloat64 : kFloat32;
  const Value data = x.At(call.args()[0], indices);
  const std::optional<Steps> steps = StepsOf(call);
  const DataType from = TensorTypeOf(call.args()[0]).dtype();
  constexpr int64_t kMostZero = 1 << 16;
  if (steps && dtype == kFloat32 && from.bits <= 16 && std::abs(steps->zero) <= kMostZero) {
    // Results of at most 32 bits are converted in half as many steps as 64 bits are.
    std::string whole =
        e.Def(fmt::format("arith.trunci {} : {} to {}", data.name, e.TypeOf(ElementKind::kInt), Int32Vector(e)));
    if (steps->zero != 0) {
      whole = e.Def(fmt::format("arith.subi {}, {} : {}", whole, Int32(e, steps->zero), Int32Vector(e)));
    }
    const Value number{e.Def(fmt::format("arith.sitofp {} : {} to {}", whole, Int32Vector(e), e.FloatVector())),
                       ElementKind::kFloat};
    return m.Multiply(number, m.Like(steps->scale, number));
  }
  const Value number = m.Convert(data, dtype);
  const Value shifted = m.Subtract(number, m.Convert(PerChannel(x, call, 2, indices), dtype));
  return m.Multiply(shifted, m.Convert(PerChannel(x, call, 1, indices), dtype));
}

Value TakeNBits(Expressions& x, const CallNode& call, const Indices& indices) {
  Emitter& e = x.emitter();
  VectorMath& m = x.math();
  const std::vector<Expr>& args = call.args();
  const int64_t bits = call.attrs().Int("bits"), per_byte = 8 / bits;
  const DataType dtype = ResultType(call) == kFloat64 ? kFloat64 : kFloat32;
  const Indices place(indices.begin(), indices.end() - 1);
  const Index row = inline_ops::IndexInto(x, args[1], place, ShapeOf(args[0])[0]);
  const auto [byte, at] = e.Divided(indices.back(), per_byte);
  Value number = x.At(args[0], {row, byte});
  if (per_byte > 1) {
    number = m.Binary("arith.shrui", number, AsValue(e.LanesOf(e.Scaled(at, bits))));
    number = m.And(number, m.Integer((int64_t{1} << bits) - 1));
  }
  number = m.Convert(number, dtype);
  const Indices block{row, e.Divided(indices.back(), call.attrs().Int("block_size")).first};
  const Value half = m.Like(static_cast<double>(int64_t{1} << (bits - 1)), number);
  const Value zero = args.size() > 3 ? m.Convert(x.At(args[3], block), dtype) : half;
  return m.Multiply(m.Subtract(number, zero), m.Convert(x.At(args[2], block), dtype));
}

}  // namespace

Value inline_ops::Quantize(X& x, C call, I indices) { return native::Quantize(x, call, indices); }

Value inline_ops::Dequantize(X& x, C call, I indices) { return native::Dequantize(x, call, indices); }

Value inline_ops::TakeNBits(X& x, C call, I indices) { return native::TakeNBits(x, call, indices); }

}  // namespace collage::native
