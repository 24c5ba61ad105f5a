// The passes that run before a model is partitioned: which of them, under which context, with which result.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "collage/transform/passes.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

using Names = std::vector<std::string>;

/// Notes the passes that run; bars one of them.
class Recorder : public PassInstrument {
 public:
  explicit Recorder(std::string barred = "") : barred_(std::move(barred)) {}
  bool ShouldRun(const Pass& pass, const IRModule&) override { return pass.name != barred_; }
  void Before(const Pass& pass, const IRModule&) override { seen.push_back(pass.name); }
  Names seen;

 private:
  std::string barred_;
};

IRModule Parse(const std::string& body) {
  return ParseModule("def @main(%x: Tensor[(2, 4), float32], %s: Tensor[(4), float32]) {\n" + body + "\n}\n");
}

const char* const kNorm = "nn.batch_norm(%x, %s, %s, %s, %s).0";

std::set<std::string> Operators(const IRModule& module) {
  std::set<std::string> names;
  PostOrder(module.main(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call != nullptr && call->op() != nullptr) names.insert(call->op()->name);
  });
  return names;
}

/// The passes that run on a module under `context`, without InferType.
Names PassesUnder(PassContext context, const std::string& body = "nn.relu(%x)") {
  const auto recorder = std::make_shared<Recorder>();
  context.instruments.push_back(recorder);
  PrepareForPartitioning(Parse(body), context);
  std::erase(recorder->seen, "InferType");
  return recorder->seen;
}

bool AlwaysApplies(const PreparationStep& step) { return step.applies == nullptr; }

TEST(Preparation, InstrumentsSeeTheTableInItsOrder) {
  Names expected;
  for (const PreparationStep& step : PreparationSteps()) {
    if (AlwaysApplies(step) && GetPass(step.pass).opt_level <= kPreparationLevel) expected.emplace_back(step.pass);
  }
  ASSERT_GT(expected.size(), 5u);
  EXPECT_EQ(PassesUnder(PassContext(kPreparationLevel)), expected);
}

TEST(Preparation, TheLevelDecides) {
  for (const int level : {0, 1, 2, 3, 4}) {
    Names expected;
    for (const PreparationStep& step : PreparationSteps()) {
      if (AlwaysApplies(step) && GetPass(step.pass).opt_level <= level) expected.emplace_back(step.pass);
    }
    EXPECT_EQ(PassesUnder(PassContext(level)), expected) << level;
  }
}

TEST(Preparation, RequiredStepsRunAtEveryLevelUnlessTheyAreDisabled) {
  PassContext context(-1);
  EXPECT_EQ(PassesUnder(context), (Names{"qnn.CanonicalizeOps", "SimplifyInference"}));
  context.disabled_pass = {"SimplifyInference", "FoldConstant"};
  EXPECT_EQ(PassesUnder(context), Names{"qnn.CanonicalizeOps"});
}

TEST(Preparation, DevicesArePlannedLastWhereAnyIsNamed) {
  EXPECT_EQ(PassesUnder(PassContext(0), "nn.relu(on_device(%x, device_type=2))").back(), "PlanDevices");
  EXPECT_EQ(PassesUnder(PassContext(0), "device_copy(%x, src_device_type=1, dst_device_type=1)").back(), "PlanDevices");
  PassContext context(0);
  EXPECT_EQ(std::ranges::count(PassesUnder(context), "PlanDevices"), 0);
  context.SetConfig("relay.fallback_device_type", 2);
  EXPECT_EQ(PassesUnder(context).back(), "PlanDevices") << "then all of it is for another device";
  context.disabled_pass = {"PlanDevices"};
  EXPECT_EQ(std::ranges::count(PassesUnder(context), "PlanDevices"), 0);
}

TEST(Preparation, RequiredAndDisabledPasses) {
  PassContext context(0);
  context.required_pass = {"FoldConstant"};
  EXPECT_EQ(std::ranges::count(PassesUnder(context), "FoldConstant"), 2);
  context.disabled_pass = {"FoldConstant"};
  EXPECT_EQ(std::ranges::count(PassesUnder(context), "FoldConstant"), 0);
}

TEST(Preparation, ADisabledPassLeavesItsOperators) {
  EXPECT_FALSE(Operators(PrepareForPartitioning(Parse(kNorm))).contains("nn.batch_norm"));
  PassContext context(kPreparationLevel);
  context.disabled_pass = {"SimplifyInference"};
  EXPECT_TRUE(Operators(PrepareForPartitioning(Parse(kNorm), context)).contains("nn.batch_norm"));
}

TEST(Preparation, AnInstrumentMayBarAPass) {
  PassContext context(kPreparationLevel);
  context.instruments.push_back(std::make_shared<Recorder>("SimplifyInference"));
  EXPECT_TRUE(Operators(PrepareForPartitioning(Parse(kNorm), context)).contains("nn.batch_norm"));
}

TEST(Preparation, OptionsReachThePassesOfLevelFour) {
  const std::string text = R"(
def @main(%x: Tensor[(2, 4), float32], %a: Tensor[(3, 4), float32], %b: Tensor[(3, 4), float32]) {
  add(nn.dense(%x, %a), nn.dense(%x, %b))
})";
  PassContext context(4);
  EXPECT_TRUE(Operators(PrepareForPartitioning(ParseModule(text), context)).contains("nn.dense"));
  context.SetConfig("relay.CombineParallelDense.min_num_branches", int64_t{2});
  EXPECT_FALSE(Operators(PrepareForPartitioning(ParseModule(text), context)).contains("nn.dense"));
}

TEST(Preparation, UnknownPassesAreNamed) {
  PassContext context(kPreparationLevel);
  context.disabled_pass = {"FoldConstants"};
  ExpectError([&] { PrepareForPartitioning(Parse("nn.relu(%x)"), context); }, ErrorCategory::kInput,
              "unknown pass 'FoldConstants'");
}

TEST(Preparation, StraightLineCodeBecomesAGraphAtEveryLevel) {
  const IRModule module = Parse("let %a = nn.relu(%x);\n  add(%a, %a)");
  EXPECT_NE(As<LetNode>(module.main()->body()), nullptr);
  PassContext context(0);
  EXPECT_EQ(As<LetNode>(PrepareGraph(module, context).main()->body()), nullptr);
  context.disabled_pass = {"ToGraphNormalForm"};
  EXPECT_NE(As<LetNode>(PrepareGraph(module, context).main()->body()), nullptr);
}

TEST(Preparation, PassesThatNoCompilationRunsAreRequiredInVain) {
  PassContext context;
  context.required_pass = {"FoldConstant", "FuseOps", "ToGraphNormalForm", "CombineParallelConv2D"};
  EXPECT_EQ(RequiredInVain(context), Names{"FuseOps"});
}

}  // namespace
}  // namespace collage
