// symbolic_size.cc: arithmetic that keeps polynomials canonical: terms sorted by degree and factors, none with a
// coefficient of 0, quotients reduced.
#include "collage/ir/symbolic_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "collage/support/error.h"

namespace collage {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
// Products of longer sums stay products: expanded, they would grow without end.
constexpr size_t kMostTerms = 64;

[[noreturn]] void Overflow() { throw Error(ErrorCategory::kInput, "a size is beyond 64 bits"); }

int64_t Plus(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) Overflow();
  return sum;
}

int64_t Times(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) Overflow();
  return product;
}

int64_t Floor(int64_t a, int64_t b) {
  if (b == -1) return Times(a, -1);
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int Sign(int64_t a, int64_t b) { return a < b ? -1 : a > b ? 1 : 0; }

// Bounds: the extremes stand for "none".
int64_t BoundSum(int64_t a, int64_t b, int64_t none) {
  int64_t sum = 0;
  return a == none || b == none || __builtin_add_overflow(a, b, &sum) ? none : sum;
}
int64_t BoundProduct(int64_t a, int64_t b, int64_t none) {
  int64_t product = 0;
  return a == none || b == none || __builtin_mul_overflow(a, b, &product) ? none : product;
}

int64_t LowerBound(const SymbolicSize::Factor& factor) {
  using Kind = SymbolicSize::Factor::Kind;
  switch (factor.kind) {
    case Kind::kSymbol: return factor.range.low;
    case Kind::kMinimum: return std::min(factor.operands[0].lower_bound(), factor.operands[1].lower_bound());
    case Kind::kMaximum: return std::max(factor.operands[0].lower_bound(), factor.operands[1].lower_bound());
    case Kind::kFloorDivide: {
      const int64_t least = factor.operands[0].lower_bound();
      const SymbolicSize& divisor = factor.operands[1];
      if (divisor.lower_bound() < 1 || least == kLeast) return kLeast;
      if (least >= 0) return divisor.upper_bound() == kMost ? 0 : least / divisor.upper_bound();
      return least;
    }
    case Kind::kProduct: {
      const int64_t a = factor.operands[0].lower_bound(), b = factor.operands[1].lower_bound();
      if (a < 0 || b < 0) return kLeast;
      const int64_t product = BoundProduct(a, b, kMost);
      return product == kMost ? 0 : product;
    }
  }
  return kLeast;
}

int64_t UpperBound(const SymbolicSize::Factor& factor) {
  using Kind = SymbolicSize::Factor::Kind;
  switch (factor.kind) {
    case Kind::kSymbol: return factor.range.high;
    case Kind::kMinimum: return std::min(factor.operands[0].upper_bound(), factor.operands[1].upper_bound());
    case Kind::kMaximum: return std::max(factor.operands[0].upper_bound(), factor.operands[1].upper_bound());
    case Kind::kFloorDivide: {
      const int64_t most = factor.operands[0].upper_bound(), divisor = factor.operands[1].lower_bound();
      if (most == kMost || divisor < 1) return kMost;
      return most < 0 ? -1 : most / divisor;
    }
    case Kind::kProduct: return kMost;
  }
  return kMost;
}

/// Bounds of a product of factors none of which is negative; nothing where one may be.
struct Range {
  int64_t least = 1, most = 1;
};
std::optional<Range> RangeOf(const SymbolicSize::Term& term) {
  Range range;
  for (const SymbolicSize::FactorRef& factor : term.factors) {
    const int64_t least = LowerBound(*factor), most = UpperBound(*factor);
    if (least < 0) return std::nullopt;
    range.least = BoundProduct(range.least, least, kMost);
    if (range.least == kMost) range.least = 0;
    range.most = range.most == 0 || most == 0 ? 0 : BoundProduct(range.most, most, kMost);
  }
  return range;
}

std::string Text(const SymbolicSize::Factor& factor) {
  using Kind = SymbolicSize::Factor::Kind;
  const auto operand = [&](size_t i) { return factor.operands[i].ToString(); };
  switch (factor.kind) {
    case Kind::kSymbol: return factor.name;
    case Kind::kFloorDivide: return fmt::format("floor(({})/({}))", operand(0), operand(1));
    case Kind::kMinimum: return fmt::format("min({}, {})", operand(0), operand(1));
    case Kind::kMaximum: return fmt::format("max({}, {})", operand(0), operand(1));
    case Kind::kProduct: return fmt::format("({})*({})", operand(0), operand(1));
  }
  return {};
}

}  // namespace

SymbolicSize SymbolicSize::Symbol(std::string name, int64_t order, SizeRange range) {
  return OfFactor(
      {.kind = Factor::Kind::kSymbol, .name = std::move(name), .order = order, .range = range, .operands = {}});
}

SymbolicSize SymbolicSize::OfFactor(Factor factor) {
  for (const SymbolicSize& operand : factor.operands) factor.depth = std::max(factor.depth, operand.depth() + 1);
  return Of(0, {{1, {std::make_shared<const Factor>(std::move(factor))}}});
}

int64_t SymbolicSize::known() const {
  COLLAGE_CHECK(is_known()) << "the value asked of '" << ToString() << "'";
  return constant_;
}

const std::vector<SymbolicSize::Term>& SymbolicSize::terms() const {
  static const std::vector<Term> none;
  return terms_ ? *terms_ : none;
}

int SymbolicSize::depth() const {
  int depth = 0;
  for (const Term& term : terms()) {
    for (const FactorRef& factor : term.factors) depth = std::max(depth, factor->depth);
  }
  return depth;
}

// ---- order ----

int SymbolicSize::Compare(const FactorRef& a, const FactorRef& b) {
  if (a == b) return 0;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  if (a->kind == Factor::Kind::kSymbol) {
    if (const int by_order = Sign(a->order, b->order)) return by_order;
    if (const int by_name = a->name.compare(b->name)) return by_name;
    return std::less<>()(a.get(), b.get()) ? -1 : 1;
  }
  for (size_t i = 0; i < a->operands.size(); ++i) {
    if (const int order = Compare(a->operands[i], b->operands[i])) return order;
  }
  return 0;
}

int SymbolicSize::Compare(const std::vector<FactorRef>& a, const std::vector<FactorRef>& b) {
  // Higher degrees first: an order in which leading terms of products are products of leading terms.
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (const int order = Compare(a[i], b[i])) return order;
  }
  return 0;
}

int SymbolicSize::Compare(const SymbolicSize& a, const SymbolicSize& b) {
  if (a.terms_ == b.terms_) return Sign(a.constant_, b.constant_);
  const std::vector<Term>& x = a.terms();
  const std::vector<Term>& y = b.terms();
  if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
  for (size_t i = 0; i < x.size(); ++i) {
    if (const int by_factors = Compare(x[i].factors, y[i].factors)) return by_factors;
    if (const int by_coefficient = Sign(x[i].coefficient, y[i].coefficient)) return by_coefficient;
  }
  return Sign(a.constant_, b.constant_);
}

SymbolicSize SymbolicSize::Of(int64_t constant, std::vector<Term> terms) {
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Term& a, const Term& b) { return Compare(a.factors, b.factors) < 0; });
  std::vector<Term> merged;
  for (Term& term : terms) {
    if (!merged.empty() && Compare(merged.back().factors, term.factors) == 0) {
      merged.back().coefficient = Plus(merged.back().coefficient, term.coefficient);
    } else {
      merged.push_back(std::move(term));
    }
  }
  std::erase_if(merged, [](const Term& term) { return term.coefficient == 0; });
  SymbolicSize size(constant);
  if (!merged.empty()) size.terms_ = std::make_shared<const std::vector<Term>>(std::move(merged));
  return size;
}

// ---- arithmetic ----

SymbolicSize operator+(const SymbolicSize& a, const SymbolicSize& b) {
  const int64_t constant = Plus(a.constant_, b.constant_);
  if (a.is_known() && b.is_known()) return constant;
  std::vector<SymbolicSize::Term> terms = a.terms();
  terms.insert(terms.end(), b.terms().begin(), b.terms().end());
  return SymbolicSize::Of(constant, std::move(terms));
}

SymbolicSize operator-(const SymbolicSize& a, const SymbolicSize& b) { return a + b * SymbolicSize(-1); }

SymbolicSize operator*(const SymbolicSize& a, const SymbolicSize& b) {
  using Term = SymbolicSize::Term;
  if (a.is_known() && b.is_known()) return Times(a.constant_, b.constant_);
  const auto scaled = [](const SymbolicSize& size, int64_t factor) {
    std::vector<Term> terms = size.terms();
    for (Term& term : terms) term.coefficient = Times(term.coefficient, factor);
    return SymbolicSize::Of(Times(size.constant_, factor), std::move(terms));
  };
  if (a.is_known()) return scaled(b, a.constant_);
  if (b.is_known()) return scaled(a, b.constant_);
  if ((a.terms().size() + 1) * (b.terms().size() + 1) > kMostTerms) {
    const bool in_order = SymbolicSize::Compare(a, b) <= 0;
    return SymbolicSize::OfFactor(
        {.kind = SymbolicSize::Factor::Kind::kProduct, .name = {}, .operands = {in_order ? a : b, in_order ? b : a}});
  }
  std::vector<Term> terms;
  const auto add = [&](int64_t coefficient, std::vector<SymbolicSize::FactorRef> factors) {
    std::sort(factors.begin(), factors.end(),
              [](const auto& x, const auto& y) { return SymbolicSize::Compare(x, y) < 0; });
    terms.push_back({coefficient, std::move(factors)});
  };
  for (const Term& x : a.terms()) {
    for (const Term& y : b.terms()) {
      std::vector<SymbolicSize::FactorRef> factors = x.factors;
      factors.insert(factors.end(), y.factors.begin(), y.factors.end());
      add(Times(x.coefficient, y.coefficient), std::move(factors));
    }
    add(Times(x.coefficient, b.constant_), x.factors);
  }
  for (const Term& y : b.terms()) add(Times(y.coefficient, a.constant_), y.factors);
  return SymbolicSize::Of(Times(a.constant_, b.constant_), std::move(terms));
}

SymbolicSize SymbolicSize::FloorDivide(const SymbolicSize& a, const SymbolicSize& b) {
  if (!b.is_known()) {
    if (a.is_known() && a.constant_ == 0) return 0;
    return OfFactor({.kind = Factor::Kind::kFloorDivide, .name = {}, .operands = {a, b}});
  }
  if (b.constant_ == 0) throw Error(ErrorCategory::kInput, "a size is divided by 0");
  if (b.constant_ < 0) return FloorDivide(a * SymbolicSize(-1), Times(b.constant_, -1));
  const int64_t divisor = b.constant_;
  // Multiples of the divisor leave the floor: floor((q * d + r) / d) = q + floor(r / d).
  std::vector<Term> outside, inside;
  for (const Term& term : a.terms()) {
    const int64_t quotient = Floor(term.coefficient, divisor);
    if (quotient != 0) outside.push_back({quotient, term.factors});
    if (const int64_t rest = term.coefficient - quotient * divisor; rest != 0) inside.push_back({rest, term.factors});
  }
  const int64_t quotient = Floor(a.constant_, divisor);
  const SymbolicSize whole = Of(quotient, std::move(outside));
  const SymbolicSize rest = Of(a.constant_ - quotient * divisor, std::move(inside));
  if (rest.is_known() || divisor == 1) return whole;  // a rest below the divisor
  // Floors of floors are floors: floor((floor(x / c) + r) / d) = floor((x + r * c) / (c * d)).
  const std::vector<Term>& terms = rest.terms();
  if (terms.size() == 1 && terms[0].coefficient == 1 && terms[0].factors.size() == 1) {
    const Factor& factor = *terms[0].factors[0];
    if (factor.kind == Factor::Kind::kFloorDivide && factor.operands[1].is_known() && factor.operands[1].known() > 0) {
      const int64_t inner = factor.operands[1].known();
      return whole +
             FloorDivide(factor.operands[0] + SymbolicSize(Times(rest.constant_, inner)), Times(inner, divisor));
    }
  }
  return whole + OfFactor({.kind = Factor::Kind::kFloorDivide, .name = {}, .operands = {rest, b}});
}

SymbolicSize SymbolicSize::Minimum(const SymbolicSize& a, const SymbolicSize& b) {
  if (IsAtMost(a, b)) return a;
  if (IsAtMost(b, a)) return b;
  const bool in_order = Compare(a, b) <= 0;
  return OfFactor({.kind = Factor::Kind::kMinimum, .name = {}, .operands = {in_order ? a : b, in_order ? b : a}});
}

SymbolicSize SymbolicSize::Maximum(const SymbolicSize& a, const SymbolicSize& b) {
  if (IsAtMost(a, b)) return b;
  if (IsAtMost(b, a)) return a;
  const bool in_order = Compare(a, b) <= 0;
  return OfFactor({.kind = Factor::Kind::kMaximum, .name = {}, .operands = {in_order ? a : b, in_order ? b : a}});
}

std::optional<SymbolicSize> SymbolicSize::DivideExactly(const SymbolicSize& a, const SymbolicSize& b) {
  if (b.is_known() && b.constant_ == 0) return std::nullopt;
  const auto all = [](const SymbolicSize& size) {
    std::vector<Term> terms = size.terms();
    if (size.constant_ != 0) terms.push_back({size.constant_, {}});
    return terms;
  };
  const Term divisor = all(b)[0];
  SymbolicSize rest = a, quotient;
  for (size_t step = 0; step < kMostTerms; ++step) {
    const std::vector<Term> terms = all(rest);
    if (terms.empty()) return quotient;
    if (terms[0].coefficient % divisor.coefficient != 0) return std::nullopt;
    std::vector<FactorRef> factors = terms[0].factors;
    for (const FactorRef& factor : divisor.factors) {
      const auto found = std::find_if(factors.begin(), factors.end(),
                                      [&](const FactorRef& other) { return Compare(other, factor) == 0; });
      if (found == factors.end()) return std::nullopt;
      factors.erase(found);
    }
    const int64_t coefficient = terms[0].coefficient / divisor.coefficient;
    const SymbolicSize part = factors.empty() ? SymbolicSize(coefficient) : Of(0, {{coefficient, std::move(factors)}});
    quotient += part;
    rest = rest - part * b;
  }
  return std::nullopt;
}

// ---- bounds ----

int64_t SymbolicSize::lower_bound() const {
  int64_t bound = constant_;
  for (const Term& term : terms()) {
    const std::optional<Range> range = RangeOf(term);
    // A floor below 0 has no range of products, but one of its own.
    const bool is_alone = term.factors.size() == 1 && term.coefficient > 0;
    const int64_t least = range      ? (term.coefficient > 0 ? range->least : range->most)
                          : is_alone ? LowerBound(*term.factors[0])
                                     : kMost;
    if (least == kMost || least == kLeast) return kLeast;
    bound = BoundSum(bound, BoundProduct(least, term.coefficient, kLeast), kLeast);
  }
  return bound;
}

int64_t SymbolicSize::upper_bound() const {
  int64_t bound = constant_;
  for (const Term& term : terms()) {
    const std::optional<Range> range = RangeOf(term);
    if (!range) {
      const int64_t most = term.factors.size() == 1 && term.coefficient > 0 ? UpperBound(*term.factors[0]) : kMost;
      if (most == kMost) return kMost;
      bound = BoundSum(bound, BoundProduct(most, term.coefficient, kMost), kMost);
      continue;
    }
    const int64_t most = term.coefficient > 0 ? range->most : range->least;
    if (most == kMost) return kMost;
    bound = BoundSum(bound, BoundProduct(most, term.coefficient, kMost), kMost);
  }
  return bound;
}

bool IsAtMost(const SymbolicSize& a, const SymbolicSize& b) { return (b - a).lower_bound() >= 0; }

std::string SymbolicSize::ToString() const {
  std::string text;
  for (const Term& term : terms()) {
    const bool is_negative = term.coefficient < 0;
    text += text.empty() ? (is_negative ? "-" : "") : is_negative ? " - " : " + ";
    const uint64_t magnitude =
        is_negative ? uint64_t{0} - static_cast<uint64_t>(term.coefficient) : static_cast<uint64_t>(term.coefficient);
    if (magnitude != 1) text += fmt::format("{}*", magnitude);
    for (size_t i = 0; i < term.factors.size(); ++i) text += (i == 0 ? "" : "*") + Text(*term.factors[i]);
  }
  if (text.empty()) return std::to_string(constant_);
  if (constant_ > 0) text += fmt::format(" + {}", constant_);
  if (constant_ < 0) text += fmt::format(" - {}", uint64_t{0} - static_cast<uint64_t>(constant_));
  return text;
}

}  // namespace collage
