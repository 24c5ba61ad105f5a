// random_draws_test.cc: the generator's known answers, and the statistics of what operators draw.
#include "ir/eval/random_draws.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "collage/ir/text.h"
#include "ir/eval/evaluate.h"
#include "ir/eval/interpreter.h"

namespace collage {
namespace {

// The known answers of the authors' implementation, Random123 (kat_vectors: philox4x32 10).
TEST(RandomDrawsTest, PhiloxGivesItsKnownAnswers) {
  EXPECT_EQ(Philox(0, 0).At(0), (Philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(~uint64_t{0}, ~uint64_t{0}).At(~uint64_t{0}),
            (Philox::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox(0x299f31d0a4093822, 0x0370734413198a2e).At(0x85a308d3243f6a88),
            (Philox::Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomDrawsTest, CallsStreamsAndSeedsDiffer) {
  RandomDraws draws(5);
  const Philox::Block first = draws.Next({}, 0).At(0);
  EXPECT_NE(draws.Next({}, 0).At(0), first);
  EXPECT_NE(draws.Next({}, 1).At(0), first);
  EXPECT_EQ(RandomDraws(5).Next({}, 0).At(0), first);
  EXPECT_NE(RandomDraws(6).Next({}, 0).At(0), first);
  EXPECT_NE(RandomDraws().Next({}, 0).At(0), RandomDraws().Next({}, 0).At(0));
  EXPECT_EQ(RandomDraws().Next(3, 0).At(0), RandomDraws().Next(3, 0).At(0));
}

constexpr int64_t kCount = 200'000;

std::vector<double> Drawn(const char* op, const char* dtype, int64_t seed, int64_t stream = 0) {
  const OpDef& def = GetOp(op)->def();
  const Attrs attrs = CompleteAttrs(
      def, {{"shape", std::vector<int64_t>{kCount}}, {"dtype", dtype}, {"seed", seed}, {"stream", stream}});
  const Tensor result = EvaluateOp(def, attrs, {}, {}).at(0);
  std::vector<double> values;
  for (int64_t i = 0; i < kCount; ++i) values.push_back(result.At(i));
  return values;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double Variance(const std::vector<double>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size());
}

/// The largest distance of the empirical distribution from `distribution`, times the root of the number of values
/// (Kolmogorov and Smirnov): above 1.95 for one sample in a thousand.
double KolmogorovSmirnov(std::vector<double> values, const std::function<double(double)>& distribution) {
  std::ranges::sort(values);
  const auto count = static_cast<double>(values.size());
  double largest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double below = distribution(values[i]);
    largest = std::max({largest, below - static_cast<double>(i) / count, static_cast<double>(i + 1) / count - below});
  }
  return largest * std::sqrt(count);
}

/// The correlation of values with those `lag` further on, in deviations of that of independent ones.
double Autocorrelation(const std::vector<double>& values, size_t lag) {
  const double mean = Mean(values);
  double sum = 0;
  for (size_t i = 0; i + lag < values.size(); ++i) sum += (values[i] - mean) * (values[i + lag] - mean);
  return sum / Variance(values) / std::sqrt(static_cast<double>(values.size() - lag));
}

constexpr double kCritical = 1.95;
constexpr double kMostDeviations = 4;

TEST(RandomDrawsTest, UniformNumbersAreUniform) {
  for (const char* dtype : {"float32", "float64"}) {
    for (int64_t seed = 0; seed < 4; ++seed) {
      const std::vector<double> values = Drawn("random.uniform", dtype, seed);
      EXPECT_GE(std::ranges::min(values), 0);
      EXPECT_LT(std::ranges::max(values), 1);
      const double root = std::sqrt(static_cast<double>(kCount));
      EXPECT_LT(std::abs(Mean(values) - 0.5) * root * std::sqrt(12), kMostDeviations);
      EXPECT_LT(std::abs(Variance(values) - 1.0 / 12) * root * std::sqrt(180), kMostDeviations);
      EXPECT_LT(KolmogorovSmirnov(values, [](double x) { return x; }), kCritical) << dtype << " " << seed;
      for (const size_t lag : {1, 2, 3, 4, 5, 8, 64, 1000}) {
        EXPECT_LT(std::abs(Autocorrelation(values, lag)), kMostDeviations) << dtype << " " << seed << " " << lag;
      }
    }
  }
}

TEST(RandomDrawsTest, NormalNumbersAreNormal) {
  for (const char* dtype : {"float32", "float64"}) {
    for (int64_t seed = 0; seed < 4; ++seed) {
      const std::vector<double> values = Drawn("random.normal", dtype, seed);
      const double root = std::sqrt(static_cast<double>(kCount));
      EXPECT_LT(std::abs(Mean(values)) * root, kMostDeviations);
      EXPECT_LT(std::abs(Variance(values) - 1) * root / std::sqrt(2), kMostDeviations);
      const auto normal = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2)); };
      EXPECT_LT(KolmogorovSmirnov(values, normal), kCritical) << dtype << " " << seed;
      for (const size_t lag : {1, 2, 3, 4, 5, 8, 64, 1000}) {
        EXPECT_LT(std::abs(Autocorrelation(values, lag)), kMostDeviations) << dtype << " " << seed << " " << lag;
      }
    }
  }
}

TEST(RandomDrawsTest, StreamsAreIndependent) {
  const std::vector<double> a = Drawn("random.normal", "float64", 1, 0), b = Drawn("random.normal", "float64", 1, 1);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  EXPECT_LT(std::abs(sum) / std::sqrt(static_cast<double>(kCount)), kMostDeviations);
}

TEST(RandomDrawsTest, TheFirstElementsDoNotDependOnHowManyThereAre) {
  const OpDef& def = GetOp("random.uniform")->def();
  const auto draw = [&](int64_t count) {
    const Attrs attrs = CompleteAttrs(def, {{"shape", std::vector<int64_t>{count}}, {"seed", 9}});
    return EvaluateOp(def, attrs, {}, {}).at(0);
  };
  const Tensor few = draw(7), many = draw(1000);
  for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(few.At(i), many.At(i));
}

TEST(RandomDrawsTest, CallsAreMadeEachTimeInALoop) {
  const IRModule module = ParseModule(R"(
    def @main(%n: int32, %sum: Tensor[(2), float32]) -> Tensor[(2), float32] {
      if (%n == 0) { %sum } else { @main(%n - 1, %sum + random.uniform(shape=[2], seed=4)) }
    })");
  const Tensor zeros = Tensor::Zeros({2}, kFloat32);
  const auto run = [&](int n) {
    return FlattenTensors(Interpret(module, "main", {MakeScalar(n, kInt32)->value(), zeros}))[0];
  };
  const Tensor one = run(1), two = run(2);
  EXPECT_EQ(run(1).At(0), one.At(0));
  EXPECT_NE(two.At(0), 2 * one.At(0));
  EXPECT_NE(one.At(0), one.At(1));
}

}  // namespace
}  // namespace collage
