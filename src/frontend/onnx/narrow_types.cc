// narrow_types.cc: conversions between narrow types and those of Relay. Formats: "FP8 Formats for Deep Learning"
// (Micikevicius et al., 2022; E4M3FN, E5M2), "8-bit Numerical Formats for Deep Neural Networks" (Noune et al., 2022;
// the FNUZ types), "OCP Microscaling Formats (MX) Specification" 1.0 (E2M1, E8M0).
#include "frontend/onnx/narrow_types.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "onnx/onnx-ml.pb.h"

namespace collage {
namespace {

using Proto = onnx::TensorProto;

constexpr NarrowFloat kE4M3FN{.mantissa = 3, .bias = 7, .largest = 0x7e, .nan = 0x7f, .overflow = 0x7f};
constexpr NarrowFloat kE4M3FNUZ{
    .mantissa = 3, .bias = 8, .largest = 0x7f, .nan = 0x80, .overflow = 0x80, .signs_zero = false};
constexpr NarrowFloat kE5M2{.mantissa = 2, .bias = 15, .largest = 0x7b, .nan = 0x7e, .overflow = 0x7c};
constexpr NarrowFloat kE5M2FNUZ{
    .mantissa = 2, .bias = 16, .largest = 0x7f, .nan = 0x80, .overflow = 0x80, .signs_zero = false};
constexpr NarrowFloat kE8M0{
    .mantissa = 0, .bias = 127, .largest = 0xfe, .nan = 0xff, .overflow = 0xff, .is_power = true};
// It has neither infinity nor NaN, which becomes -0.
constexpr NarrowFloat kE2M1{.mantissa = 1, .bias = 1, .largest = 7, .nan = 8, .overflow = 7};

constexpr std::array kTypes{
    NarrowType{Proto::INT4, "INT4", 4, true, false, {}},
    NarrowType{Proto::UINT4, "UINT4", 4, false, false, {}},
    NarrowType{Proto::INT2, "INT2", 2, true, false, {}},
    NarrowType{Proto::UINT2, "UINT2", 2, false, false, {}},
    NarrowType{Proto::FLOAT8E4M3FN, "FLOAT8E4M3FN", 8, false, true, kE4M3FN},
    NarrowType{Proto::FLOAT8E4M3FNUZ, "FLOAT8E4M3FNUZ", 8, false, true, kE4M3FNUZ},
    NarrowType{Proto::FLOAT8E5M2, "FLOAT8E5M2", 8, false, true, kE5M2},
    NarrowType{Proto::FLOAT8E5M2FNUZ, "FLOAT8E5M2FNUZ", 8, false, true, kE5M2FNUZ},
    NarrowType{Proto::FLOAT8E8M0, "FLOAT8E8M0", 8, false, true, kE8M0},
    NarrowType{Proto::FLOAT4E2M1, "FLOAT4E2M1", 4, false, true, kE2M1},
    NarrowType{Proto::STRING, "STRING", 64, true, false, {}, /*is_text=*/true},
};

// float32: 23 bits of mantissa, an exponent of bias 127.
constexpr int kMantissa = 23;
constexpr int kBias = 127;
constexpr int32_t kInfinity = 0x7f800000;
constexpr int32_t kMagnitude = 0x7fffffff;

/// Arithmetic on the bits of float32, as int32.
class Bits {
 public:
  explicit Bits(NodeContext& node) : node_(node) {}

  Expr Number(int32_t value) { return node_.Scalar(value, kInt32); }
  Expr Add(const Expr& a, const Expr& b) { return node_.Op("add", {a, b}); }
  Expr Add(const Expr& a, int32_t b) { return Add(a, Number(b)); }
  Expr And(const Expr& a, int32_t mask) { return node_.Op("bitwise_and", {a, Number(mask)}); }
  Expr Right(const Expr& a, int32_t places) { return node_.Op("right_shift", {a, Number(places)}); }
  Expr AtMost(const Expr& a, int32_t bound) { return node_.Op("minimum", {a, Number(bound)}); }
  Expr Less(const Expr& a, int32_t b) { return node_.Op("less", {a, Number(b)}); }
  Expr Greater(const Expr& a, int32_t b) { return node_.Op("greater", {a, Number(b)}); }
  Expr Select(const Expr& condition, const Expr& a, const Expr& b) { return node_.Op("where", {condition, a, b}); }
  Expr OfFloat(const Expr& x) { return node_.Op("reinterpret", {x}, {{"dtype", kInt32}}); }
  Expr AsFloat(const Expr& x) { return node_.Op("reinterpret", {x}, {{"dtype", kFloat32}}); }

 private:
  NodeContext& node_;
};

/// The code of the magnitude whose bits are `magnitude`, at most infinity, rounded to nearest; codes beyond the largest
/// for what is too large.
Expr RoundedCode(NodeContext& node, Bits& bits, const Expr& magnitude, const NarrowFloat& format) {
  const int dropped = kMantissa - format.mantissa;
  // Half a unit less one, or half a unit where the last bit that stays is set; what carries goes into the exponent.
  const Expr last = bits.And(bits.Right(magnitude, dropped), 1);
  const Expr rounded = bits.Add(bits.Add(magnitude, (1 << (dropped - 1)) - 1), last);
  const Expr normal = bits.Add(bits.Right(rounded, dropped), -((kBias - format.bias) << format.mantissa));
  // Added to a float32 whose last place is a subnormal unit, the sum is rounded to one.
  const float unit = std::ldexp(1.0F, 1 - format.bias - format.mantissa + kMantissa);
  const Expr start = node.Scalar(unit, kFloat32);
  const Expr subnormal =
      node.Op("subtract", {bits.OfFloat(node.Op("add", {bits.AsFloat(magnitude), start})), bits.OfFloat(start)});
  return bits.Select(bits.Less(magnitude, (kBias + 1 - format.bias) << kMantissa), subnormal, normal);
}

/// The exponent of the magnitude, as a power of two that is next to it by `mode`.
Expr PowerCode(NodeContext& node, Bits& bits, const Expr& magnitude, const std::string& mode) {
  const Expr exponent = bits.Right(magnitude, kMantissa);
  if (mode == "down") return exponent;
  // float32 has subnormal numbers where powers end: 2^-127 is half of the least that is normal.
  const Expr mantissa = bits.And(magnitude, (1 << kMantissa) - 1);
  const Expr is_subnormal = bits.Less(magnitude, 1 << kMantissa);
  const int32_t half = 1 << (kMantissa - 1);
  const Expr bound = mode == "up" ? bits.Select(is_subnormal, bits.Number(half), bits.Number(0))
                                  : bits.Select(is_subnormal, bits.Number(half + half / 2 - 1), bits.Number(half - 1));
  return bits.Add(exponent, node.Cast(node.Op("greater", {mantissa, bound}), kInt32));
}

Expr NarrowFloats(NodeContext& node, const Expr& x, const NarrowType& type, const NarrowRounding& rounding) {
  const NarrowFloat& format = type.format;
  Bits bits(node);
  const Expr all = bits.OfFloat(node.Cast(x, kFloat32));
  const Expr with_nan = bits.And(all, kMagnitude);
  const Expr magnitude = bits.AtMost(with_nan, kInfinity);
  Expr code =
      format.is_power ? PowerCode(node, bits, magnitude, rounding.mode) : RoundedCode(node, bits, magnitude, format);
  code = rounding.saturates ? bits.AtMost(code, format.largest)
                            : bits.Select(bits.Greater(code, format.largest), bits.Number(format.overflow), code);
  if (format.is_power && !rounding.saturates) {
    const Expr is_below = bits.Less(magnitude, 1 << (kMantissa - 1));
    code = bits.Select(is_below, bits.Number(format.nan), code);
  }
  const Expr is_nan = bits.Greater(with_nan, kInfinity);
  const Expr nan = bits.Number(format.nan);
  const int32_t sign = 1 << (type.bits - 1);
  // A NaN that has the bit of the sign has no sign besides.
  const bool signs_nan = !format.is_power && format.nan < sign;
  if (signs_nan) code = bits.Select(is_nan, nan, code);
  if (!format.is_power) {
    Expr is_negative = bits.Less(all, 0);
    if (!format.signs_zero) {
      const Expr is_number = node.Op("logical_and", {bits.Greater(code, 0), bits.Less(code, sign)});
      is_negative = node.Op("logical_and", {is_negative, is_number});
    }
    code = bits.Select(is_negative, bits.Add(code, sign), code);
  }
  if (!signs_nan) code = bits.Select(is_nan, nan, code);
  return node.Cast(code, kUInt8);
}

}  // namespace

const NarrowType* FindNarrowType(int onnx_type) {
  for (const NarrowType& type : kTypes) {
    if (type.onnx_type == onnx_type) return &type;
  }
  return nullptr;
}

const NarrowType* TextType() { return FindNarrowType(Proto::STRING); }

double NarrowValue(const NarrowType& type, int code) {
  const NarrowFloat& format = type.format;
  const int sign = format.is_power ? 0x100 : 1 << (type.bits - 1);
  if (code == format.nan && type.bits == 8) return std::numeric_limits<double>::quiet_NaN();
  const int magnitude = code & (sign - 1);
  if (format.is_power) return std::ldexp(1.0, magnitude - format.bias);
  const int exponent = magnitude >> format.mantissa;
  const int mantissa = magnitude & ((1 << format.mantissa) - 1);
  const int hidden = exponent == 0 ? 0 : 1 << format.mantissa;
  double value = std::ldexp(mantissa + hidden, std::max(exponent, 1) - format.bias - format.mantissa);
  if (magnitude > format.largest) {
    const bool is_infinite = format.overflow != format.nan && magnitude == format.overflow;
    value = is_infinite ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  return (code & sign) != 0 ? -value : value;
}

Expr Widen(NodeContext& node, const Expr& codes, const NarrowType& type) {
  if (!type.is_floating) return codes;
  const int count = 1 << type.bits;
  const Tensor table = Tensor::Empty({count}, kFloat32);
  for (int code = 0; code < count; ++code) table.Set(code, NarrowValue(type, code));
  return node.Op("take", {MakeConstant(table), node.Cast(codes, kInt32)}, {{"axis", 0}, {"mode", "clip"}});
}

Expr LowBits(NodeContext& node, const Expr& x, const NarrowType& type) {
  Bits bits(node);
  Expr low = bits.And(node.Cast(x, kInt32), (1 << type.bits) - 1);
  if (type.is_signed) {
    const int32_t sign = 1 << (type.bits - 1);
    low = bits.Add(node.Op("bitwise_xor", {low, bits.Number(sign)}), -sign);
  }
  return node.Cast(low, type.storage());
}

Expr Narrow(NodeContext& node, const Expr& x, const NarrowType& type, const NarrowRounding& rounding) {
  return type.is_floating ? NarrowFloats(node, x, type, rounding) : LowBits(node, x, type);
}

}  // namespace collage
