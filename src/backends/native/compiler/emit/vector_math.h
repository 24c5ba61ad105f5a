// vector_math.h: arithmetic and elementary functions on vectors, as MLIR text.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/native/compiler/emit/emitter.h"
#include "backends/native/compiler/emit/piecewise_polynomial.h"

namespace collage::native {

/// Operations on vectors of equal kind. Functions of floats work on float32 with polynomials of this file, on float64
/// with the C library.
class VectorMath {
 public:
  explicit VectorMath(Emitter& emitter) : e_(emitter) {}

  /// Whether vectors are those of AVX-512, which look up tables in registers, take fractions and scale by powers of two
  /// by one instruction each.
  bool IsAvx512() const { return e_.lanes() == 16; }

  // ---- constants ----
  Value Number(double value, ElementKind kind);
  Value Integer(int64_t value);
  Value Bool(bool value);
  /// `value` as a constant of the kind of `like`.
  Value Like(double value, const Value& like) { return Number(value, like.kind); }

  // ---- arithmetic ----
  Value Add(const Value& a, const Value& b) { return ByKind("arith.addf", "arith.addi", a, b); }
  Value Subtract(const Value& a, const Value& b) { return ByKind("arith.subf", "arith.subi", a, b); }
  Value Multiply(const Value& a, const Value& b) { return ByKind("arith.mulf", "arith.muli", a, b); }
  /// Division; of integers it truncates, and is 0 where b is 0.
  Value Divide(const Value& a, const Value& b);
  /// Division that the compiler may not turn into a product with the reciprocal.
  Value DivideExactly(const Value& a, const Value& b);
  /// Any operation on floats that stays as it stands.
  Value Exactly(const char* op, std::initializer_list<Value> operands);
  Value Remainder(const Value& a, const Value& b);
  Value FusedMultiplyAdd(const Value& a, const Value& b, const Value& c);
  Value Negate(const Value& x);
  /// Not-a-number if one operand is.
  Value Maximum(const Value& a, const Value& b) { return ByKind("arith.maximumf", "arith.maxsi", a, b); }
  Value Minimum(const Value& a, const Value& b) { return ByKind("arith.minimumf", "arith.minsi", a, b); }
  /// a > b ? a : b: one instruction, and b where one is not a number.
  Value Larger(const Value& a, const Value& b) { return Select(Compare("ogt", "sgt", a, b), a, b); }
  Value Smaller(const Value& a, const Value& b) { return Select(Compare("olt", "slt", a, b), a, b); }
  /// Limited to [low, high]; not-a-number stays.
  Value Limit(const Value& x, double low, double high);
  Value And(const Value& a, const Value& b) { return Binary("arith.andi", a, b); }
  Value Or(const Value& a, const Value& b) { return Binary("arith.ori", a, b); }
  Value Xor(const Value& a, const Value& b) { return Binary("arith.xori", a, b); }
  Value Not(const Value& x) { return Xor(x, Bool(true)); }

  /// Predicates of arith.cmpf and arith.cmpi; the result is of kind kBool.
  Value Compare(const char* on_floats, const char* on_integers, const Value& a, const Value& b);
  Value Select(const Value& condition, const Value& a, const Value& b);
  /// Lane i of the result is lane `lane(i)` of `a` and `b`, one after the other.
  Value Shuffle(const Value& a, const Value& b, const std::function<int64_t(int64_t)>& lane);
  /// An operation that takes and gives vectors of one type.
  Value Unary(const char* op, const Value& x);
  Value Binary(const char* op, const Value& a, const Value& b);

  // ---- tables ----
  /// For each lane of 16 the entry of `table`, 16 or 32 floats, that the low bits of `positions`, a vector of int32,
  /// say.
  Value LookUp(const std::vector<double>& table, const Vector& positions);

  // ---- conversion ----
  /// As the reference's cast: floats saturate and truncate to integers, integers wrap.
  Value Convert(const Value& x, DataType to);
  /// The integer as a tensor of `dtype` would hold it.
  Value Wrap(const Value& x, DataType dtype);

  // ---- functions of floats ----
  Value Exp(const Value& x);
  /// e^(x - bound) where x is at most `bound`: relative error below (2 + |x - bound|) 1.4e-7.
  Value ExpBelow(const Value& x, const Value& bound);
  Value Log(const Value& x);
  Value Sin(const Value& x) { return Circular(x, /*is_cosine=*/false); }
  Value Cos(const Value& x) { return Circular(x, /*is_cosine=*/true); }
  Value Sqrt(const Value& x) { return Unary("math.sqrt", x); }
  Value Abs(const Value& x);
  Value Erf(const Value& x);
  Value Tanh(const Value& x);
  /// Relative error below (3 + |x|) 1.2e-7, of results that are not denormal.
  Value Sigmoid(const Value& x);
  /// relu(x) + |x| times what `pieces`, 16 or 32 of which the last one is 0, are at |x|: of float32 in vectors of 16.
  /// Not a number where x is none or -infinity, as x * 0 is not.
  Value ReluAnd(const PiecewisePolynomial& pieces, const Value& x);
  /// Sign of x: -1, 0, 1, or not-a-number.
  Value Sign(const Value& x);
  Value Power(const Value& a, const Value& b);

  Emitter& emitter() { return e_; }

 private:
  Value ByKind(const char* on_floats, const char* on_integers, const Value& a, const Value& b);
  /// c[0] x^n + … + c[n] by Horner's rule.
  Value Polynomial(const Value& x, std::span<const double> coefficients);
  Value Circular(const Value& x, bool is_cosine);
  // In vectors of 16:
  /// x times 2^floor(n).
  Value TimesPowerOfTwo(const Value& x, const Value& n);
  /// 2^x: relative error below 1.5e-7, infinities included.
  Value PowerOfTwo(const Value& x);
  /// An odd function that is 1 behind its pieces, of which there are 16 or 32.
  Value OddPiecewise(const Value& x, const PiecewisePolynomial& pieces);
  /// The polynomials of `pieces`, 16 or 32, at `magnitude`, which is not negative and at most their `last`.
  Value AtPiecewise(const PiecewisePolynomial& pieces, const Value& magnitude);
  /// An instruction on all lanes that rounds as the thread's mode says; `operands`: each with its type.
  Value Instruction(const char* name, const std::vector<std::pair<std::string, std::string>>& operands);
  /// Operations on vectors of int32, which hold the bits of floats.
  Vector Bits(const Value& x);
  Value FromBits(const Vector& bits);
  Vector BitsOp(const char* op, const Vector& bits, int32_t operand);
  Value IntegerPower(const Value& a, const Value& b);

  Emitter& e_;
};

inline bool IsFloat(const Value& x) { return x.kind == ElementKind::kFloat || x.kind == ElementKind::kDouble; }

}  // namespace collage::native
