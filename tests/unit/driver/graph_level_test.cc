#include "driver/graph_level.h"

#include <gtest/gtest.h>

#include "partition/rewrite.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

/// Everything but one operator.
class AllBut : public testing_graphs::AnyToolchain {
 public:
  AllBut(std::string name, std::string refused) : AnyToolchain(std::move(name)), refused_(std::move(refused)) {}
  Result<void> SupportsCall(const CallNode& call) const override {
    if (call.op() != nullptr && call.op()->name == refused_) return Reason{"not this one", name()};
    return {};
  }

 private:
  std::string refused_;
};

std::vector<CandidatePartition> SingleOperators(const DataflowGraph& graph, const Toolchain& toolchain) {
  std::vector<CandidatePartition> base;
  for (int node = 0; node < static_cast<int>(graph.size()); ++node) {
    const OpDef* op = graph.OpAt(node);
    if (op != nullptr && !op->is_reshape) base.push_back({op->name, SubGraph(graph, {node}), &toolchain});
  }
  return base;
}

bool AreOrdered(const DataflowGraph& graph, const std::vector<CandidatePartition>& partitions) {
  std::vector<const SubGraph*> sub_graphs;
  for (const CandidatePartition& partition : partitions) sub_graphs.push_back(&partition.sub_graph);
  return CanBeOrdered(graph, sub_graphs);
}

TEST(GraphLevelTest, NeighboursThatAreHandedOverBecomeOne) {
  const testing_graphs::AnyToolchain native("native"), acme("acme");
  const DataflowGraph graph(testing_graphs::Std());
  const std::vector<CandidatePartition> base = SingleOperators(graph, native);
  ASSERT_EQ(base.size(), 3u);
  EXPECT_EQ(HandOver(graph, base, {nullptr, nullptr, nullptr}).size(), 3u);
  const auto two = HandOver(graph, base, {nullptr, &acme, &acme});
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[1].sub_graph.members(), (std::vector<int>{4, 5}));
  EXPECT_EQ(two[1].toolchain, &acme);
  EXPECT_EQ(HandOver(graph, base, {&acme, nullptr, &acme}).size(), 3u) << "not neighbours";
}

TEST(GraphLevelTest, WhatWouldNeedItselfStaysApart) {
  // abs → exp → add and abs → add: without exp the others are no valid sub-graph.
  const Var x = testing_graphs::Param("x", {2});
  const Expr abs = MakeCall("abs", {x});
  const DataflowGraph graph(testing_graphs::Typed({x}, MakeCall("add", {abs, MakeCall("exp", {abs})})));
  const testing_graphs::AnyToolchain native("native"), acme("acme");
  const std::vector<CandidatePartition> base = SingleOperators(graph, native);
  std::vector<const Toolchain*> choice;
  for (const CandidatePartition& partition : base) choice.push_back(partition.rule_name == "exp" ? nullptr : &acme);
  EXPECT_EQ(HandOver(graph, base, choice).size(), 3u);
}

TEST(GraphLevelTest, RandomHandingOverKeepsAllNodesAndAnOrder) {
  const testing_graphs::AnyToolchain native("native"), acme("acme"), other("other");
  int num_merged = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const DataflowGraph graph(testing_graphs::RandomFunction(3 + static_cast<int>(random() % 8), random));
    const std::vector<CandidatePartition> base = SingleOperators(graph, native);
    std::vector<const Toolchain*> choice;
    for (size_t i = 0; i < base.size(); ++i) {
      const uint32_t draw = random() % 3;
      choice.push_back(draw == 0 ? nullptr : draw == 1 ? &acme : &other);
    }
    const auto partitions = HandOver(graph, base, choice);
    IndexSet covered(graph.size());
    for (const CandidatePartition& partition : partitions) {
      EXPECT_TRUE(partition.sub_graph.CheckValid(graph, {.allow_taps = true}).ok());
      EXPECT_TRUE(covered.AreDisjoint(partition.sub_graph.inside()));
      covered = covered | partition.sub_graph.inside();
    }
    for (const CandidatePartition& one : base) EXPECT_TRUE(one.sub_graph.inside().IsSubset(covered));
    EXPECT_TRUE(AreOrdered(graph, partitions));
    num_merged += partitions.size() < base.size() ? 1 : 0;
  }
  EXPECT_GT(num_merged, 100);
}

TEST(GraphLevelTest, EvolutionNeverHandsOverWhatIsNotSupportedAndFindsTheFastest) {
  const testing_graphs::AnyToolchain native("native");
  const AllBut acme("acme", "tanh"), other("other", "nn.dense");
  const DataflowGraph graph(testing_graphs::GptTail());
  const std::vector<CandidatePartition> base = SingleOperators(graph, native);
  EvolutionOptions options;
  options.max_evaluations = 300;
  int num_measured = 0;
  // Each partition has its price; what acme computes is free, other's is cheap.
  const auto measure = [&](const std::vector<CandidatePartition>& partitions) {
    ++num_measured;
    double seconds = 0;
    for (const CandidatePartition& partition : partitions) {
      seconds += 1;
      for (int node : partition.sub_graph.members()) {
        if (graph.OpAt(node) == nullptr) continue;
        EXPECT_FALSE(partition.toolchain == &acme && graph.OpAt(node)->name == "tanh");
        EXPECT_FALSE(partition.toolchain == &other && graph.OpAt(node)->name == "nn.dense");
        seconds += partition.toolchain == &native ? 1 : partition.toolchain == &other ? 0.5 : 0;
      }
    }
    return seconds;
  };
  const double of_base = measure(base);
  const GraphLevelResult result = EvolveGraphLevel(graph, base, {&acme, &other}, options, measure);
  EXPECT_LT(result.seconds, of_base / 2);
  EXPECT_EQ(result.seconds, measure(result.partitions));
  EXPECT_LE(result.num_evaluations, 300);
  const GraphLevelResult none = EvolveGraphLevel(graph, base, {}, options, measure);
  EXPECT_EQ(none.seconds, of_base);
}

}  // namespace
}  // namespace collage
