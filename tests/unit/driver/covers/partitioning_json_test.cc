#include "driver/covers/partitioning_json.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "collage/ir/structural.h"
#include "collage/support/error.h"
#include "partition/extract.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using Json = nlohmann::json;

/// Takes dense with its bias, by a pattern.
class Patterns : public testing_graphs::AnyToolchain {
 public:
  Patterns() : AnyToolchain("acme", FusionStyle::kNoFusion) {}
  std::vector<PatternTableEntry> PatternTable() const override {
    return {{"acme.dense_bias", "add(nn.dense(*, *), *)", {}}};
  }
};

class PartitioningJsonTest : public ::testing::Test {
 protected:
  /// Every operator alone and natively, but dense and bias, which are acme's.
  void SetUp() override {
    RuleLog log;
    for (CandidatePartition& candidate : GatherPartitionRule(acme)->AllCandidates(graph, acme, log)) {
      candidates.push_back(std::move(candidate));
    }
    ASSERT_EQ(candidates.size(), 1u);
    for (int node = 0; node < static_cast<int>(graph.size()); ++node) {
      const OpDef* op = graph.OpAt(node);
      if (op == nullptr || op->is_reshape || candidates[0].sub_graph.inside().Contains(node)) continue;
      candidates.push_back({op->name, SubGraph(graph, {node}), &native});
    }
    for (const CandidatePartition& candidate : candidates) {
      const Boundary boundary = BoundaryOf(graph, candidate.sub_graph);
      chosen.push_back({&candidate, PlainLayouts(boundary.inputs.size(), boundary.outputs.size()), 1e-6});
    }
    chosen.back().schedule = "rows=3";
  }

  OwnedPartitions Restore(const std::string& text) const {
    return PartitioningFromJson(text, "p.json", graph, eligible, {&native, &acme});
  }

  /// The error for the text after a change to it.
  std::string ErrorAfter(const std::function<void(Json&)>& change) const {
    Json json = Json::parse(PartitioningToJson(graph, chosen));
    change(json);
    try {
      Restore(json.dump());
    } catch (const Error& error) {
      EXPECT_EQ(error.category(), ErrorCategory::kInput);
      EXPECT_EQ(error.where(), "p.json");
      return error.message();
    }
    return "";
  }

  const testing_graphs::AnyToolchain native{"native"};
  const Patterns acme;
  const DataflowGraph graph{testing_graphs::GptTail()};
  const std::vector<bool> eligible = std::vector<bool>(graph.size());
  std::vector<CandidatePartition> candidates;
  std::vector<ChosenPartition> chosen;
};

TEST_F(PartitioningJsonTest, WhatIsReadIsWhatWasWritten) {
  const std::string text = PartitioningToJson(graph, chosen);
  const OwnedPartitions restored = Restore(text);
  EXPECT_EQ(PartitioningToJson(graph, restored.chosen), text);
  const auto original = RewritePartitions(graph, chosen);
  const auto again = RewritePartitions(graph, restored.chosen);
  ASSERT_TRUE(original.has_value() && again.has_value());
  EXPECT_TRUE(StructuralEqual(*original, *again));
}

TEST_F(PartitioningJsonTest, AFewFieldsAreEnough) {
  Json json = Json::parse(PartitioningToJson(graph, chosen));
  for (Json& partition : json["partitions"]) {
    partition = Json{{"toolchain", partition["toolchain"]}, {"inside", partition["inside"]}};
  }
  json.erase("graph");
  const OwnedPartitions restored = Restore(json.dump());
  ASSERT_EQ(restored.chosen.size(), chosen.size());
  const SubGraph& dense = restored.chosen[0].candidate->sub_graph;
  ASSERT_EQ(dense.nested.size(), 1u) << "the toolchain's candidate says what is nested";
  EXPECT_EQ(dense.nested[0].attrs.String("Composite"), "acme.dense_bias");
}

TEST_F(PartitioningJsonTest, PartitionsMayBeMerged) {
  Json json = Json::parse(PartitioningToJson(graph, chosen));
  Json& partitions = json["partitions"];
  // The last two native ones become one.
  Json merged = partitions[partitions.size() - 2]["inside"];
  for (const Json& node : partitions.back()["inside"]) merged.push_back(node);
  partitions.erase(partitions.size() - 1);
  partitions.back() = Json{{"toolchain", "native"}, {"inside", merged}};
  const OwnedPartitions restored = Restore(json.dump());
  EXPECT_EQ(restored.chosen.size(), chosen.size() - 1);
  EXPECT_TRUE(RewritePartitions(graph, restored.chosen).has_value());
}

TEST_F(PartitioningJsonTest, NoToolchainGetsATypeThatItDoesNotTake) {
  Json json = Json::parse(PartitioningToJson(graph, chosen));
  json["partitions"][1]["outputs"] = {"plain_bf16"};
  const std::vector<bool> all(graph.size(), true);
  try {
    PartitioningFromJson(json.dump(), "p.json", graph, all, {&native, &acme});
    FAIL() << "was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "partition 1: 'native' does not take these layouts");
  }
}

TEST_F(PartitioningJsonTest, MistakesAreNamed) {
  EXPECT_EQ(ErrorAfter([](Json&) {}), "");
  EXPECT_EQ(ErrorAfter([](Json& json) { json["format"] = "x"; }), "\"format\" is not \"collage-partitioning\"");
  EXPECT_EQ(ErrorAfter([](Json& json) { json["version"] = 7; }), "version 7 of the format, 1 is known");
  EXPECT_EQ(ErrorAfter([](Json& json) {
              json["graph"] = {{"nodes", 5}, {"hash", "0"}};
            }),
            "this partitioning is of another graph: of 5 nodes, this one has " + std::to_string(graph.size()));
  EXPECT_EQ(ErrorAfter([](Json& json) { json["partitions"][1]["toolchain"] = "nobody"; }),
            "partition 1: toolchain 'nobody' does not take part");
  EXPECT_EQ(ErrorAfter([](Json& json) { json["partitions"][1]["inside"] = {999}; }),
            "partition 1: there is no node 999: the graph has " + std::to_string(graph.size()));
  EXPECT_EQ(ErrorAfter([](Json& json) { json["partitions"][0]["operators"] = "nn.conv2d"; }),
            "partition 0: its nodes are 'nn.dense+add', not 'nn.conv2d'");
  EXPECT_EQ(ErrorAfter([](Json& json) { json["partitions"][1]["inputs"] = Json::array(); }),
            "partition 1: 0 \"inputs\", the partition has 1");
  EXPECT_EQ(ErrorAfter([](Json& json) { json["partitions"][1]["outputs"] = {"channels_last"}; }),
            "partition 1: number 0 of \"outputs\" can only be plain");
  EXPECT_EQ(ErrorAfter([](Json& json) { json["partitions"][1]["outputs"] = {"plain_bf16"}; }),
            "partition 1: number 0 of \"outputs\" can only be plain");
  EXPECT_EQ(ErrorAfter([](Json& json) { json["partitions"][1]["outputs"] = {"diagonal"}; }),
            "partition 1: unknown layout 'diagonal' in \"outputs\"");
  EXPECT_EQ(ErrorAfter([](Json& json) { json["partitions"].erase(json["partitions"].size() - 1); }),
            "operators are in no partition: 24 'multiply'");
  EXPECT_EQ(ErrorAfter([](Json& json) { json["partitions"].push_back(json["partitions"].back()); }),
            "partitions overlap at 24 'multiply' (in 8 and 9)");
  EXPECT_NE(ErrorAfter([](Json& json) {
              json["partitions"][1] = {{"toolchain", "native"}, {"inside", {15, 20}}};
            }).find("is no valid sub-graph: a path leaves and comes back"),
            std::string::npos);
  EXPECT_NE(ErrorAfter([](Json& json) {
              json["partitions"][1] = {{"toolchain", "acme"}, {"inside", {24}}};
            }).find("partition 1: toolchain 'acme' has no candidate that consists of {24} ('multiply')"),
            std::string::npos);
  EXPECT_THROW(Restore("{"), Error);
  EXPECT_THROW(Restore("[]"), Error);
  EXPECT_NE(ErrorAfter([](Json& json) { json["partitions"][2].erase("inside"); }).find("partition 2: "),
            std::string::npos);
}

}  // namespace
}  // namespace collage
