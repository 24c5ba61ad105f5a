// Answers from an explanation: partitions by number and by name, other ways, reasons, and how two differ.
#include <gtest/gtest.h>

#include "collage/support/error.h"
#include "explain/diff_facts.h"
#include "explain/overview_facts.h"
#include "explain/questions.h"
#include "explain/verify.h"
#include "explain/why_facts.h"
#include "report/json.h"
#include "report/text.h"
#include "unit/explain/small_explanation.h"

namespace collage {
namespace {

using testing_explanations::Small;

std::string MessageOf(const std::function<void()>& ask) {
  try {
    ask();
  } catch (const Error& error) {
    return error.message() + (error.hint().empty() ? "" : " | " + error.hint());
  }
  return "";
}

nlohmann::json JsonOf(const Fact& report) { return nlohmann::json::parse(RenderJson(report)); }

void ExpectHas(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in\n" << text;
}

TEST(QuestionsTest, PartitionsAreFoundByNumberAndByName) {
  const Explanation explanation = Small();
  EXPECT_EQ(PartitionAt(explanation, 0, 1, "--why").partition, 1U);
  EXPECT_EQ(MessageOf([&] { PartitionAt(explanation, 0, 2, "--why"); }),
            "there is no partition 2: there are 2, from 0 | `collage explain` lists them");
  EXPECT_EQ(MessageOf([&] { GraphAt(explanation, 1, "--region"); }), "there is no region 1: the model has 1, from 0");
  const std::vector<PartitionPlace> places = PartitionsOf(explanation, "pool_1");
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places[0].partition, 1U);
  EXPECT_EQ(MessageOf([&] { PartitionsOf(explanation, "pool_2"); }),
            "no partition computes a node 'pool_2' | did you mean 'pool_1'?");
  EXPECT_EQ(MessageOf([&] { CheckToolchain(explanation, "acne"); }), "unknown toolchain 'acne' | did you mean 'acme'?");
  EXPECT_EQ(ConfigurationsOf(explanation.graphs[0], "acme"), std::vector<int>{1});
}

TEST(OverviewTest, BeginsWithTheVerdict) {
  const std::string text = RenderText(OverviewFacts(Small(), {}));
  ExpectHas(text, "31.0 us on Test CPU, 2 threads, by acme -fast=1 and native: 1.39 times faster than native alone.");
  ExpectHas(text, "No cover of the candidates is more than 2.0 % faster than the best mix, by their costs.");
  ExpectHas(text, "nn.conv2d+nn.relu");
  ExpectHas(text, "66.7 %");
  ExpectHas(text, "100.0 %");
  ExpectHas(text, "acme is out: it crashed");
}

TEST(OverviewTest, ShowsAsManyPartitionsAsAskedFor) {
  ExpectHas(RenderText(OverviewFacts(Small(), {.top = 1})), "and 1 further partition: --top 0 shows all");
  const nlohmann::json json = JsonOf(OverviewFacts(Small(), {.by_time = false, .top = 1}));
  EXPECT_EQ(json.at("partitions").size(), 2U);
}

TEST(WhyTest, OtherWaysSayByHowMuchTheyWouldHaveToChange) {
  const Explanation explanation = Small();
  const std::string text = RenderText(WhyRecord(explanation, {0, 0}));
  ExpectHas(text, "partition 0 of 2: nn.conv2d+nn.relu by acme -fast=1, 20.0 us (66.7 %)");
  ExpectHas(text, "+12.0 us");
  ExpectHas(text, "+10.0 us to +14.0 us");
  ExpectHas(text, "if 40.0 % faster");
  const nlohmann::json json = JsonOf(WhyFacts(explanation, {{0, 0}}));
  const nlohmann::json& one = json.at("partitions").at(0).at("alternatives").at(0);
  EXPECT_EQ(one.at("extra_seconds"), 1.2e-5);
  EXPECT_EQ(one.at("penalty_seconds"), 2e-6);
  EXPECT_NEAR(one.at("needed_share").get<double>(), 0.4, 1e-9);
  EXPECT_EQ(one.at("partitions").at(0).at("samples"), 9);
}

TEST(WhyTest, AWayThatWasNotMeasuredIsSaidToBe) {
  const std::string text = RenderText(WhyRecord(Small(), {0, 1}));
  ExpectHas(text, "may win: not measured");
  ExpectHas(text, ">= -2.00 us");
  ExpectHas(text, "acme -fast=1: 'nn.max_pool2d': it crashed");
}

TEST(WhyNotTest, ReasonsAreThoseOfPartitionsAndOfNodes) {
  const Explanation explanation = Small();
  const std::string acme = RenderText(WhyNotFacts(explanation, "acme", {}));
  ExpectHas(acme, "it does");
  ExpectHas(acme, "'nn.max_pool2d': it crashed");
  ExpectHas(acme, "failed: it crashed");
  ExpectHas(RenderText(WhyNotFacts(explanation, "native", {{0, 0}})), "slower: +12.0 us");
  ExpectHas(RenderText(WhyNotFacts(explanation, "other", {{0, 1}})), "not measured: it takes at least -2.00 us");
  ExpectHas(RenderText(WhyNotFacts(explanation, "other", {{0, 0}})), "it has no candidate for these nodes");
  ExpectHas(RenderText(WhyNotFacts(explanation, "gone", {})), "it was not available: libgone.so is not there");
}

TEST(DiffTest, EqualOnesDifferInNothing) {
  const nlohmann::json json = JsonOf(DiffFacts(Small(), Small(), {"a", "b"}));
  EXPECT_TRUE(json.at("partitions").empty());
  EXPECT_TRUE(json.at("costs").empty());
  EXPECT_EQ(json.at("equal_partitions"), 2);
  EXPECT_EQ(json.at("compared_costs"), 3);
}

TEST(DiffTest, PartitionsAndCostsThatDifferAreListed) {
  Explanation other = Small();
  GraphExplanation& graph = other.graphs[0];
  graph.partitions[0].candidate = 2;  // native in place of acme
  graph.partitions[0].seconds = 3e-5;
  graph.costs[1].seconds = 2e-5;    // twice as slow
  graph.costs[2].seconds = 3.1e-5;  // within the spread
  const nlohmann::json json = JsonOf(DiffFacts(Small(), other, {"a", "b"}));
  ASSERT_EQ(json.at("partitions").size(), 1U);
  EXPECT_EQ(json.at("partitions").at(0).at("a"), "acme -fast=1 nn.conv2d+nn.relu");
  EXPECT_EQ(json.at("partitions").at(0).at("b"), "native nn.conv2d+nn.relu");
  EXPECT_NEAR(json.at("partitions").at(0).at("extra_seconds").get<double>(), 1e-5, 1e-12);
  ASSERT_EQ(json.at("costs").size(), 1U);
  EXPECT_EQ(json.at("costs").at(0).at("operators"), "nn.max_pool2d+sigmoid");
  EXPECT_NEAR(json.at("costs").at(0).at("ratio").get<double>(), 2, 1e-9);
}

TEST(DiffTest, GraphsOfDifferentNumbersAreComparedByNames) {
  Explanation other = Small();
  GraphExplanation& graph = other.graphs[0];
  graph.hash = "another";
  graph.nodes.insert(graph.nodes.begin(), {.kind = "input", .op = "", .name = "y"});
  for (ExplainedCandidate& one : graph.candidates) {
    for (int& node : one.nodes) ++node;
  }
  for (ExplainedPartition& one : graph.partitions) {
    for (int& node : one.nodes) ++node;
  }
  graph.nodes[5].name = "sigmoid_1";  // it has a name in one of them only
  const nlohmann::json json = JsonOf(DiffFacts(Small(), other, {"a", "b"}));
  EXPECT_EQ(json.at("equal_partitions"), 1);
}

TEST(VerifyTest, TheRunnerUpIsTheCheapestKnownWay) {
  const Explanation explanation = Small();
  const auto& partitions = explanation.graphs[0].partitions;
  EXPECT_EQ(RunnerUpOf(partitions[0]), &partitions[0].alternatives[0]);
  EXPECT_EQ(RunnerUpOf(partitions[1]), nullptr) << "its cost is not known";
  ASSERT_EQ(MostExpensive(explanation, 0, 1).size(), 1U);
  EXPECT_EQ(MostExpensive(explanation, 0, 1)[0].partition, 0U);
}

TEST(VerifyTest, AClaimHoldsWhereTheIntervalsMeet) {
  const Explanation explanation = Small();
  VerifiedClaim claim;
  claim.alternative = &explanation.graphs[0].partitions[0].alternatives[0];  // 10 us to 14 us
  claim.low_seconds = 13e-6;
  claim.high_seconds = 20e-6;
  EXPECT_TRUE(claim.holds());
  claim.low_seconds = 15e-6;
  EXPECT_FALSE(claim.holds());
  claim.low_seconds = -5e-6;
  claim.high_seconds = 9e-6;
  EXPECT_FALSE(claim.holds());
  claim.high_seconds = 11e-6;
  EXPECT_TRUE(claim.holds());
  claim.failure = "it was not built";
  EXPECT_FALSE(claim.holds());
}

TEST(VerifyTest, APartitioningHasTheAlternativeInThePlaceOfWhatItReplaces) {
  const GraphExplanation graph = Small().graphs[0];
  const auto partitions = [&](const ExplainedAlternative* alternative) {
    return nlohmann::json::parse(PartitioningOf(graph, alternative)).at("partitions");
  };
  EXPECT_EQ(partitions(nullptr).at(0).at("toolchain"), "acme -fast=1");
  EXPECT_EQ(partitions(nullptr).at(1).at("inside"), (std::vector<int>{3, 4}));
  const nlohmann::json changed = partitions(&graph.partitions[0].alternatives[0]);
  ASSERT_EQ(changed.size(), 2U);
  EXPECT_EQ(changed.at(0).at("inside"), (std::vector<int>{3, 4}));
  EXPECT_EQ(changed.at(1).at("toolchain"), "native");
}

}  // namespace
}  // namespace collage
