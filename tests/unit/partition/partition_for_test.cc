#include "collage/partition_for.h"

#include <gtest/gtest.h>

#include "collage/ir/text.h"
#include "collage/support/error.h"
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

/// Computes operators in the form that a preamble brings them into.
class Prepared : public testing_graphs::AnyToolchain {
 public:
  Prepared(const std::string& name, std::vector<std::string> preamble)
      : AnyToolchain(name, FusionStyle::kNoFusion), preamble_(std::move(preamble)) {}
  std::vector<std::string> Preamble() const override { return preamble_; }

 private:
  std::vector<std::string> preamble_;
};

const char* kBias = R"(
def @main(%x: Tensor[(4, 4), float32], %b: Tensor[(4), float32]) {
  nn.relu(nn.bias_add(nn.dense(%x, %x), %b))
})";

/// Which passes OptimizeFor ran, without InferType.
std::vector<std::string> PassesFor(const Toolchain& toolchain, PassContext context) {
  const auto timing = std::make_shared<TimingInstrument>();
  context.instruments.push_back(timing);
  OptimizeFor(toolchain, ParseModule(kBias), context);
  std::vector<std::string> names;
  for (const TimingInstrument::Row& row : timing->rows()) names.push_back(row.pass);
  return names;
}

TEST(PartitionForTest, PassesOfAPreambleRunAtEveryLevelUnlessTheyAreDisabled) {
  const Prepared toolchain("prepared", {"CanonicalizeOps"});
  for (const int level : {0, kPreparationLevel}) {
    PassContext context(level);
    EXPECT_EQ(PrintModule(OptimizeFor(toolchain, ParseModule(kBias), context)).find("bias_add"), std::string::npos);
    context.disabled_pass = {"CanonicalizeOps"};
    EXPECT_NE(PrintModule(OptimizeFor(toolchain, ParseModule(kBias), context)).find("bias_add"), std::string::npos);
  }
}

TEST(PartitionForTest, APreambleOfPassesThatPrepareEveryModelAsksForNothingMore) {
  for (const int level : {0, kPreparationLevel}) {
    const std::vector<std::string> usual = PassesFor(Prepared("usual", {}), PassContext(level));
    EXPECT_EQ(PassesFor(Prepared("same", {"FoldScaleAxis", "FoldConstant"}), PassContext(level)), usual);
    EXPECT_NE(PassesFor(Prepared("more", {"CombineParallelDense"}), PassContext(level)), usual);
  }
}

TEST(PartitionForTest, AnUnknownPassOfAPreambleIsNamedWithItsToolchain) {
  const Prepared toolchain("hasty", {"FoldConstant", "FoldConstants"});
  for (const auto& run : {OptimizeFor, PartitionFor}) {
    try {
      run(toolchain, ParseModule(kBias), PassContext());
      FAIL() << "there is no such pass";
    } catch (const Error& error) {
      EXPECT_EQ(error.category(), ErrorCategory::kInput);
      EXPECT_EQ(
          error.Format(),
          "preamble of toolchain 'hasty': error: unknown pass 'FoldConstants'\nhint: did you mean 'FoldConstant'?");
    }
  }
}

TEST(PartitionForTest, ADisabledPassOfPartitioningDoesNotRun) {
  PassContext context(kPreparationLevel);
  context.disabled_pass = {"PartitionGraph"};
  const IRModule marked = PartitionFor(Greedy(), ParseModule(kModel), context);
  EXPECT_EQ(marked.functions().size(), 1u);
  EXPECT_NE(PrintModule(marked).find("compiler_begin"), std::string::npos);
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

TEST(PartitionForTest, APreambleMayWantAPassUndone) {
  const IRModule module = ParseModule(kModel);
  const Prepared undone("undone", {"-SimplifyInference"});
  EXPECT_EQ(UndoneFor(undone), std::vector<std::string>{"SimplifyInference"});
  EXPECT_NE(PrintModule(OptimizeFor(undone, module)).find("dropout"), std::string::npos);
  EXPECT_TRUE(UndoneFor(Greedy()).empty());
  const auto refusal = [&](const char* entry) -> std::string {
    try {
      OptimizeFor(Prepared("odd", {entry}), module);
    } catch (const Error& error) {
      return error.where() + ": " + error.message();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal("-FuseOps"), "preamble of toolchain 'odd': pass 'FuseOps' cannot be undone: it prepares no model");
  EXPECT_TRUE(refusal("-Fuse").starts_with("preamble of toolchain 'odd': ")) << refusal("-Fuse");
}

}  // namespace
}  // namespace collage
