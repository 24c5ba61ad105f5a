// Explanations of compilations: the numbers are those of the report, the plan and the costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "collage/compile.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/runtime/executable.h"
#include "driver/builtins.h"
#include "explain/explanation_file.h"
#include "runtime/random_inputs.h"
#include "support/file.h"

namespace collage {
namespace {

class CompiledTest : public testing::Test {
 protected:
  /// Compiles a product, tanh and relu: 1 s each, half a second less for each that is fused.
  CompileReport Compile() {
    AddBuiltins();
    options_.output = folder_ / "m.clg";
    options_.database = (folder_ / "tuning.db").string();
    options_.num_threads = 1;
    options_.toolchains = {"native"};
    options_.estimator = R"(mock={"op_cost": {"native": 1}, "fusion_benefit": 0.5})";
    options_.max_optimality_covers = 0;
    const IRModule module = ParseModule(
        "def @main(%x: Tensor[(8, 24), float32], %w: Tensor[(24, 24), float32]) { nn.relu(tanh(nn.dense(%x, %w))) }",
        "m");
    return CompileModule(module, "m", options_);
  }

  TemporaryFolder folder_;
  CompileOptions options_;
};

TEST_F(CompiledTest, NodesCandidatesAndCostsAreThoseOfTheSearch) {
  const CompileReport report = Compile();
  const Explanation found = ReadExplanation(options_.output);
  EXPECT_EQ(found.report.at("winner"), report.winner);
  EXPECT_EQ(found.report.at("schema"), 2);
  ASSERT_EQ(found.graphs.size(), 1U);
  const GraphExplanation& graph = found.graphs[0];
  EXPECT_EQ(graph.winner, report.winner);
  EXPECT_EQ(static_cast<int64_t>(graph.candidates.size()), report.num_variants);
  EXPECT_EQ(static_cast<int64_t>(graph.costs.size()), report.num_distinct);
  std::vector<std::string> operators;
  for (const ExplainedNode& node : graph.nodes) {
    if (node.kind == "call") operators.push_back(node.op);
  }
  EXPECT_EQ(operators, (std::vector<std::string>{"nn.dense", "tanh", "nn.relu"}));
  EXPECT_EQ(graph.nodes[0].types, (std::vector<std::string>{"float32[8, 24]"}));
  ASSERT_EQ(graph.results.size(), 1U);
  EXPECT_EQ(graph.nodes[static_cast<size_t>(graph.results[0])].op, "nn.relu");
  std::multiset<double> seconds;
  for (const ExplainedCost& cost : graph.costs) {
    EXPECT_EQ(cost.state, ExplainedCost::State::kEstimated);
    seconds.insert(cost.seconds.value());
  }
  EXPECT_EQ(seconds, (std::multiset<double>{1, 1, 1, 1.5, 1.5, 1.75}));
}

TEST_F(CompiledTest, PartitionsAreThePlansKernelsAndHaveTheirRunnerUp) {
  Compile();
  const GraphExplanation graph = ReadExplanation(options_.output).graphs.at(0);
  const Executable executable = Executable::Load(options_.output);
  ASSERT_EQ(graph.partitions.size(), executable.plan().kernels.size());
  const ExplainedPartition& partition = graph.partitions.at(0);
  EXPECT_EQ(partition.kernel, 0);
  EXPECT_EQ(partition.operators, executable.plan().kernels[0].label);
  EXPECT_EQ(partition.seconds, 1.75);
  EXPECT_EQ(partition.share, 1);
  EXPECT_TRUE(graph.best_mix);
  EXPECT_EQ(graph.no_alternatives, "");
  ASSERT_EQ(partition.alternatives.size(), 1U);
  const ExplainedAlternative& pair = partition.alternatives[0];
  EXPECT_EQ(pair.extra_seconds, 0.75);
  EXPECT_EQ(pair.own_seconds, 2.5);
  EXPECT_EQ(pair.replaced_seconds, 1.75);
  EXPECT_EQ(pair.candidates.size(), 2U);
  EXPECT_FALSE(pair.at_least);
  EXPECT_LT(pair.low_seconds, 0.75);
  EXPECT_GT(pair.high_seconds, 0.75);
}

TEST_F(CompiledTest, CoversContendersAndTheTimelineAreThere) {
  const CompileReport report = Compile();
  const Explanation found = ReadExplanation(options_.output);
  const GraphExplanation& graph = found.graphs.at(0);
  ASSERT_FALSE(graph.covers.empty());
  EXPECT_EQ(graph.covers[0].seconds, 1.75);
  for (const ExplainedContender& one : graph.contenders) {
    const auto reported = std::ranges::find(report.contenders, one.name, &Contender::name);
    ASSERT_NE(reported, report.contenders.end());
    ASSERT_TRUE(one.partitions.has_value());
    int partitions = 0;
    for (const auto& [_, count] : reported->partitions) partitions += count;
    EXPECT_EQ(static_cast<int>(one.partitions->size()), partitions);
  }
  std::vector<std::string> phases;
  for (const ExplainedPhase& phase : found.timeline) {
    phases.push_back(phase.phase);
    EXPECT_GE(phase.end_seconds, phase.begin_seconds);
  }
  ASSERT_GE(phases.size(), 5U);
  EXPECT_EQ(phases[0], "import");
  EXPECT_EQ(phases[1], "candidates");
  EXPECT_EQ(phases[2], "search");
  EXPECT_EQ(phases[phases.size() - 2], "play-off");
  EXPECT_EQ(phases.back(), "explain");
  ASSERT_FALSE(graph.progress.empty());
  EXPECT_EQ(graph.progress.back().best_seconds, 1.75);
  EXPECT_LE(graph.progress.back().seconds, found.timeline.back().end_seconds);
}

TEST_F(CompiledTest, WithoutASearchItSaysThatThereWasNone) {
  options_.write_partitioning = folder_ / "p.json";
  Compile();
  options_.partitioning = folder_ / "p.json";
  options_.write_partitioning.clear();
  Compile();
  const GraphExplanation graph = ReadExplanation(options_.output).graphs.at(0);
  EXPECT_EQ(graph.partitions.size(), 1U);
  EXPECT_TRUE(graph.partitions[0].alternatives.empty());
  EXPECT_EQ(graph.no_alternatives, "the partitions were given: nothing was searched");
}

TEST_F(CompiledTest, MayBeLeftOutOrWrittenToAFile) {
  options_.explanation = "none";
  Compile();
  EXPECT_EQ(FindExplanationText(options_.output), std::nullopt);
  const std::string bytes = ReadFile(options_.output);
  options_.explanation = (folder_ / "e.json").string();
  Compile();
  EXPECT_EQ(ReadFile(options_.output), bytes) << "the executable is the same";
  EXPECT_EQ(ReadExplanation(folder_ / "e.json").graphs.size(), 1U);
}

TEST_F(CompiledTest, SchedulesThatWereTriedAndRatesAreThere) {
  AddBuiltins();
  options_.output = folder_ / "m.clg";
  options_.database = (folder_ / "tuning.db").string();
  options_.num_threads = 1;
  options_.toolchains = {"native"};
  options_.tuning_trials = 4;
  const IRModule module =
      ParseModule("def @main(%x: Tensor[(32, 64), float32], %w: Tensor[(64, 64), float32]) { nn.dense(%x, %w) }", "m");
  const CompileReport report = CompileModule(module, "m", options_);
  const GraphExplanation graph = ReadExplanation(options_.output).graphs.at(0);
  EXPECT_GT(graph.rates.multiply_adds, 1e8);
  EXPECT_GT(graph.rates.memory_bytes, 1e8);
  std::set<std::string> schedules;
  for (const ExplainedCost& cost : graph.costs) {
    for (const ExplainedTrial& trial : cost.trials) {
      EXPECT_EQ(trial.seconds.has_value(), trial.reason.empty()) << trial.schedule;
      schedules.insert(trial.schedule);
    }
  }
  EXPECT_GT(schedules.size(), 0U);
  EXPECT_LE(static_cast<int64_t>(schedules.size()), report.tuning.trials + report.tuning.known_trials);
}

/// How much further the interval of a partition's product alone reaches above the claim than below.
double Skew(const ExplainedAlternative& one) {
  return (one.high_seconds.value() - one.extra_seconds) - (one.extra_seconds - one.low_seconds.value());
}

// Costs are of partitions alone: the second reader of a weight finds it in a cache, where a copy of its own would not
// be.
TEST_F(CompiledTest, IntervalsKnowOfWeightsThatOtherPartitionsRead) {
  AddBuiltins();
  const Shape shape = {1024, 1024};
  const auto weight = [&](uint64_t seed) {
    const Tensor tensor = Tensor::Empty(shape, kFloat32);
    FillRandom(tensor, seed);
    return MakeConstant(tensor);
  };
  const Var x = MakeVar("x", TensorType(Shape{1, 1024}, kFloat32));
  Expr value = x;
  for (const uint64_t seed : {1, 1, 2}) value = MakeCall("tanh", {MakeCall("nn.dense", {value, weight(seed)})});
  options_.output = folder_ / "m.clg";
  options_.database = (folder_ / "tuning.db").string();
  options_.num_threads = 1;
  options_.toolchains = {"native"};
  const Function main = MakeFunction({x}, value);
  InferType(main);
  CompileModule(IRModule::FromFunction(main), "m", options_);
  const GraphExplanation graph = ReadExplanation(options_.output).graphs.at(0);
  const auto is_product = [](const ExplainedPartition& one) { return one.operators.starts_with("nn.dense"); };
  // Another way to compute one of the products, with its neighbours or without.
  const auto way_of = [&](const ExplainedPartition& partition) -> const ExplainedAlternative* {
    const auto found = std::ranges::find_if(partition.alternatives, [&](const ExplainedAlternative& one) {
      const auto replaces_product = [&](int i) { return is_product(graph.partitions[static_cast<size_t>(i)]); };
      return one.high_seconds && std::ranges::count_if(one.replaces, replaces_product) == 1;
    });
    return found == partition.alternatives.end() ? nullptr : &*found;
  };
  std::vector<const ExplainedPartition*> products;
  for (const ExplainedPartition& one : graph.partitions) {
    if (is_product(one)) products.push_back(&one);
  }
  ASSERT_EQ(products.size(), 3U);
  for (const ExplainedPartition* one : products) ASSERT_NE(way_of(*one), nullptr) << one->operators;
  const ExplainedAlternative& last = *way_of(*products[2]);
  const double drift = Skew(last) / last.replaced_seconds;  // nothing else reads its weight
  constexpr double kBytes = 4 << 20, kSlow = 1e9, kFast = 1e12;
  for (const size_t i : {0, 1}) {
    const ExplainedAlternative& one = *way_of(*products[i]);
    const double fetch = Skew(one) - drift * one.replaced_seconds;
    EXPECT_GT(fetch, kBytes / kFast) << i;
    EXPECT_LT(fetch, kBytes / kSlow) << i;
  }
}

}  // namespace
}  // namespace collage
