#include "driver/precision_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <random>

#include "target/toolchain_configuration.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using Chosen = std::vector<int>;

double GainOf(const std::vector<PrecisionUnit>& units, const Chosen& chosen) {
  double gain = 0;
  for (int unit : chosen) gain += units[static_cast<size_t>(unit)].gain;
  return gain;
}

/// As of independent roundings.
double ErrorOf(const std::vector<double>& errors, const Chosen& chosen) {
  double squares = 0;
  for (int unit : chosen) squares += errors[static_cast<size_t>(unit)] * errors[static_cast<size_t>(unit)];
  return std::sqrt(squares);
}

Chosen All(size_t count) {
  Chosen all(count);
  for (size_t i = 0; i < count; ++i) all[i] = static_cast<int>(i);
  return all;
}

TEST(ChooseWithinTest, LosesNoMoreThanOneUnitToTheBestChoice) {
  double lost = 0;
  double kept_in_all = 0;
  for (uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto draw = [&] { return 0.1 + static_cast<double>(random() % 1000) / 1000; };
    const size_t count = 2 + random() % 11;
    std::vector<PrecisionUnit> units;
    std::vector<double> errors;
    for (size_t i = 0; i < count; ++i) {
      errors.push_back(draw());
      units.push_back({{}, draw(), errors.back()});
    }
    const double allowed = ErrorOf(errors, All(count)) * static_cast<double>(random() % 100) / 100;
    int tries = 0;
    Chosen last;
    const int most = 2 * std::bit_width(count) + 1;
    const Chosen kept = ChooseWithin(units, most, [&](const Chosen& chosen) {
      ++tries;
      const bool fits = ErrorOf(errors, chosen) <= allowed;
      if (fits) last = chosen;
      return fits;
    });
    EXPECT_LE(tries, most);
    EXPECT_EQ(kept, last) << "what is returned was tried last of what fits";
    double best = 0;
    for (uint32_t subset = 0; subset < 1U << count; ++subset) {
      Chosen chosen;
      for (size_t i = 0; i < count; ++i) {
        if ((subset >> i & 1) != 0) chosen.push_back(static_cast<int>(i));
      }
      if (ErrorOf(errors, chosen) <= allowed) best = std::max(best, GainOf(units, chosen));
    }
    const auto greatest = std::ranges::max_element(units, {}, &PrecisionUnit::gain);
    EXPECT_GE(GainOf(units, kept), best - greatest->gain);
    lost += best - GainOf(units, kept);
    kept_in_all += GainOf(units, kept);
  }
  EXPECT_LT(lost, 0.05 * kept_in_all);
}

TEST(ChooseWithinTest, KeepsAsManyEqualUnitsAsFit) {
  for (size_t count = 1; count <= 60; ++count) {
    for (size_t fit = 0; fit < count; ++fit) {
      const std::vector<PrecisionUnit> units(count, PrecisionUnit{{}, 1, 0});
      const Chosen kept =
          ChooseWithin(units, std::bit_width(count), [&](const Chosen& chosen) { return chosen.size() <= fit; });
      EXPECT_EQ(kept, All(fit)) << "of " << count;
    }
  }
}

TEST(ChooseWithinTest, PassesOverAUnitThatWeighsMoreThanItsOwnCheckTells) {
  constexpr int kCount = 40;
  std::vector<PrecisionUnit> units;
  for (int i = 0; i < kCount; ++i) units.push_back({{}, 1.0 + i % 7, 1e-3});
  for (int heavy = 0; heavy < kCount; ++heavy) {
    Chosen others = All(kCount);
    std::erase(others, heavy);
    int tries = 0;
    const Chosen kept = ChooseWithin(units, 2 * std::bit_width(units.size()) + 1, [&](const Chosen& chosen) {
      ++tries;
      return std::ranges::find(chosen, heavy) == chosen.end();
    });
    EXPECT_EQ(kept, others);
    EXPECT_LE(tries, 7);
  }
}

/// Takes all operators, and may be told to be less exact.
class Halving : public testing_graphs::AnyToolchain {
 public:
  explicit Halving(bool maximal) : AnyToolchain("halving", FusionStyle::kTVMFusion, 8, maximal), maximal_(maximal) {}
  std::vector<AttrField> Options() const override {
    return {{"inference_precision", AttrKind::kString, "f32", "f32 or bf16"}};
  }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs&) const override {
    return std::make_unique<Halving>(maximal_);
  }

 private:
  bool maximal_;
};

/// A product costs as much as it multiplies, in lower precision half of it, several at once a little less; its error is
/// by its size, too, unless all are off alike.
class ByWork : public CostEstimator {
 public:
  explicit ByWork(bool are_alike) : are_alike_(are_alike) {}
  static double ErrorOf(double multiply_adds, bool are_alike) {
    return are_alike ? 1e-4 : 1e-4 * (1 + std::fmod(multiply_adds / 8, 5));
  }

  TuningRecord Estimate(const CostQuery& query) override {
    TuningRecord record;
    record.ok = true;
    const bool is_single = query.label.find('+') == std::string::npos;
    record.p50 = 1e-9 * query.work.multiply_adds / (IsLower(query.toolchain) ? 2 : 1) * (is_single ? 1 : 0.99);
    record.max_error = ErrorOf(query.work.multiply_adds, are_alike_);
    return record;
  }
  double ConvertSeconds(const Shape&, DataType, Layout, Layout) override { return 0; }

 private:
  bool are_alike_;
};

/// Products, one after the other, of different sizes.
Function Chain(int count, std::mt19937& random) {
  const Var x = testing_graphs::Param("x", {1, 8});
  Expr last = x;
  int64_t width = 8;
  for (int i = 0; i < count; ++i) {
    const int64_t next = 8 + static_cast<int64_t>(random() % 40);
    last = MakeCall("nn.dense", {last, testing_graphs::Weights({next, width})});
    width = next;
  }
  return testing_graphs::Typed({x}, last);
}

/// End to end, of the products in lower precision.
double ErrorOf(const Partitioner& partitioner, const Cover& cover, bool are_alike) {
  double squares = 0;
  for (VariantIndex variant : cover.variants) {
    if (!IsLower(*partitioner.candidates().CandidateOf(variant).toolchain)) continue;
    const DataflowGraph& graph = partitioner.candidates().graph();
    const SubGraph& sub_graph = partitioner.candidates().CandidateOf(variant).sub_graph;
    for (int node : sub_graph.members()) {
      if (graph.OpAt(node) == nullptr) continue;
      const CallNode* call = As<CallNode>(graph.node(node).expr);
      const Shape weight = AsTensorType(call->args()[1]->checked_type())->static_shape();
      const double error = ByWork::ErrorOf(static_cast<double>(NumElements(weight)), are_alike);
      squares += error * error;
    }
  }
  return std::sqrt(squares);
}

class FindBoundedCoverTest : public testing::TestWithParam<bool> {};

// Of products in one partition it is not known which is off by how much: they count alike.
constexpr int kCount = 7;  ///< products of a chain

TEST_P(FindBoundedCoverTest, LosesNoMoreThanOneProductToTheBestCoverThatFits) {
  const testing_graphs::AnyToolchain native("native", FusionStyle::kTVMFusion, 8);
  const Halving halving(/*maximal=*/GetParam());
  const auto lower = ToolchainConfiguration(halving).With("inference_precision", "bf16").Make();
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::vector<PartitionSpec> specs = testing_graphs::SpecsOf({&native, lower.get()});
    const Candidates candidates(Chain(kCount, random), specs, 1);
    ByWork estimator(GetParam());
    Partitioner partitioner(candidates, estimator);
    const auto error_of = [&](const Cover& cover) { return ErrorOf(partitioner, cover, GetParam()); };
    const auto search = [&](const std::function<bool(CandidateIndex)>& may) -> std::optional<Cover> {
      const SearchResult found = partitioner.Search(may, {});
      return found.covers.empty() ? std::nullopt : std::optional(found.covers[0]);
    };
    const Cover best = *search([](CandidateIndex) { return true; });
    const Cover standard =
        *search([&](CandidateIndex candidate) { return !IsLower(*partitioner.candidates().ToolchainOf(candidate)); });
    ASSERT_EQ(CountLower(partitioner, standard), 0);
    ASSERT_EQ(CountLower(partitioner, best), GetParam() ? 1 : kCount);
    const std::vector<PrecisionUnit> units = PrecisionUnits(partitioner, best, standard);
    ASSERT_EQ(units.size(), static_cast<size_t>(kCount));
    double gain = 0;
    for (const PrecisionUnit& unit : units) gain += unit.gain;
    EXPECT_NEAR(gain, standard.seconds - best.seconds, 1e-15);

    const double allowed = error_of(best) * (0.4 + 0.5 * static_cast<double>(random() % 100) / 100);
    const std::optional<std::vector<Cover>> all = partitioner.AllCovers(1000);
    ASSERT_TRUE(all.has_value());
    double least = standard.seconds;
    for (const Cover& cover : *all) {
      if (error_of(cover) <= allowed) least = std::min(least, cover.seconds);
    }
    int num_errors = 0;
    const std::optional<BoundedCover> found =
        FindBoundedCover(partitioner, best, standard, allowed, search, [&](const Cover& cover) {
          ++num_errors;
          return error_of(cover);
        });
    ASSERT_TRUE(found.has_value());
    EXPECT_LE(found->error, allowed);
    EXPECT_EQ(found->error, error_of(found->cover));
    EXPECT_GT(CountLower(partitioner, found->cover), 0);
    EXPECT_LT(found->cover.seconds, standard.seconds);
    const auto greatest = std::ranges::max_element(units, {}, &PrecisionUnit::gain);
    EXPECT_LE(found->cover.seconds, least + greatest->gain);
    EXPECT_LE(num_errors, 2 * std::bit_width(units.size()) + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(PartitionsOfAll, FindBoundedCoverTest, testing::Bool());

TEST(FindBoundedCover, FindsNoneWhereNoProductFits) {
  const testing_graphs::AnyToolchain native("native", FusionStyle::kTVMFusion, 8);
  const Halving halving(/*maximal=*/false);
  const auto lower = ToolchainConfiguration(halving).With("inference_precision", "bf16").Make();
  std::mt19937 random(1);
  const std::vector<PartitionSpec> specs = testing_graphs::SpecsOf({&native, lower.get()});
  const Candidates candidates(Chain(5, random), specs, 1);
  ByWork estimator(/*are_alike=*/false);
  Partitioner partitioner(candidates, estimator);
  const auto search = [&](const std::function<bool(CandidateIndex)>& may) -> std::optional<Cover> {
    return partitioner.Search(may, {}).covers.at(0);
  };
  const Cover best = *search([](CandidateIndex) { return true; });
  const Cover standard =
      *search([&](CandidateIndex candidate) { return !IsLower(*partitioner.candidates().ToolchainOf(candidate)); });
  EXPECT_EQ(CountLower(partitioner, best), 5);
  const auto error_of = [&](const Cover& cover) { return ErrorOf(partitioner, cover, false); };
  EXPECT_FALSE(FindBoundedCover(partitioner, best, standard, 1e-6, search, error_of).has_value());
}

}  // namespace
}  // namespace collage
