// one_partitioning_test.cc: `partition`, pass CollagePartition and a compilation find the same covers by the same
// costs, and make the same modules of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <random>
#include <set>

#include "collage/compile.h"
#include "collage/inspect.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "collage/transform/passes.h"
#include "driver/builtins.h"
#include "property/for_random_modules.h"
#include "support/file.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

/// A partitioning, in the words of all three.
struct Question {
  IRModule module;
  std::vector<std::string> targets;
  std::string costs;  ///< JSON
};

constexpr const char* kToolchains[] = {"native", "dnnl", "xnnpack"};

std::string TargetOf(const std::string& toolchain) {
  return toolchain == "native" ? "llvm" : "llvm -compiler=" + toolchain;
}

/// Costs are small integers half of the time, so that covers tie.
std::string RandomCosts(std::mt19937& random) {
  const bool ties = random() % 2 == 0;
  const auto cost = [&] {
    return ties ? fmt::format("{}", 1 + random() % 3) : fmt::format("{:.4f}", 0.5 + 1e-4 * (random() % 20'000));
  };
  std::string rows;
  for (const char* toolchain : kToolchains) {
    rows += fmt::format(R"({}"{}": {{"*": {}, "nn.relu": {}, "nn.dense": {}, "add": {}}})", rows.empty() ? "" : ", ",
                        toolchain, cost(), cost(), cost(), cost());
  }
  return fmt::format(R"({{"op_cost": {{{}}}, "fusion_benefit": {}, "transition_penalty": {}}})", rows,
                     random() % 3 == 0 ? "1" : "0.7", random() % 2 == 0 ? "0" : cost());
}

/// Native kernels, which can do everything, and a choice of the others, in any order.
Question RandomQuestion(uint64_t seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  Question question;
  question.module = IRModule::FromFunction(testing_graphs::RandomFunction(2 + static_cast<int>(random() % 10), random));
  for (const char* toolchain : kToolchains) {
    if (question.targets.empty() || random() % 3 != 0) question.targets.push_back(TargetOf(toolchain));
  }
  std::shuffle(question.targets.begin(), question.targets.end(), random);
  question.costs = RandomCosts(random);
  return question;
}

IRModule ByPass(const Question& question) {
  std::string targets;
  for (const std::string& target : question.targets) targets += (targets.empty() ? "" : "; ") + target;
  PassContext context;
  context.SetConfig("relay.collage.targets", targets);
  context.SetConfig("relay.collage.estimator", "mock=" + question.costs);
  context.SetConfig("relay.collage.num_threads", 1);
  return RunPasses({"CollagePartition"}, question.module, context);
}

CoverReport ByPartition(const Question& question) {
  std::string targets;
  for (const std::string& target : question.targets) {
    targets += fmt::format(R"({}"{}")", targets.empty() ? "" : ", ", target);
  }
  return PartitionByGivenCosts(question.module.main(), {"[" + targets + "]"}, {question.costs}, /*rewrite=*/true);
}

IRModule ModuleOf(const CoverReport& cover) { return InferTypes(IRModule::FromFunction(cover.rewritten)); }

/// Calls `check` with `count` questions.
template <typename Check>
void ForRandomQuestions(uint64_t count, const Check& check) {
  AddBuiltins();
  ForRandomSeeds(count, [&](uint64_t seed) { check(RandomQuestion(seed)); });
}

uint64_t NumModules() { return Setting("COLLAGE_PROPERTY_MODULES", 100); }

TEST(OnePartitioningTest, ThePassChoosesAsPartitionDoes) {
  int64_t num_partitions = 0, num_mixed = 0;
  ForRandomQuestions(NumModules(), [&](const Question& question) {
    const CoverReport cover = ByPartition(question);
    EXPECT_TRUE(cover.is_exact);
    std::set<std::string> used;
    for (const PartitionReport& partition : cover.partitions) used.insert(partition.target);
    num_partitions += static_cast<int64_t>(cover.partitions.size());
    num_mixed += used.size() > 1 ? 1 : 0;
    const IRModule by_pass = ByPass(question);
    EXPECT_TRUE(StructuralEqual(by_pass.main(), ModuleOf(cover).main()))
        << PrintModule(question.module) << question.costs << "\npass:\n"
        << PrintModule(by_pass) << "\npartition:\n"
        << PrintModule(ModuleOf(cover));
  });
  EXPECT_GT(num_partitions, static_cast<int64_t>(NumModules()) * 2);
  EXPECT_GT(num_mixed, static_cast<int64_t>(NumModules()) / 5) << "the costs never favour a mix";
}

TEST(OnePartitioningTest, ACompilationBuildsWhatPartitionChooses) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "module.relay";
  int num_written = 0;
  const uint64_t count = std::max<uint64_t>(NumModules() / 10, 5);
  ForRandomQuestions(count, [&](Question question) {
    CompileOptions options;
    question.module = PrepareForPartitioning(PrepareGraph(question.module, options.pass_context), options.pass_context);
    options.targets = question.targets;
    options.estimator = "mock=" + question.costs;
    options.num_threads = 1;
    options.database = ":memory:";
    options.num_covers = 1;
    options.max_optimality_covers = 0;
    options.write_module = file;
    options.output = folder / "module.clg";
    const CompileReport report = CompileModule(question.module, "module", options);
    const CoverReport cover = ByPartition(question);
    std::vector<Contender> equal;
    std::ranges::copy_if(report.contenders, std::back_inserter(equal), [&](const Contender& contender) {
      return std::abs(contender.estimated_seconds - cover.cost) <= 1e-9 * cover.cost;
    });
    ASSERT_FALSE(equal.empty()) << "no contender costs " << cover.cost;
    EXPECT_EQ(report.certificate->least_seconds, cover.least_cost);
    std::map<std::string, int> partitions;
    for (const PartitionReport& partition : cover.partitions) ++partitions[partition.target];
    EXPECT_TRUE(std::ranges::any_of(equal, [&](const Contender& one) { return one.partitions == partitions; }));
    if (equal.size() > 1 || report.winner != equal[0].name) return;
    ++num_written;
    const IRModule built = ParseModule(ReadFile(file));
    EXPECT_TRUE(StructuralEqual(built.main(), ModuleOf(cover).main()))
        << PrintModule(built) << PrintModule(ModuleOf(cover));
  });
  EXPECT_GT(num_written, 0) << "another cover was faster each time";
}

}  // namespace
}  // namespace collage
