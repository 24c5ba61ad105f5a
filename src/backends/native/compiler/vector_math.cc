// vector_math.cc: the text of vector arithmetic. Polynomials: exp by reduction to |r| <= ln 2 / 2, erf and tanh piece
// by piece where one instruction looks up 16 coefficients, else erf after Abramowitz and Stegun 7.1.26 and tanh by exp,
// sine and cosine by reduction to |r| <= pi / 4, log by its exponent.
#include "backends/native/compiler/vector_math.h"

#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "collage/support/error.h"

namespace collage::native {

// ---- constants ----

Value VectorMath::Number(double value, ElementKind kind) {
  switch (kind) {
    case ElementKind::kFloat: return {e_.Splat(value), kind};
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
    // Of narrow integers all is settled among floats; what follows only widens, which readers and stores undo.
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
  if (to.bits == 16) {
    const std::string narrow =
        fmt::format("vector<{}x{}>", e_.lanes(), to.code == DataType::Code::kBFloat ? "bf16" : "f16");
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

}  // namespace

Value VectorMath::TimesPowerOfTwo(const Value& x, const Value& n) {
  const std::string mask = e_.Def("arith.constant -1 : i16");
  const std::string rounding = e_.Def("arith.constant 4 : i32");  // as the thread's mode says
  return {e_.Def(fmt::format(R"(llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"({0}, {1}, {0}, {2}, {3}) : )"
                             "({4}, {4}, {4}, i16, i32) -> {4}",
                             x.name, n.name, mask, rounding, e_.FloatVector())),
          ElementKind::kFloat};
}

// The difference in units of ln 2 = n + r, which costs a rounding of it; it needs a bound below alone.
Value VectorMath::ExpBelow(const Value& x, const Value& bound) {
  const Value difference = Subtract(x, bound);
  if (e_.lanes() != 16 || x.kind == ElementKind::kDouble) return Exp(difference);
  const Value scaled = Multiply(difference, Like(1.4426950408889634, x));
  const Value lowest = Like(-150, x);
  const Value t = Select(Compare("olt", "slt", scaled, lowest), lowest, scaled);
  const Value n = Unary("math.roundeven", t);
  std::array<double, kExpCoefficients.size()> of_two{};
  for (size_t i = 0; i < of_two.size(); ++i) {
    of_two[i] = kExpCoefficients[i] * std::pow(0.6931471805599453, static_cast<double>(of_two.size() - 1 - i));
  }
  return TimesPowerOfTwo(Polynomial(Subtract(t, n), of_two), n);
}

// x = n ln 2 + r, a polynomial for e^r (least largest relative error, 1 at 0), n into the exponent. Relative error
// below 2e-7; results up to the largest float and infinity come out. Vectors of 16 have an instruction that multiplies
// by 2^n, whatever n; else two factors do it (2 and 2^(n-1)), and below e^-86.6 the result stays at 2e-38.
Value VectorMath::Exp(const Value& x) {
  if (x.kind == ElementKind::kDouble) return Unary("math.exp", x);
  const bool has_scaling = e_.lanes() == 16;
  const Value limited = Limit(x, has_scaling ? -104.0 : -86.6, 89.0);
  const Value n = Unary("math.roundeven", Multiply(limited, Like(1.4426950408889634, x)));
  Value r = FusedMultiplyAdd(n, Like(-0.693359375, x), limited);
  r = FusedMultiplyAdd(n, Like(2.12194440e-4, x), r);
  Value p = Polynomial(r, kExpCoefficients);
  if (has_scaling) return TimesPowerOfTwo(p, n);
  p = Add(p, p);
  const std::string ints = fmt::format("vector<{}xi32>", e_.lanes());
  const std::string n_int = e_.Def(fmt::format("arith.fptosi {} : {} to {}", n.name, e_.FloatVector(), ints));
  return Multiply(p, FromBits(BitsOp("shli", BitsOp("addi", n_int, 126), 23)));
}

std::string VectorMath::Bits(const Value& x) {
  return e_.Def(fmt::format("arith.bitcast {} : {} to vector<{}xi32>", x.name, e_.FloatVector(), e_.lanes()));
}

Value VectorMath::FromBits(const std::string& bits) {
  return {e_.Def(fmt::format("arith.bitcast {} : vector<{}xi32> to {}", bits, e_.lanes(), e_.FloatVector())),
          ElementKind::kFloat};
}

std::string VectorMath::BitsOp(const char* op, const std::string& bits, int32_t operand) {
  const std::string type = fmt::format("vector<{}xi32>", e_.lanes());
  const std::string constant = e_.Def(fmt::format("arith.constant dense<{}> : {}", operand, type));
  return e_.Def(fmt::format("arith.{} {}, {} : {}", op, bits, constant, type));
}

// x = m 2^e with m from sqrt(1/2) to sqrt(2); log m = 2 artanh s with s = (m - 1) / (m + 1), |s| < 0.172.
Value VectorMath::Log(const Value& x) {
  if (x.kind == ElementKind::kDouble) return Unary("math.log", x);
  constexpr int32_t kRootOfHalf = 0x3f3504f3;
  const Value smallest = Like(1.17549435e-38, x);
  const Value is_tiny = Compare("olt", "slt", x, smallest);
  const Value scaled = Select(is_tiny, Multiply(x, Like(8388608, x)), x);
  const std::string shifted = BitsOp("subi", Bits(scaled), kRootOfHalf);
  const std::string exponent = BitsOp("shrsi", shifted, 23);
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
  std::string quadrant = e_.Def(fmt::format("arith.fptosi {} : {} to {}", k.name, e_.FloatVector(), ints));
  if (is_cosine) quadrant = BitsOp("addi", quadrant, 1);
  const std::string is_odd = e_.Def(fmt::format("arith.trunci {} : {} to vector<{}xi1>", quadrant, ints, e_.lanes()));
  const Value value = Select({is_odd, ElementKind::kBool}, cosine, sine);
  const std::string sign = BitsOp("shli", BitsOp("andi", quadrant, 2), 30);
  return FromBits(e_.Def(fmt::format("arith.xori {}, {} : {}", Bits(value), sign, ints)));
}

namespace {

constexpr size_t kDegree = 5;  // of the polynomial of each piece

/// The polynomial that equals `f` at the zeros of Chebyshev's polynomial around `centre`; c[i] belongs to r^i.
std::array<double, kDegree + 1> Interpolate(double (*f)(double), double centre, double width) {
  constexpr size_t kNodes = kDegree + 1;
  std::array<double, kNodes> nodes{};
  std::array<double, kNodes> differences{};  // divided, of Newton's form
  for (size_t i = 0; i < kNodes; ++i) {
    nodes[i] = std::cos((2.0 * static_cast<double>(i) + 1) * 3.141592653589793 / (2 * kNodes)) * width / 2;
    differences[i] = f(centre + nodes[i]);
  }
  for (size_t order = 1; order < kNodes; ++order) {
    for (size_t i = kNodes - 1; i >= order; --i) {
      differences[i] = (differences[i] - differences[i - 1]) / (nodes[i] - nodes[i - order]);
    }
  }
  std::array<double, kNodes> c{};
  for (size_t i = kNodes; i-- > 0;) {  // c = c * (r - nodes[i]) + differences[i]
    for (size_t k = kNodes; k-- > 0;) c[k] = (k > 0 ? c[k - 1] : 0) - c[k] * nodes[i];
    c[0] += differences[i];
  }
  return c;
}

}  // namespace

// Piece i is that around i * width; adding a large number rounds |x| / width to i, in the low bits of the sum.
Value VectorMath::OddByPieces(const Value& x, double (*f)(double), double width, int pieces) {
  constexpr double kRounds = 12582912;  // 1.5 * 2^23
  const auto exactly = [&](const char* op, const std::string& operands) -> Value {
    return {e_.Def(fmt::format("{} {} fastmath<nsz> : {}", op, operands, e_.FloatVector())), ElementKind::kFloat};
  };
  const Value magnitude = Abs(x);
  const Value last = Like((pieces - 0.51) * width, x);
  const Value limited = Select(Compare("ogt", "sgt", magnitude, last), last, magnitude);
  const Value rounds = Like(kRounds, x);
  const Value sum = exactly("math.fma", fmt::format("{}, {}, {}", limited.name, Like(1 / width, x).name, rounds.name));
  const Value number = exactly("arith.subf", fmt::format("{}, {}", sum.name, rounds.name));
  const Value r = FusedMultiplyAdd(number, Like(-width, x), limited);
  std::vector<std::array<double, kDegree + 1>> coefficients;
  for (int i = 0; i < pieces; ++i) coefficients.push_back(Interpolate(f, i * width, width));
  Value p;
  for (size_t power = kDegree + 1; power-- > 0;) {
    std::vector<double> table;
    for (const auto& piece : coefficients) table.push_back(piece[power]);
    const Value c = LookUp(table, Bits(sum));
    p = power == kDegree ? c : FusedMultiplyAdd(p, r, c);
  }
  return Binary("math.copysign", p, x);
}

Value VectorMath::LookUp(const std::vector<double>& table, const std::string& positions) {
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

// Absolute error below 1.5e-7.
Value VectorMath::Erf(const Value& x) {
  if (x.kind == ElementKind::kDouble) return Unary("math.erf", x);
  if (e_.lanes() == 16)
    return OddByPieces(
        x, [](double value) { return std::erf(value); }, 0.25, 16);
  const Value magnitude = Abs(x);
  const Value one = Like(1, x);
  const Value t = Divide(one, FusedMultiplyAdd(magnitude, Like(0.3275911, x), one));
  constexpr std::array<double, 5> kCoefficients{1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592};
  const Value p = Polynomial(t, kCoefficients);
  const Value tail = Exp(Negate(Multiply(x, x)));
  return Binary("math.copysign", Subtract(one, Multiply(Multiply(p, t), tail)), x);
}

// Absolute error below 1.5e-7. Without pieces: (1 - e) / (1 + e) with e = exp(-2 |x|), the sign put back.
Value VectorMath::Tanh(const Value& x) {
  if (x.kind == ElementKind::kDouble) return Unary("math.tanh", x);
  constexpr double kWidth = 37.0 / 128;  // 31.5 of them reach to where floats next to tanh are 1
  if (e_.lanes() == 16)
    return OddByPieces(
        x, [](double value) { return std::tanh(value); }, kWidth, 32);
  const Value e = Exp(Multiply(Abs(x), Like(-2, x)));
  const Value one = Like(1, x);
  return Binary("math.copysign", Divide(Subtract(one, e), Add(one, e)), x);
}

Value VectorMath::Sigmoid(const Value& x) {
  const Value one = Like(1, x);
  return Divide(one, Add(one, Exp(Negate(x))));
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
