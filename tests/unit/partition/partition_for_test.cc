#include "collage/partition_for.h"

#include <gtest/gtest.h>

#include "collage/ir/text.h"
#include "ir/eval/interpreter.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

/// Takes relu behind a product, and a product alone; wants dropout gone.
class PatternToolchain : public testing_graphs::AnyToolchain {
 public:
  PatternToolchain(const std::string& name, FusionStyle style) : AnyToolchain(name, style) {}
  std::vector<PatternTableEntry> PatternTable() const override {
    return {{name() + ".dense_relu", "nn.relu(nn.dense(*, *))", {}}, {name() + ".dense", "nn.dense(*, *)", {}}};
  }
  Result<void> SupportsCall(const CallNode&) const override { return Reason{"takes patterns", "greedy"}; }
  std::vector<std::string> Preamble() const override { return {"SimplifyInference"}; }
};

const Toolchain& Registered(const std::string& name, FusionStyle style) {
  ToolchainRegistry& registry = ToolchainRegistry::Global();
  if (registry.Find(name) == nullptr) registry.Add(std::make_unique<PatternToolchain>(name, style));
  return *registry.Find(name);
}

const Toolchain& Greedy() { return Registered("greedy", FusionStyle::kArbitrary); }
const Toolchain& OneByOne() { return Registered("one_by_one", FusionStyle::kNoFusion); }

// Without the preamble, dropout stands between product and relu.
const char* kModel = R"(
def @main(%x: Tensor[(4, 4), float32]) {
  %0 = nn.dense(%x, %x);
  %1 = nn.dropout(%0);
  %2 = nn.relu(%1.0);
  %3 = exp(%2);
  nn.dense(%3, %x)
})";

TEST(PartitionForTest, ThePreambleMakesPatternsMatch) {
  const IRModule module = ParseModule(kModel);
  const std::string optimized = PrintModule(OptimizeFor(Greedy(), module));
  EXPECT_EQ(optimized.find("dropout"), std::string::npos) << optimized;
  const IRModule partitioned = PartitionFor(Greedy(), module);
  size_t num_partitions = 0;
  for (const auto& [name, function] : partitioned.functions()) {
    num_partitions += function->attrs().StringOr("Compiler", "") == "greedy" ? 1 : 0;
  }
  EXPECT_EQ(num_partitions, 2u) << PrintModule(partitioned);
  const std::string text = PrintModule(partitioned);
  EXPECT_NE(text.find("Composite=\"greedy.dense_relu\""), std::string::npos) << text;
  EXPECT_NE(text.find("Composite=\"greedy.dense\""), std::string::npos) << text;
}

TEST(PartitionForTest, OnlyWhoTakesSeveralMatchesGetsThemMerged) {
  const IRModule module = ParseModule(R"(
def @main(%x: Tensor[(4, 4), float32]) {
  %0 = nn.dense(%x, %x);
  nn.dense(%0, %x)
})");
  EXPECT_EQ(PartitionFor(Greedy(), module).functions().size(), 2u);
  EXPECT_EQ(PartitionFor(OneByOne(), module).functions().size(), 3u);
}

TEST(PartitionForTest, RowsThatAreNotGreedyAreLeftOut) {
  class Sparing : public PatternToolchain {
   public:
    Sparing() : PatternToolchain("sparing", FusionStyle::kNoFusion) {}
    std::vector<PatternTableEntry> PatternTable() const override {
      return {{"sparing.dense", "nn.dense(*, *)", {}}, {"sparing.exp", "exp(*)", {}, /*is_greedy=*/false}};
    }
  };
  ToolchainRegistry& registry = ToolchainRegistry::Global();
  if (registry.Find("sparing") == nullptr) registry.Add(std::make_unique<Sparing>());
  const std::string text = PrintModule(PartitionFor(*registry.Find("sparing"), ParseModule(kModel)));
  EXPECT_NE(text.find("Composite=\"sparing.dense\""), std::string::npos) << text;
  EXPECT_EQ(text.find("sparing.exp"), std::string::npos) << text;
}

TEST(PartitionForTest, KeepsWhatAModuleComputes) {
  const IRModule module = ParseModule(kModel);
  const Tensor x = Tensor::Empty({4, 4}, kFloat32);
  for (int64_t i = 0; i < 16; ++i) x.Set(i, 0.05 * static_cast<double>(i) - 0.3);
  const Value expected = Interpret(module, "main", {Value(x)});
  const Value actual = Interpret(PartitionFor(Greedy(), module), "main", {Value(x)});
  EXPECT_TRUE(ValuesEqual(expected, actual, 1e-6)) << ToString(expected) << " became " << ToString(actual);
}

}  // namespace
}  // namespace collage
