// vector_math.cc: the text of vector arithmetic. Polynomials: exp by reduction to |r| <= ln 2 / 2, or of 2^r where one
// instruction takes fractions, erf and tanh piece by piece where one instruction looks up 16 coefficients, else erf
// by two polynomials and exp, tanh by exp, sine and cosine by reduction to |r| <= pi / 4, log by its exponent.
#include "backends/native/compiler/emit/vector_math.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "collage/support/error.h"

namespace collage::native {

// ---- constants ----

Value VectorMath::Number(double value, ElementKind kind) {
  switch (kind) {
    case ElementKind::kFloat: return {e_.Splat(value).name(), kind};
    case ElementKind::kDouble:
      return {
          e_.Def(fmt::format("arith.constant dense<0x{:016X}> : {}", std::bit_cast<uint64_t>(value), e_.TypeOf(kind))),
          kind};
    case ElementKind::kInt: return Integer(static_cast<int64_t>(value));
    case ElementKind::kBool: return Bool(value != 0);
  }
  return {};
}

Value VectorMath::Integer(int64_t value) {
  return {e_.Def(fmt::format("arith.constant dense<{}> : {}", value, e_.TypeOf(ElementKind::kInt))), ElementKind::kInt};
}

Value VectorMath::Bool(bool value) {
  return {e_.Def(fmt::format("arith.constant dense<{}> : {}", value, e_.TypeOf(ElementKind::kBool))),
          ElementKind::kBool};
}

// ---- arithmetic ----

Value VectorMath::Unary(const char* op, const Value& x) {
  return {e_.Def(fmt::format("{} {} : {}", op, x.name, e_.TypeOf(x.kind))), x.kind};
}

Value VectorMath::Binary(const char* op, const Value& a, const Value& b) {
  return {e_.Def(fmt::format("{} {}, {} : {}", op, a.name, b.name, e_.TypeOf(a.kind))), a.kind};
}

Value VectorMath::ByKind(const char* on_floats, const char* on_integers, const Value& a, const Value& b) {
  if (a.kind == ElementKind::kBool) throw Error(ErrorCategory::kUnsupported, "arithmetic on truth values");
  return Binary(IsFloat(a) ? on_floats : on_integers, a, b);
}

Value VectorMath::Compare(const char* on_floats, const char* on_integers, const Value& a, const Value& b) {
  return {e_.Def(fmt::format("arith.{} {}, {}, {} : {}", IsFloat(a) ? "cmpf" : "cmpi",
                             IsFloat(a) ? on_floats : on_integers, a.name, b.name, e_.TypeOf(a.kind))),
          ElementKind::kBool};
}

Value VectorMath::Select(const Value& condition, const Value& a, const Value& b) {
  return {e_.Def(fmt::format("arith.select {}, {}, {} : {}, {}", condition.name, a.name, b.name,
                             e_.TypeOf(ElementKind::kBool), e_.TypeOf(a.kind))),
          a.kind};
}

Value VectorMath::Shuffle(const Value& a, const Value& b, const std::function<int64_t(int64_t)>& lane) {
  std::string lanes;
  for (int64_t i = 0; i < e_.lanes(); ++i) lanes += fmt::format("{}{}", i > 0 ? ", " : "", lane(i));
  const std::string type = e_.TypeOf(a.kind);
  return {e_.Def(fmt::format("vector.shuffle {}, {} [{}] : {}, {}", a.name, b.name, lanes, type, type)), a.kind};
}

Value VectorMath::FusedMultiplyAdd(const Value& a, const Value& b, const Value& c) {
  return {e_.Def(fmt::format("math.fma {}, {}, {} : {}", a.name, b.name, c.name, e_.TypeOf(a.kind))), a.kind};
}

Value VectorMath::Negate(const Value& x) {
  if (IsFloat(x)) return Unary("arith.negf", x);
  return Subtract(Integer(0), x);
}

Value VectorMath::Divide(const Value& a, const Value& b) {
  if (IsFloat(a)) return Binary("arith.divf", a, b);
  const Value is_zero = Compare("oeq", "eq", b, Integer(0));
  return Select(is_zero, Integer(0), Binary("arith.divsi", a, Select(is_zero, Integer(1), b)));
}

Value VectorMath::DivideExactly(const Value& a, const Value& b) {
  return {e_.Def(fmt::format("arith.divf {}, {} fastmath<nsz> : {}", a.name, b.name, e_.TypeOf(a.kind))), a.kind};
}

Value VectorMath::Remainder(const Value& a, const Value& b) {
  if (IsFloat(a)) return Binary("arith.remf", a, b);
  const Value is_zero = Compare("oeq", "eq", b, Integer(0));
  return Select(is_zero, Integer(0), Binary("arith.remsi", a, Select(is_zero, Integer(1), b)));
}

Value VectorMath::Limit(const Value& x, double low, double high) {
  if (IsFloat(x)) {
    const Value bottom = Like(low, x);
    const Value top = Like(high, x);
    const Value raised = Select(Compare("olt", "slt", x, bottom), bottom, x);
    return Select(Compare("ogt", "sgt", raised, top), top, raised);
  }
  const auto bound = [](double value) {
    if (value >= 9223372036854775807.0) return std::numeric_limits<int64_t>::max();
    return value <= -9223372036854775808.0 ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(value);
  };
  return Binary("arith.minsi", Binary("arith.maxsi", x, Integer(bound(low))), Integer(bound(high)));
}

Value VectorMath::Abs(const Value& x) { return Unary(IsFloat(x) ? "math.absf" : "math.absi", x); }

Value VectorMath::Sign(const Value& x) {
  const Value one = Like(1, x);
  const Value zero = Like(0, x);
  const Value below = Select(Compare("olt", "slt", x, zero), Negate(one), x);
  return Select(Compare("ogt", "sgt", x, zero), one, below);
}

// ---- conversion ----

namespace {

/// Whether all integers of `dtype` are int32.
bool FitsInt32(DataType dtype) { return dtype.bits < 32 || (dtype.bits == 32 && dtype.code == DataType::Code::kInt); }

}  // namespace

Value VectorMath::Wrap(const Value& x, DataType dtype) {
  if (x.kind != ElementKind::kInt || !dtype.is_integer() || dtype.bits == 64) return x;
  const std::string narrow = fmt::format("vector<{}xi{}>", e_.lanes(), dtype.bits);
  const std::string wide = e_.TypeOf(ElementKind::kInt);
  const std::string cut = e_.Def(fmt::format("arith.trunci {} : {} to {}", x.name, wide, narrow));
  const char* extend = dtype.code == DataType::Code::kUInt ? "extui" : "extsi";
  return {e_.Def(fmt::format("arith.{} {} : {} to {}", extend, cut, narrow, wide)), ElementKind::kInt};
}

Value VectorMath::Convert(const Value& x, DataType to) {
  const std::string from_type = e_.TypeOf(x.kind);
  const ElementKind kind = KindOf(to);
  const auto convert = [&](const char* op, ElementKind result) -> Value {
    return {e_.Def(fmt::format("{} {} : {} to {}", op, x.name, from_type, e_.TypeOf(result))), result};
  };
  if (kind == ElementKind::kBool) return x.kind == kind ? x : Compare("une", "ne", x, Like(0, x));
  if (kind == ElementKind::kInt && IsFloat(x)) {
    // Bounds that floats hold exactly; what lies beyond takes the bound itself.
    const bool is_signed = to.code == DataType::Code::kInt;
    const int bits = to.bits - (is_signed ? 1 : 0);
    const double high = std::ldexp(1.0, std::min(bits, 63));
    const double low = is_signed ? -high : 0.0;
    const bool narrow = FitsInt32(to);
    // Narrow integers are rounded and limited as floats; the rest only widens, which readers and stores undo.
    Value safe = x;
    if (to.bits <= 16) safe = Select(Compare("uno", "eq", x, x), Like(0, x), Limit(x, low, high - 1));
    const std::string int32 = fmt::format("vector<{}xi32>", e_.lanes());
    Value whole;
    if (narrow) {
      const std::string cut = e_.Def(fmt::format("arith.fptosi {} : {} to {}", safe.name, from_type, int32));
      whole = {e_.Def(fmt::format("arith.extsi {} : {} to {}", cut, int32, e_.TypeOf(kind))), kind};
    } else {
      whole = {e_.Def(fmt::format("arith.fptosi {} : {} to {}", safe.name, from_type, e_.TypeOf(kind))), kind};
    }
    if (to.bits <= 16) return whole;
    const int64_t top = bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << bits) - 1;
    whole = Select(Compare("oge", "sge", x, Like(high, x)), Integer(top), whole);
    whole = Select(Compare("ole", "sle", x, Like(low, x)), Integer(is_signed ? -top - 1 : 0), whole);
    return Select(Compare("uno", "eq", x, x), Integer(0), whole);
  }
  if (kind == ElementKind::kInt) return x.kind == kind ? Wrap(x, to) : convert("arith.extui", kind);
  Value result = x;
  if (x.kind == ElementKind::kInt) result = convert("arith.sitofp", kind);
  if (x.kind == ElementKind::kBool) result = convert("arith.uitofp", kind);
  if (x.kind == ElementKind::kFloat && kind == ElementKind::kDouble) result = convert("arith.extf", kind);
  if (x.kind == ElementKind::kDouble && kind == ElementKind::kFloat) result = convert("arith.truncf", kind);
  if (to == kBFloat16) return e_.WidenBFloat16(e_.RoundBFloat16(result));
  if (to.bits == 16) {
    const std::string narrow = fmt::format("vector<{}xf16>", e_.lanes());
    const std::string cut = e_.Def(fmt::format("arith.truncf {} : {} to {}", result.name, e_.FloatVector(), narrow));
    result = {e_.Def(fmt::format("arith.extf {} : {} to {}", cut, narrow, e_.FloatVector())), kind};
  }
  return result;
}

// ---- functions ----

Value VectorMath::Polynomial(const Value& x, std::span<const double> coefficients) {
  Value p = Like(coefficients[0], x);
  for (size_t i = 1; i < coefficients.size(); ++i) p = FusedMultiplyAdd(p, x, Like(coefficients[i], x));
  return p;
}

namespace {

/// e^r for |r| <= ln 2 / 2.
constexpr std::array<double, 6> kExpCoefficients{8.290314115583897e-3, 4.189793393015862e-2, 0.1666763573884964,
                                                 0.4999915063381195,   0.9999997019767761,   1.0};
/// 2^r for 0 <= r <= 1: relative error below 8.3e-8, 1 at 0.
constexpr std::array<double, 6> kPowerOfTwoCoefficients{
    1.8671303338357345e-3, 9.017029763761375e-3, 5.5799913502764024e-2, 0.2401644500459026, 0.6931513118135344, 1.0};
constexpr double kLog2E = 1.4426950408889634;

}  // namespace

Value VectorMath::Instruction(const char* name, const std::vector<std::pair<std::string, std::string>>& operands) {
  std::string names;
  std::string types;
  for (const auto& [operand, type] : operands) {
    names += operand + ", ";
    types += type + ", ";
  }
  const std::string mask = e_.Def("arith.constant -1 : i16");
  const std::string rounding = e_.Def("arith.constant 4 : i32");  // as the thread's mode says
  return {e_.Def(fmt::format(R"(llvm.call_intrinsic "llvm.x86.avx512.mask.{}.ps.512"({}{}, {}) : ({}i16, i32) -> {})",
                             name, names, mask, rounding, types, e_.FloatVector())),
          ElementKind::kFloat};
}

Value VectorMath::TimesPowerOfTwo(const Value& x, const Value& n) {
  const std::string type = e_.FloatVector();
  return Instruction("scalef", {{x.name, type}, {n.name, type}, {x.name, type}});
}

// x - floor(x) of infinities is 0 by that instruction, so they need no limits.
Value VectorMath::PowerOfTwo(const Value& x) {
  const std::string type = e_.FloatVector();
  const std::string down = e_.Def("arith.constant 1 : i32");  // fractions of what is next below
  const Value r = Instruction("reduce", {{x.name, type}, {down, "i32"}, {x.name, type}});
  return TimesPowerOfTwo(Polynomial(r, kPowerOfTwoCoefficients), x);
}

Value VectorMath::ExpBelow(const Value& x, const Value& bound) {
  const Value difference = Subtract(x, bound);
  if (!IsAvx512() || x.kind == ElementKind::kDouble) return Exp(difference);
  return PowerOfTwo(Multiply(difference, Like(kLog2E, x)));
}

// x = n ln 2 + r, a polynomial for e^r (least largest relative error, 1 at 0), n into the exponent. Relative error
// below 2e-7; results up to the largest float and infinity come out. Vectors of 16 have an instruction that multiplies
// by 2^n, whatever n; else two factors do it (2 and 2^(n-1)), and below e^-86.6 the result stays at 2e-38.
Value VectorMath::Exp(const Value& x) {
  if (x.kind == ElementKind::kDouble) return Unary("math.exp", x);
  const Value limited = Limit(x, IsAvx512() ? -104.0 : -86.6, 89.0);
  const Value n = Unary("math.roundeven", Multiply(limited, Like(kLog2E, x)));
  Value r = FusedMultiplyAdd(n, Like(-0.693359375, x), limited);
  r = FusedMultiplyAdd(n, Like(2.12194440e-4, x), r);
  Value p = Polynomial(r, kExpCoefficients);
  if (IsAvx512()) return TimesPowerOfTwo(p, n);
  p = Add(p, p);
  const std::string ints = fmt::format("vector<{}xi32>", e_.lanes());
  const Vector n_int{e_.Def(fmt::format("arith.fptosi {} : {} to {}", n.name, e_.FloatVector(), ints))};
  return Multiply(p, FromBits(BitsOp("shli", BitsOp("addi", n_int, 126), 23)));
}

Vector VectorMath::Bits(const Value& x) {
  return Vector{e_.Def(fmt::format("arith.bitcast {} : {} to vector<{}xi32>", x.name, e_.FloatVector(), e_.lanes()))};
}

Value VectorMath::FromBits(const Vector& bits) {
  return {e_.Def(fmt::format("arith.bitcast {} : vector<{}xi32> to {}", bits, e_.lanes(), e_.FloatVector())),
          ElementKind::kFloat};
}

Vector VectorMath::BitsOp(const char* op, const Vector& bits, int32_t operand) {
  const std::string type = fmt::format("vector<{}xi32>", e_.lanes());
  const Vector constant{e_.Def(fmt::format("arith.constant dense<{}> : {}", operand, type))};
  return Vector{e_.Def(fmt::format("arith.{} {}, {} : {}", op, bits, constant, type))};
}

// x = m 2^e with m from sqrt(1/2) to sqrt(2); log m = 2 artanh s with s = (m - 1) / (m + 1), |s| < 0.172.
Value VectorMath::Log(const Value& x) {
  if (x.kind == ElementKind::kDouble) return Unary("math.log", x);
  constexpr int32_t kRootOfHalf = 0x3f3504f3;
  const Value smallest = Like(1.17549435e-38, x);
  const Value is_tiny = Compare("olt", "slt", x, smallest);
  const Value scaled = Select(is_tiny, Multiply(x, Like(8388608, x)), x);
  const Vector shifted = BitsOp("subi", Bits(scaled), kRootOfHalf);
  const Vector exponent = BitsOp("shrsi", shifted, 23);
  const Value m = FromBits(BitsOp("addi", BitsOp("andi", shifted, 0x007fffff), kRootOfHalf));
  const Value e{e_.Def(fmt::format("arith.sitofp {} : vector<{}xi32> to {}", exponent, e_.lanes(), e_.FloatVector())),
                ElementKind::kFloat};
  const Value power = Subtract(e, Select(is_tiny, Like(23, x), Like(0, x)));
  const Value f = Subtract(m, Like(1, x));
  const Value s = Divide(f, Add(f, Like(2, x)));
  constexpr std::array<double, 5> kSeries{2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2.0};
  const Value mantissa = Multiply(s, Polynomial(Multiply(s, s), kSeries));
  Value result = FusedMultiplyAdd(power, Like(0.6931471805599453, x), mantissa);
  result = Select(Compare("oeq", "eq", x, Like(0, x)), Like(-INFINITY, x), result);
  result = Select(Compare("oeq", "eq", x, Like(INFINITY, x)), x, result);
  return Select(Compare("oge", "sge", x, Like(0, x)), result, Like(NAN, x));
}

// x = k pi / 2 + r with pi / 2 in two parts; Taylor's series on |r| <= pi / 4; k modulo 4 says which one and its sign.
Value VectorMath::Circular(const Value& x, bool is_cosine) {
  if (x.kind == ElementKind::kDouble) return Unary(is_cosine ? "math.cos" : "math.sin", x);
  const Value k = Unary("math.roundeven", Multiply(x, Like(0.6366197723675814, x)));
  Value r = FusedMultiplyAdd(k, Like(-1.57079637050628662, x), x);
  r = FusedMultiplyAdd(k, Like(4.37113900018624283e-8, x), r);
  const Value square = Multiply(r, r);
  constexpr std::array<double, 5> kSine{1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6, 1.0};
  constexpr std::array<double, 5> kCosine{1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5, 1.0};
  const Value sine = Multiply(r, Polynomial(square, kSine));
  const Value cosine = Polynomial(square, kCosine);
  const std::string ints = fmt::format("vector<{}xi32>", e_.lanes());
  Vector quadrant{e_.Def(fmt::format("arith.fptosi {} : {} to {}", k.name, e_.FloatVector(), ints))};
  if (is_cosine) quadrant = BitsOp("addi", quadrant, 1);
  const std::string is_odd = e_.Def(fmt::format("arith.trunci {} : {} to vector<{}xi1>", quadrant, ints, e_.lanes()));
  const Value value = Select({is_odd, ElementKind::kBool}, cosine, sine);
  const Vector sign = BitsOp("shli", BitsOp("andi", quadrant, 2), 30);
  return FromBits(Vector{e_.Def(fmt::format("arith.xori {}, {} : {}", Bits(value), sign, ints))});
}

Value VectorMath::Exactly(const char* op, std::initializer_list<Value> operands) {
  std::string names;
  for (const Value& operand : operands) names += (names.empty() ? "" : ", ") + operand.name;
  return {e_.Def(fmt::format("{} {} fastmath<nsz> : {}", op, names, e_.FloatVector())), ElementKind::kFloat};
}

// Adding a large number rounds magnitude / width to the piece's number, in the low bits of the sum; where the width is
// a power of two, a larger one does it without the quotient.
Value VectorMath::AtPiecewise(const PiecewisePolynomial& pieces, const Value& magnitude) {
  constexpr double kRounds = 12582912;  // 1.5 * 2^23
  int exponent = 0;
  const bool is_power_of_two = std::frexp(pieces.width, &exponent) == 0.5;
  const Value rounds = Like(is_power_of_two ? kRounds * pieces.width : kRounds, magnitude);
  const Value sum = is_power_of_two ? Exactly("arith.addf", {magnitude, rounds})
                                    : Exactly("math.fma", {magnitude, Like(1 / pieces.width, magnitude), rounds});
  const Value number = Exactly("arith.subf", {sum, rounds});
  const Value r = is_power_of_two ? Exactly("arith.subf", {magnitude, number})
                                  : FusedMultiplyAdd(number, Like(-pieces.width, magnitude), magnitude);
  const Vector positions = Bits(sum);
  Value p;
  for (size_t power = pieces.by_power.size(); power-- > 0;) {
    const Value c = LookUp(pieces.by_power[power], positions);
    p = power + 1 == pieces.by_power.size() ? c : FusedMultiplyAdd(p, r, c);
  }
  return p;
}

Value VectorMath::OddPiecewise(const Value& x, const PiecewisePolynomial& pieces) {
  const Value magnitude = Abs(x);
  const Value last = Like(pieces.last(), x);
  const Value limited = Select(Compare("ogt", "sgt", magnitude, last), last, magnitude);
  return Binary("math.copysign", AtPiecewise(pieces, limited), x);
}

// One instruction takes the smaller magnitude, and the bound where x is not a number; another one gives what relu does
// with each kind of number.
Value VectorMath::ReluAnd(const PiecewisePolynomial& pieces, const Value& x) {
  const std::string type = e_.FloatVector();
  const std::string smaller_magnitude = e_.Def("arith.constant 10 : i32");  // without its sign
  const Value limited = Instruction(
      "range", {{x.name, type}, {Like(pieces.last(), x).name, type}, {smaller_magnitude, "i32"}, {x.name, type}});
  enum Response : uint32_t { kItself = 1, kQuiet = 2, kNan = 3, kZero = 8 };
  // Not-a-number of both kinds, 0, 1, both infinities, what is below 0, what is above.
  constexpr std::array<Response, 8> kRelu{kItself, kQuiet, kItself, kItself, kNan, kItself, kZero, kItself};
  uint32_t responses = 0;
  for (size_t i = 0; i < kRelu.size(); ++i) responses |= static_cast<uint32_t>(kRelu[i]) << (4 * i);
  const std::string table = e_.Def(fmt::format("arith.constant dense<0x{:08X}> : vector<16xi32>", responses));
  const std::string silent = e_.Def("arith.constant 0 : i32");  // raises no flags
  const Value relu =
      Instruction("fixupimm", {{x.name, type}, {x.name, type}, {table, "vector<16xi32>"}, {silent, "i32"}});
  return FusedMultiplyAdd(limited, AtPiecewise(pieces, limited), relu);
}

Value VectorMath::LookUp(const std::vector<double>& table, const Vector& positions) {
  const std::string type = e_.FloatVector();
  const auto half = [&](size_t first) {
    std::string numbers;
    for (size_t i = first; i < first + 16; ++i) numbers += fmt::format("{}{:.9e}", i > first ? ", " : "", table[i]);
    return e_.Def(fmt::format("arith.constant dense<[{}]> : {}", numbers, type));
  };
  if (table.size() == 16) {
    return {e_.Def(fmt::format(R"(llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"({}, {}) : ({}, vector<16xi32>) )"
                               "-> {}",
                               half(0), positions, type, type)),
            ElementKind::kFloat};
  }
  COLLAGE_CHECK(table.size() == 32) << "tables of one or two vectors of 16";
  return {e_.Def(fmt::format(R"(llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.ps.512"({0}, {1}, {2}) : )"
                             "({3}, vector<16xi32>, {3}) -> {3}",
                             half(0), positions, half(16), type)),
          ElementKind::kFloat};
}

namespace {

constexpr int kOddDegree = 5;  // of the polynomials of erf and tanh

/// For Horner's rule: c[0] x^degree + … + c[degree].
std::vector<double> HighestFirst(std::vector<double> coefficients) {
  std::ranges::reverse(coefficients);
  return coefficients;
}

}  // namespace

// Absolute error below 1.5e-7. Without pieces: x p(x^2) below 1, above it 1 - e^q(|x|), q for the logarithm of 1 - erf.
Value VectorMath::Erf(const Value& x) {
  if (x.kind == ElementKind::kDouble) return Unary("math.erf", x);
  if (IsAvx512()) {
    static const PiecewisePolynomial pieces =
        FitPieces([](double value) { return std::erf(value); }, 0.25, 16, kOddDegree);
    return OddPiecewise(x, pieces);
  }
  constexpr double kLast = 3.92;  // where floats next to erf are 1
  static const std::vector<double> near = HighestFirst(
      Interpolate([](double square) { return std::erf(std::sqrt(square)) / std::sqrt(square); }, 0, 1, /*degree=*/5));
  static const std::vector<double> far =
      HighestFirst(Interpolate([](double value) { return std::log(std::erfc(value)); }, 1, kLast, /*degree=*/7));
  const Value magnitude = Abs(x);
  const Value one = Like(1, x);
  const Value last = Like(kLast, x);
  const Value limited = Select(Compare("ogt", "sgt", magnitude, last), last, magnitude);
  const Value small = Multiply(magnitude, Polynomial(Multiply(magnitude, magnitude), near));
  const Value large = Subtract(one, Exp(Polynomial(limited, far)));
  return Binary("math.copysign", Select(Compare("olt", "slt", magnitude, one), small, large), x);
}

// Absolute error below 1.5e-7. Without pieces: (1 - e) / (1 + e) with e = exp(-2 |x|), the sign put back.
Value VectorMath::Tanh(const Value& x) {
  if (x.kind == ElementKind::kDouble) return Unary("math.tanh", x);
  if (IsAvx512()) {
    constexpr double kWidth = 37.0 / 128;  // 31.5 of them reach to where floats next to tanh are 1
    static const PiecewisePolynomial pieces =
        FitPieces([](double value) { return std::tanh(value); }, kWidth, 32, kOddDegree);
    return OddPiecewise(x, pieces);
  }
  const Value e = Exp(Multiply(Abs(x), Like(-2, x)));
  const Value one = Like(1, x);
  return Binary("math.copysign", Divide(Subtract(one, e), Add(one, e)), x);
}

Value VectorMath::Sigmoid(const Value& x) {
  const Value one = Like(1, x);
  const bool is_float = x.kind == ElementKind::kFloat;
  const Value power = IsAvx512() && is_float ? PowerOfTwo(Multiply(x, Like(-kLog2E, x))) : Exp(Negate(x));
  return Divide(one, Add(one, power));
}

Value VectorMath::Power(const Value& a, const Value& b) {
  return IsFloat(a) ? Binary("math.powf", a, b) : IntegerPower(a, b);
}

// Square and multiply over the exponent's six lowest bits; a larger exponent overflows unless the base is -1, 0 or 1,
// for which those bits decide. Negative exponents: 0 but for 1 and -1.
Value VectorMath::IntegerPower(const Value& a, const Value& b) {
  const Value one = Integer(1);
  const Value zero = Integer(0);
  const Value minus_one = Integer(-1);
  Value result = one;
  Value factor = a;
  Value exponent = b;
  for (int bit = 0; bit < 6; ++bit) {
    const Value is_odd = Compare("oeq", "ne", And(exponent, one), zero);
    result = Select(is_odd, Multiply(result, factor), result);
    factor = Multiply(factor, factor);
    exponent = Binary("arith.shrsi", exponent, one);
  }
  const Value is_unit = Or(Compare("oeq", "eq", a, one), Compare("oeq", "eq", a, minus_one));
  const Value is_negative = Compare("olt", "slt", b, zero);
  return Select(And(is_negative, Not(is_unit)), zero, result);
}

}  // namespace collage::native
