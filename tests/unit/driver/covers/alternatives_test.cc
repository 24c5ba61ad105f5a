#include "driver/covers/alternatives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "driver/covers/alternative_finder.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool All(CandidateIndex /*candidate*/) { return true; }

/// Costs by toolchain and operators, "acme abs". A cost below 0 is that of a candidate that crashes.
class ByName : public CostEstimator {
 public:
  explicit ByName(std::map<std::string, double> costs) : costs_(std::move(costs)) {}

  TuningRecord Estimate(const CostQuery& query) override {
    asked.insert(NameOf(query));
    const double seconds = costs_.at(NameOf(query));
    TuningRecord record;
    record.ok = seconds >= 0;
    record.reason = record.ok ? "" : "crashed";
    record.p50 = seconds;
    return record;
  }
  double LowerBound(const CostQuery& query) override { return std::max(0.0, 0.75 * costs_.at(NameOf(query))); }
  double ConvertSeconds(const Shape&, DataType, Layout from, Layout to) override {
    num_conversions += from == to ? 0 : 1;
    return from == to ? 0 : 0.25;
  }
  bool IsConversionAtHand(const Shape&, DataType, Layout, Layout) override { return knows_conversions; }

  std::set<std::string> asked;
  int num_conversions = 0;  ///< how many were asked for
  bool knows_conversions = true;

 private:
  static std::string NameOf(const CostQuery& query) { return query.toolchain.name() + " " + query.label; }

  std::map<std::string, double> costs_;
};

using Ways = std::map<std::map<std::string, int>, double>;

/// Extra seconds by what computes the nodes; of bounds only if `bounds`, else only of what is known.
Ways WaysOf(const PartitionChoice& choice, bool bounds = false) {
  Ways ways;
  for (const PartitionAlternative& one : choice.alternatives) {
    if (one.is_bound == bounds) ways.emplace(one.partitions, one.extra_seconds);
  }
  return ways;
}

/// Covers of abs, relu and relu, by native kernels of any of them and by acme's of one.
class AlternativesTest : public testing::Test {
 protected:
  const testing_graphs::AnyToolchain native_{"native", FusionStyle::kTVMFusion, 8};
  const testing_graphs::AnyToolchain acme_{"acme", FusionStyle::kNoFusion};
  const std::vector<PartitionSpec> specs_ = testing_graphs::SpecsOf({&native_, &acme_});
  const Candidates candidates_{testing_graphs::Std(), specs_, 1};
  std::map<std::string, double> costs_{{"native abs", 1},           {"native nn.relu", 2},
                                       {"native abs+nn.relu", 2.5}, {"native nn.relu+nn.relu", 9},
                                       {"acme abs", 0.75},          {"native abs+nn.relu+nn.relu", 9},
                                       {"acme nn.relu", 3}};
};

/// Asks for all costs.
void AskAll(Partitioner& partitioner) {
  for (const VariantIndex variant : partitioner.candidates().variants().indices()) partitioner.Exact(variant);
}

TEST_F(AlternativesTest, TheExtraCostOfEachWayIsKnown) {
  ByName estimator(costs_);
  Partitioner partitioner(candidates_, estimator);
  AskAll(partitioner);
  const Cover best = partitioner.Search(All, {}).covers.at(0);
  ASSERT_EQ(best.seconds, 4.5) << "abs and relu in one kernel, and a relu";
  const std::vector<PartitionChoice> choices = ExplainChoices(partitioner, best, All);
  ASSERT_EQ(choices.size(), 2U);
  EXPECT_EQ(choices[0].operators, "abs+nn.relu");
  EXPECT_EQ(choices[0].num_operators, 2);
  EXPECT_EQ(choices[0].toolchain, "native");
  EXPECT_EQ(choices[0].seconds, 2.5);
  EXPECT_EQ(choices[0].share, 2.5 / 4.5);
  EXPECT_EQ(WaysOf(choices[0]),
            (Ways{{{{"native", 2}}, 0.5}, {{{"acme", 2}}, 1.25}, {{{"acme", 1}, {"native", 1}}, 0.25}}));
  EXPECT_EQ(choices[0].alternatives.front().extra_seconds, 0.25) << "the cheapest first";
  EXPECT_TRUE(choices[0].refusals.empty());
  EXPECT_EQ(choices[1].operators, "nn.relu");
  EXPECT_EQ(WaysOf(choices[1]), (Ways{{{{"acme", 1}}, 1}}));
  EXPECT_EQ(
      choices[1].refusals,
      (std::map<std::string, std::string>{{"native", "'nn.relu': no other candidate with it fits into these nodes"}}));
}

TEST_F(AlternativesTest, NothingIsMeasuredAndBoundsAreMarked) {
  costs_["acme nn.relu"] = 4;  // at least 3
  ByName estimator(costs_);
  Partitioner partitioner(candidates_, estimator);
  for (const VariantIndex variant : candidates_.variants().indices()) {
    if (candidates_.CandidateOf(variant).toolchain == &native_) partitioner.Exact(variant);
  }
  const std::set<std::string> asked = estimator.asked;
  const Cover best =
      partitioner.Search([&](CandidateIndex i) { return candidates_.ToolchainOf(i) == &native_; }, {}).covers.at(0);
  const std::vector<PartitionChoice> choices = ExplainChoices(partitioner, best, All);
  EXPECT_EQ(estimator.asked, asked);
  ASSERT_EQ(choices.size(), 2U);
  EXPECT_EQ(WaysOf(choices[0]), (Ways{{{{"native", 2}}, 0.5}}));
  EXPECT_EQ(WaysOf(choices[0], /*bounds=*/true),
            (Ways{{{{"acme", 2}}, 1.0625}, {{{"acme", 1}, {"native", 1}}, 0.0625}}));
  EXPECT_EQ(choices[0].alternatives.front().partitions, (std::map<std::string, int>{{"native", 2}})) << "known first";
  EXPECT_EQ(WaysOf(choices[1], /*bounds=*/true), (Ways{{{{"acme", 1}}, 1}}));
}

TEST_F(AlternativesTest, OnlyAllowedCandidatesAreAlternatives) {
  ByName estimator(costs_);
  Partitioner partitioner(candidates_, estimator);
  AskAll(partitioner);
  const auto is_native = [&](CandidateIndex i) { return candidates_.ToolchainOf(i) == &native_; };
  const Cover best = partitioner.Search(is_native, {}).covers.at(0);
  const std::vector<PartitionChoice> choices = ExplainChoices(partitioner, best, is_native);
  EXPECT_EQ(WaysOf(choices.at(0)), (Ways{{{{"native", 2}}, 0.5}}));
  EXPECT_FALSE(choices.at(1).refusals.contains("acme")) << "it takes no part";
}

TEST_F(AlternativesTest, RefusalsSayWhy) {
  costs_["acme nn.relu"] = -1;
  ByName estimator(costs_);
  Partitioner partitioner(candidates_, estimator);
  AskAll(partitioner);
  const std::vector<PartitionChoice> choices =
      ExplainChoices(partitioner, partitioner.Search(All, {}).covers.at(0), All);
  ASSERT_EQ(choices.size(), 2U);
  for (const PartitionChoice& choice : choices) EXPECT_EQ(choice.refusals.at("acme"), "'nn.relu': crashed");
  EXPECT_EQ(WaysOf(choices[0]), (Ways{{{{"native", 2}}, 0.5}, {{{"acme", 1}, {"native", 1}}, 0.25}}));
}

TEST_F(AlternativesTest, IncompatibleToolchainsAreNoAlternatives) {
  class Loner : public testing_graphs::AnyToolchain {
   public:
    using AnyToolchain::AnyToolchain;
    std::vector<Incompatibility> Incompatible() const override { return {{"native", "for the test"}}; }
  };
  const Loner loner("acme", FusionStyle::kNoFusion);
  const std::vector<PartitionSpec> specs = testing_graphs::SpecsOf({&native_, &loner});
  const Candidates candidates(testing_graphs::Std(), specs, 1);
  ByName estimator(costs_);
  Partitioner partitioner(candidates, estimator);
  AskAll(partitioner);
  const std::vector<PartitionChoice> choices =
      ExplainChoices(partitioner, partitioner.Search(All, {}).covers.at(0), All);
  ASSERT_EQ(choices.size(), 2U);
  EXPECT_EQ(WaysOf(choices[0]), (Ways{{{{"native", 2}}, 0.5}}));
  for (const PartitionChoice& choice : choices) {
    EXPECT_EQ(choice.refusals.at("acme"), "it cannot be in one process with native: for the test");
  }
}

TEST_F(AlternativesTest, SmallPartitionsAreLeftOut) {
  costs_["native nn.relu"] = 1000;
  costs_["acme nn.relu"] = 1001;
  costs_["native abs+nn.relu"] = costs_["native nn.relu+nn.relu"] = costs_["native abs+nn.relu+nn.relu"] = 9000;
  ByName estimator(costs_);
  Partitioner partitioner(candidates_, estimator);
  AskAll(partitioner);
  const Cover best = partitioner.Search(All, {}).covers.at(0);
  ASSERT_EQ(best.variants.size(), 3U);
  const std::vector<PartitionChoice> choices = ExplainChoices(partitioner, best, All);
  ASSERT_EQ(choices.size(), 2U) << "abs takes 0.75 s of 2000";
  EXPECT_TRUE(ExplainChoices(partitioner, {}, All).empty()) << "no cover";
}

/// Takes and makes channels-last values where it may.
class ChannelsLast : public testing_graphs::AnyToolchain {
 public:
  using AnyToolchain::AnyToolchain;
  std::vector<BoundaryLayouts> Layouts(const Function&, const std::vector<bool>& inputs,
                                       const std::vector<bool>& outputs) const override {
    const auto layouts = [](const std::vector<bool>& eligible) {
      std::vector<Layout> result;
      for (const bool may : eligible) result.push_back(may ? Layout::kChannelsLast : Layout::kPlain);
      return result;
    };
    return {{layouts(inputs), layouts(outputs)}};
  }
};

/// A convolution and a relu that pass on a channels-last value, and another convolution.
class ConversionsTest : public testing::Test {
 protected:
  static Function Network() {
    const auto conv = [](const Expr& data) {
      return MakeCall("nn.conv2d", {data, testing_graphs::Weights({4, 4, 1, 1})},
                      {{"kernel_size", std::vector<int64_t>{1, 1}}});
    };
    const Var x = testing_graphs::Param("x", {1, 4, 8, 8});
    return testing_graphs::Typed({x}, conv(MakeCall("nn.relu", {conv(x)})));
  }

  /// The choice of relu in the cover by acme alone, with known costs.
  PartitionChoice Relu(bool knows_conversions) {
    ByName estimator({{"acme nn.conv2d", 2}, {"acme nn.relu", 1}, {"plain nn.conv2d", 9}, {"plain nn.relu", 1.5}});
    Partitioner partitioner(candidates_, estimator);
    AskAll(partitioner);
    const Cover best = partitioner.Search(All, {}).covers.at(0);
    EXPECT_EQ(best.seconds, 5);
    estimator.knows_conversions = knows_conversions;
    estimator.num_conversions = 0;
    const std::vector<PartitionChoice> choices = ExplainChoices(partitioner, best, All);
    EXPECT_EQ(estimator.num_conversions > 0, knows_conversions);
    EXPECT_EQ(choices.size(), 3U);
    return choices.back();
  }

  const ChannelsLast acme_{"acme", FusionStyle::kNoFusion};
  const testing_graphs::AnyToolchain plain_{"plain", FusionStyle::kNoFusion};
  const std::vector<PartitionSpec> specs_ = testing_graphs::SpecsOf({&acme_, &plain_});
  const Candidates candidates_{Network(), specs_, 1};
};

TEST_F(ConversionsTest, AnAlternativePaysForThem) {
  const PartitionChoice relu = Relu(/*knows_conversions=*/true);
  EXPECT_EQ(relu.operators, "nn.relu");
  EXPECT_EQ(WaysOf(relu), (Ways{{{{"plain", 1}}, 0.5 + 2 * 0.25}})) << "before it and behind it";
}

TEST_F(ConversionsTest, UnknownOnesMakeABound) {
  const PartitionChoice relu = Relu(/*knows_conversions=*/false);
  EXPECT_EQ(WaysOf(relu, /*bounds=*/true), (Ways{{{{"plain", 1}}, 0.5}}));
}

/// Random costs, the same for equal partitions.
class Random : public CostEstimator {
 public:
  explicit Random(uint32_t seed) : seed_(seed) {}
  TuningRecord Estimate(const CostQuery& query) override {
    std::mt19937 random(seed_ ^ static_cast<uint32_t>(std::hash<std::string>{}(query.toolchain.name() + query.label)));
    TuningRecord record;
    record.ok = random() % 8 != 0;
    record.p50 = 1 + static_cast<double>(random() % 64) / 16;
    return record;
  }
  double ConvertSeconds(const Shape&, DataType, Layout, Layout) override { return 0; }
  double TransitionSeconds() override { return 0.25; }
  double SwitchSeconds(const Toolchain&, const Toolchain&) override { return seed_ % 2 == 0 ? 0.5 : 0; }

 private:
  uint32_t seed_;
};

/// By definition: the cheapest cover that differs from `best` in the nodes of `chosen` only, for each set of toolchains
/// that compute these.
std::map<std::set<std::string>, double> LeastByToolchains(Partitioner& partitioner, const std::vector<Cover>& all,
                                                          const Cover& best, VariantIndex chosen) {
  const Candidates& candidates = partitioner.candidates();
  std::set<VariantIndex> rest(best.variants.begin(), best.variants.end());
  rest.erase(chosen);
  std::map<std::set<std::string>, double> least;
  for (const Cover& cover : all) {
    const std::set<VariantIndex> variants(cover.variants.begin(), cover.variants.end());
    if (!std::ranges::includes(variants, rest)) continue;
    std::set<std::string> toolchains;
    bool has_own = false;
    for (const VariantIndex v : variants) {
      if (rest.contains(v)) continue;
      has_own = has_own || candidates.variant(v).candidate == candidates.variant(chosen).candidate;
      toolchains.insert(candidates.CandidateOf(v).toolchain->name());
    }
    if (has_own) continue;
    double& seconds = least.emplace(toolchains, kInfinity).first->second;
    seconds = std::min(seconds, cover.seconds - best.seconds);
  }
  return least;
}

void ExpectAlternatives(const PartitionChoice& choice, const std::map<std::set<std::string>, double>& least) {
  double least_of_all = kInfinity;
  size_t num_alone = 0;
  for (const auto& [toolchains, seconds] : least) {
    least_of_all = std::min(least_of_all, seconds);
    num_alone += toolchains.size() == 1 ? 1 : 0;
  }
  size_t num_found = 0;
  double found_least = kInfinity;
  for (const PartitionAlternative& one : choice.alternatives) {
    EXPECT_FALSE(one.is_bound);
    found_least = std::min(found_least, one.extra_seconds);
    if (one.partitions.size() > 1) continue;
    ++num_found;
    EXPECT_NEAR(one.extra_seconds, least.at({one.partitions.begin()->first}), 1e-9);
  }
  EXPECT_EQ(num_found, num_alone);
  EXPECT_LE(choice.alternatives.size(), num_alone + 1);
  if (!least.empty()) {
    EXPECT_NEAR(found_least, least_of_all, 1e-9);
  }
}

TEST(AlternativesOfRandomGraphsTest, EqualTheEnumerationOfAllCovers) {
  const testing_graphs::AnyToolchain native("native", FusionStyle::kTVMFusion, 8);
  const testing_graphs::AnyToolchain acme("acme", FusionStyle::kArbitrary, 2);
  const testing_graphs::AnyToolchain other("other", FusionStyle::kNoFusion);
  int num_compared = 0, num_alternatives = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const Function function = testing_graphs::RandomFunction(2 + static_cast<int>(random() % 2), random);
    const std::vector<PartitionSpec> specs = testing_graphs::SpecsOf({&native, &acme, &other});
    const Candidates candidates(function, specs, 1);
    Random estimator(seed);
    Partitioner partitioner(candidates, estimator);
    const SearchResult found = partitioner.Search(All, {});
    const std::optional<std::vector<Cover>> all = partitioner.AllCovers(2000);
    if (found.covers.empty() || !all) continue;
    AskAll(partitioner);
    const Cover& best = found.covers[0];
    const std::vector<PartitionChoice> choices = ExplainChoices(partitioner, best, All);
    ASSERT_EQ(choices.size(), best.variants.size());
    std::vector<VariantIndex> dearest = best.variants;
    std::ranges::stable_sort(dearest, std::greater(), [&](VariantIndex v) { return partitioner.Exact(v); });
    for (size_t i = 0; i < choices.size(); ++i) {
      SCOPED_TRACE(choices[i].operators + " by " + choices[i].toolchain);
      ExpectAlternatives(choices[i], LeastByToolchains(partitioner, *all, best, dearest[i]));
      num_alternatives += static_cast<int>(choices[i].alternatives.size());
    }
    ++num_compared;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(num_compared, 20);
  EXPECT_GT(num_alternatives, 50);
}

/// By definition, of all covers without the candidate of `best`'s variant `number`: the extra cost of the cheapest that
/// replaces it and one other variant by candidates of which one is over both.
double LeastWithANeighbour(Partitioner& partitioner, const std::vector<Cover>& all, const Cover& best, size_t number) {
  const Candidates& candidates = partitioner.candidates();
  const auto covers = [&](VariantIndex v) { return partitioner.Problem().variants[v].covers; };
  const auto overlap = [&](VariantIndex a, VariantIndex b) {
    const std::vector<Position> in_b = covers(b);
    return std::ranges::any_of(covers(a), [&](Position p) { return std::ranges::binary_search(in_b, p); });
  };
  double least = kInfinity;
  for (const Cover& cover : all) {
    const std::set<VariantIndex> variants(cover.variants.begin(), cover.variants.end());
    const auto is_own = [&](VariantIndex v) {
      return candidates.variant(v).candidate == candidates.variant(best.variants[number]).candidate;
    };
    std::vector<VariantIndex> replaced;
    std::ranges::copy_if(best.variants, std::back_inserter(replaced),
                         [&](VariantIndex v) { return !variants.contains(v); });
    if (std::ranges::any_of(variants, is_own) || replaced.size() != 2) continue;
    const bool is_over_both = std::ranges::any_of(
        variants, [&](VariantIndex v) { return overlap(v, replaced[0]) && overlap(v, replaced[1]); });
    if (is_over_both) least = std::min(least, cover.seconds - best.seconds);
  }
  return least;
}

/// Whether the alternative's cover is one of `all`, and costs as much as it says.
bool IsReal(const std::vector<Cover>& all, const Cover& best, const CoverAlternative& alternative) {
  std::set<VariantIndex> variants(best.variants.begin(), best.variants.end());
  for (const size_t replaced : alternative.replaces) variants.erase(best.variants[replaced]);
  variants.insert(alternative.variants.begin(), alternative.variants.end());
  return std::ranges::any_of(all, [&](const Cover& cover) {
    return std::set<VariantIndex>(cover.variants.begin(), cover.variants.end()) == variants &&
           std::abs(cover.seconds - best.seconds - alternative.extra_seconds) < 1e-9;
  });
}

TEST(AlternativesOfRandomGraphsTest, OfNeighboursAreRealAndMissNoCandidateOverTwo) {
  const testing_graphs::AnyToolchain native("native", FusionStyle::kTVMFusion, 8);
  const testing_graphs::AnyToolchain acme("acme", FusionStyle::kArbitrary, 2);
  int num_found = 0, num_least = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const Function function = testing_graphs::RandomFunction(2 + static_cast<int>(random() % 2), random);
    const std::vector<PartitionSpec> specs = testing_graphs::SpecsOf({&native, &acme});
    const Candidates candidates(function, specs, 1);
    Random estimator(seed);
    Partitioner partitioner(candidates, estimator);
    const SearchResult found = partitioner.Search(All, {});
    const std::optional<std::vector<Cover>> all = partitioner.AllCovers(2000);
    if (found.covers.empty() || !all) continue;
    AskAll(partitioner);
    const Cover& best = found.covers[0];
    AlternativeFinder finder(partitioner, best, All);
    EXPECT_NEAR(finder.seconds(), best.seconds, 1e-9);
    for (size_t number = 0; number < best.variants.size(); ++number) {
      double least = kInfinity;
      for (const CoverAlternative& one : finder.Around(number)) {
        EXPECT_TRUE(IsReal(*all, best, one));
        EXPECT_GT(one.replaces.size(), 1U);
        EXPECT_NE(std::ranges::find(one.replaces, number), one.replaces.end());
        least = std::min(least, one.extra_seconds);
        ++num_found;
      }
      for (const CoverAlternative& one : finder.Within(number).alternatives) {
        EXPECT_TRUE(IsReal(*all, best, one));
        least = std::min(least, one.extra_seconds);
      }
      const double expected = LeastWithANeighbour(partitioner, *all, best, number);
      EXPECT_LE(least, expected + 1e-9);
      num_least += expected < kInfinity ? 1 : 0;
    }
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(num_found, 30);
  EXPECT_GT(num_least, 30);
}

}  // namespace
}  // namespace collage
