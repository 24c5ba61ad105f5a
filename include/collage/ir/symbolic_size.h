// symbolic_size.h: integers that depend on sizes which only a run knows, as canonical polynomials.
//
//     batch, 12 * heads, floor((width + 1) / 2), min(length, 512)
//
// Two sizes are equal for every run if their canonical forms are; the converse does not hold, so that "not provably
// equal" never means "different".
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace collage {

/// Numbers from `low` to `high`.
struct SizeRange {
  int64_t low = 0;
  int64_t high = std::numeric_limits<int64_t>::max();

  bool operator==(const SizeRange&) const = default;
};

/// A number, or a polynomial with integer coefficients over symbols and over floors of quotients, minima and maxima of
/// polynomials. Values are immutable and cheap to copy. Arithmetic that would overflow throws kInput.
class SymbolicSize {
 public:
  /// A factor of a term. Symbols are compared by identity, all others by content.
  struct Factor {
    enum class Kind : uint8_t { kSymbol, kFloorDivide, kMinimum, kMaximum, kProduct };
    Kind kind;
    std::string name;   ///< a symbol's name
    int64_t order = 0;  ///< a symbol's position among others
    SizeRange range;    ///< a symbol's values
    std::vector<SymbolicSize> operands;
    int depth = 1;
  };
  using FactorRef = std::shared_ptr<const Factor>;
  /// `coefficient` times the product of `factors`, which are in order and may repeat; without factors, a number.
  struct Term {
    int64_t coefficient;
    std::vector<FactorRef> factors;
  };

  SymbolicSize(int64_t value = 0) : constant_(value) {}  // NOLINT: implicit, so that sizes read as numbers
  /// A new symbol for a size in `range`, unequal to all others. `order` sorts it among those of one model.
  static SymbolicSize Symbol(std::string name, int64_t order, SizeRange range = {});

  bool is_known() const { return terms_ == nullptr; }
  /// The number; must be known.
  int64_t known() const;
  /// Terms with factors, in order; none of a known number.
  const std::vector<Term>& terms() const;
  /// The term without factors.
  int64_t constant() const { return constant_; }
  /// How deep floors, minima and maxima nest.
  int depth() const;

  /// No run gives less (more) than this; the least (largest) int64 where nothing is known.
  int64_t lower_bound() const;
  int64_t upper_bound() const;

  /// "2*width + floor((height + 1)/2) - 3".
  std::string ToString() const;

  friend SymbolicSize operator+(const SymbolicSize& a, const SymbolicSize& b);
  friend SymbolicSize operator-(const SymbolicSize& a, const SymbolicSize& b);
  friend SymbolicSize operator*(const SymbolicSize& a, const SymbolicSize& b);
  SymbolicSize& operator*=(const SymbolicSize& other) { return *this = *this * other; }
  SymbolicSize& operator+=(const SymbolicSize& other) { return *this = *this + other; }
  /// Whether both are provably equal.
  friend bool operator==(const SymbolicSize& a, const SymbolicSize& b) { return Compare(a, b) == 0; }

  /// The quotient rounded down; throws kInput for a divisor that is known to be 0.
  static SymbolicSize FloorDivide(const SymbolicSize& a, const SymbolicSize& b);
  /// The quotient by a number of 1 or more rounded up.
  static SymbolicSize CeilDivide(const SymbolicSize& a, int64_t b) { return FloorDivide(a + (b - 1), b); }
  static SymbolicSize Minimum(const SymbolicSize& a, const SymbolicSize& b);
  static SymbolicSize Maximum(const SymbolicSize& a, const SymbolicSize& b);
  /// Returns q with a = q * b as polynomials, or nothing if there is none. Does not consider b = 0 in some run.
  static std::optional<SymbolicSize> DivideExactly(const SymbolicSize& a, const SymbolicSize& b);
  /// A total order of canonical forms: negative, 0 or positive.
  static int Compare(const SymbolicSize& a, const SymbolicSize& b);

 private:
  static SymbolicSize Of(int64_t constant, std::vector<Term> terms);
  static SymbolicSize OfFactor(Factor factor);
  static int Compare(const FactorRef& a, const FactorRef& b);
  static int Compare(const std::vector<FactorRef>& a, const std::vector<FactorRef>& b);

  int64_t constant_ = 0;
  std::shared_ptr<const std::vector<Term>> terms_;  ///< null for a known number
};

/// Whether `a` is no larger than `b` in every run, as far as bounds tell.
bool IsAtMost(const SymbolicSize& a, const SymbolicSize& b);

}  // namespace collage
