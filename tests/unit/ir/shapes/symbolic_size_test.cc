// symbolic_size_test.cc: equal polynomials are found equal, and what is found holds for every number.
#include "collage/ir/symbolic_size.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

#include "collage/support/error.h"

namespace collage {
namespace {

const SymbolicSize kW = SymbolicSize::Symbol("w", 0);
const SymbolicSize kH = SymbolicSize::Symbol("h", 1);

/// The value of `size` for these numbers in place of w and h.
int64_t ValueOf(const SymbolicSize& size, int64_t w, int64_t h) {
  using Kind = SymbolicSize::Factor::Kind;
  int64_t sum = size.constant();
  for (const SymbolicSize::Term& term : size.terms()) {
    int64_t product = term.coefficient;
    for (const SymbolicSize::FactorRef& factor : term.factors) {
      if (factor->kind == Kind::kSymbol) {
        product *= factor->name == "w" ? w : h;
        continue;
      }
      const int64_t a = ValueOf(factor->operands[0], w, h), b = ValueOf(factor->operands[1], w, h);
      product *= factor->kind == Kind::kMinimum   ? std::min(a, b)
                 : factor->kind == Kind::kMaximum ? std::max(a, b)
                 : factor->kind == Kind::kProduct ? a * b
                                                  : (a >= 0 ? a / b : -((-a + b - 1) / b));
    }
    sum += product;
  }
  return sum;
}

TEST(SymbolicSizeTest, RangesOfSymbolsBoundWhatIsMadeOfThem) {
  const SymbolicSize s = SymbolicSize::Symbol("s", 2, {2, 10});
  EXPECT_EQ(s.lower_bound(), 2);
  EXPECT_EQ((s * 3 + 1).upper_bound(), 31);
  EXPECT_EQ((s * s).upper_bound(), 100);
  EXPECT_EQ(SymbolicSize::FloorDivide(s + 5, 4).lower_bound(), 1);
  EXPECT_EQ(SymbolicSize::FloorDivide(s + 5, 4).upper_bound(), 3);
  EXPECT_EQ(SymbolicSize::Minimum(s, 16), s);
  EXPECT_TRUE(IsAtMost(s, 10));
  EXPECT_FALSE(IsAtMost(s, 9));
}

TEST(SymbolicSizeTest, ArithmeticIsCanonical) {
  EXPECT_EQ((kW + 1) * (kH - 2), kW * kH + kH - kW * 2 - 2);
  EXPECT_EQ(kW - kW, SymbolicSize(0));
  EXPECT_TRUE((kW + 3 - kW).is_known());
  EXPECT_FALSE(kW == kH);
  EXPECT_FALSE(SymbolicSize::Symbol("w", 0) == kW);
  EXPECT_EQ((kW * 2 * kH - 3).ToString(), "2*w*h - 3");
  EXPECT_EQ((SymbolicSize(0) - kW).ToString(), "-w");
}

TEST(SymbolicSizeTest, FloorsAreReduced) {
  EXPECT_EQ(SymbolicSize::FloorDivide(kW * 4 + 5, 2), kW * 2 + 2);
  // Two convolutions of stride 2 and padding 1 with kernels of 3.
  const SymbolicSize once = SymbolicSize::FloorDivide(kW - 1, 2) + 1;
  const SymbolicSize twice = SymbolicSize::FloorDivide(once - 1, 2) + 1;
  EXPECT_EQ(twice, SymbolicSize::FloorDivide(kW + 3, 4));
  EXPECT_EQ(SymbolicSize::FloorDivide(kW, -2), SymbolicSize::FloorDivide(SymbolicSize(0) - kW, 2));
  EXPECT_THROW(SymbolicSize::FloorDivide(kW, 0), Error);
}

TEST(SymbolicSizeTest, QuotientsOfMultiplesAreExact) {
  EXPECT_EQ(SymbolicSize::DivideExactly(kW * kH * 12, kH * 4), kW * 3);
  EXPECT_EQ(SymbolicSize::DivideExactly((kW + 1) * (kH - 2), kW + 1), kH - 2);
  EXPECT_EQ(SymbolicSize::DivideExactly(kW * 3, kW * 2), std::nullopt);
  EXPECT_EQ(SymbolicSize::DivideExactly(kW + 1, kW), std::nullopt);
  EXPECT_EQ(SymbolicSize::DivideExactly(kW, 0), std::nullopt);
}

TEST(SymbolicSizeTest, BoundsDecideMinimaAndMaxima) {
  EXPECT_EQ(SymbolicSize::Minimum(kW, kW + 3), kW);
  EXPECT_EQ(SymbolicSize::Maximum(kW, 0), kW);
  EXPECT_EQ(SymbolicSize::Minimum(kW, 64), SymbolicSize::Minimum(64, kW));
  EXPECT_EQ(SymbolicSize::Minimum(kW, 64).upper_bound(), 64);
  EXPECT_EQ(SymbolicSize::Maximum(kW - 1, 0).lower_bound(), 0);
  EXPECT_EQ((kW - 1).lower_bound(), -1);
  EXPECT_EQ((kW - kH).lower_bound(), std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(IsAtMost(SymbolicSize::FloorDivide(kW, 3), kW + SymbolicSize::FloorDivide(kW, 3)));
}

TEST(SymbolicSizeTest, NumbersBeyond64BitsAreErrors) {
  EXPECT_THROW(SymbolicSize(std::numeric_limits<int64_t>::max()) + 1, Error);
  EXPECT_THROW(kW * std::numeric_limits<int64_t>::max() * 2, Error);
}

TEST(SymbolicSizeTest, LongProductsStayProducts) {
  SymbolicSize a = 0, b = 0;
  for (int i = 0; i < 20; ++i) {
    a += SymbolicSize::Symbol("a", i);
    b += SymbolicSize::Symbol("b", 20 + i);
  }
  EXPECT_EQ((a * b).terms().size(), 1);
  EXPECT_EQ(a * b, b * a);
}

// Random expressions, built beside their values at several sizes.
TEST(SymbolicSizeTest, WhatIsFoundHoldsForEveryNumber) {
  std::mt19937 random(7);
  const auto below = [&](int64_t count) { return static_cast<int64_t>(random() % static_cast<uint64_t>(count)); };
  for (int round = 0; round < 3000; ++round) {
    const int64_t w = below(50), h = below(7);
    std::vector<std::pair<SymbolicSize, int64_t>> known{{kW, w}, {kH, h}, {below(9) - 4, 0}};
    known[2].second = known[2].first.known();
    for (int step = 0; step < 6; ++step) {
      const auto [a, x] = known[static_cast<size_t>(below(static_cast<int64_t>(known.size())))];
      const auto [b, y] = known[static_cast<size_t>(below(static_cast<int64_t>(known.size())))];
      const int64_t divisor = 1 + below(5);
      const auto floor = [&](int64_t value) {
        return value >= 0 ? value / divisor : -((-value + divisor - 1) / divisor);
      };
      switch (below(6)) {
        case 0: known.emplace_back(a + b, x + y); break;
        case 1: known.emplace_back(a - b, x - y); break;
        case 2: known.emplace_back(a * b, x * y); break;
        case 3: known.emplace_back(SymbolicSize::FloorDivide(a, divisor), floor(x)); break;
        case 4: known.emplace_back(SymbolicSize::Minimum(a, b), std::min(x, y)); break;
        default: known.emplace_back(SymbolicSize::Maximum(a, b), std::max(x, y)); break;
      }
    }
    for (const auto& [size, value] : known) {
      ASSERT_EQ(ValueOf(size, w, h), value) << size.ToString() << " at w = " << w << ", h = " << h;
      ASSERT_LE(size.lower_bound(), value) << size.ToString() << " at w = " << w << ", h = " << h;
      ASSERT_GE(size.upper_bound(), value) << size.ToString() << " at w = " << w << ", h = " << h;
      for (const auto& [other, number] : known) {
        if (size == other) {
          ASSERT_EQ(value, number) << size.ToString() << " and " << other.ToString();
        }
        const auto quotient = SymbolicSize::DivideExactly(size, other);
        if (quotient) {
          ASSERT_EQ(ValueOf(*quotient, w, h) * number, value) << size.ToString() << " / " << other.ToString();
        }
      }
    }
  }
}

}  // namespace
}  // namespace collage
