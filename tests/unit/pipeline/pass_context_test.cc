#include "collage/transform/pass_context.h"

#include <gtest/gtest.h>

#include <sstream>

#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"

namespace collage {
namespace {

IRModule Parse(const std::string& body) {
  return ParseModule("def @main(%x: Tensor[(4), float32]) {\n" + body + "\n}\n");
}

template <typename F>
Error ErrorOf(F function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorCategory::kInternal, ""};
}

/// Notes the names of the passes that run; bars one of them.
class Recorder : public PassInstrument {
 public:
  explicit Recorder(std::string barred = "") : barred_(std::move(barred)) {}
  bool ShouldRun(const Pass& pass, const IRModule&) override { return pass.name != barred_; }
  void Before(const Pass& pass, const IRModule&) override { seen.push_back("+" + pass.name); }
  void After(const Pass& pass, const IRModule&) override { seen.push_back("-" + pass.name); }
  std::vector<std::string> seen;

 private:
  std::string barred_;
};

TEST(PassContextTest, OptionsAreCheckedWhenTheyAreSet) {
  PassContext context;
  EXPECT_EQ(context.ConfigInt("relay.FuseOps.max_depth"), 256);
  context.SetConfigText("relay.FuseOps.max_depth", "3");
  EXPECT_EQ(context.ConfigInt("relay.FuseOps.max_depth"), 3);
  context.SetConfigText("relay.CombineParallelDense.to_batch", "false");
  EXPECT_FALSE(context.ConfigBool("relay.CombineParallelDense.to_batch"));

  const Error unknown = ErrorOf([&] { context.SetConfig("relay.FuseOps.max_dept", 3); });
  EXPECT_EQ(unknown.category(), ErrorCategory::kInput);
  EXPECT_EQ(unknown.message(), "unknown pass option 'relay.FuseOps.max_dept'");
  EXPECT_NE(unknown.hint().find("'relay.FuseOps.max_depth'"), std::string::npos) << unknown.hint();
  EXPECT_EQ(ErrorOf([&] { context.SetConfig("relay.FuseOps.max_depth", "x"); }).message(),
            "pass option 'relay.FuseOps.max_depth' must be an integer");
  EXPECT_EQ(ErrorOf([&] { context.SetConfigText("relay.FuseOps.max_depth", "3x"); }).category(), ErrorCategory::kInput);
  EXPECT_EQ(ErrorOf([&] { context.SetConfigText("relay.CombineParallelDense.to_batch", "2"); }).message(),
            "pass option 'relay.CombineParallelDense.to_batch' must be true or false");
}

TEST(PassContextTest, EveryOptionHasADefaultOfItsTypeAndADoc) {
  for (const ConfigKey& key : AllConfigKeys()) {
    PassContext context;
    EXPECT_NO_THROW(context.SetConfig(key.name, key.default_value)) << key.name;
    EXPECT_FALSE(key.doc.empty()) << key.name;
  }
}

TEST(PassContextTest, EveryRequiredPassExists) {
  for (const Pass& pass : AllPasses()) {
    EXPECT_FALSE(pass.summary.empty()) << pass.name;
    for (const std::string& name : pass.required) EXPECT_EQ(GetPass(name).name, name);
  }
}

TEST(PassContextTest, LevelsAndListsDecideWhatASequenceRuns) {
  const Sequential passes({"SimplifyExpr", "EliminateCommonSubexpr", "FoldConstant"});
  const auto run = [&](PassContext context) {
    const auto recorder = std::make_shared<Recorder>();
    context.instruments = {recorder};
    passes.Run(Parse("exp(%x)"), context);
    std::string names;
    for (const std::string& seen : recorder->seen) names += seen[0] == '+' ? seen : "";
    return names;
  };
  PassContext context;
  EXPECT_EQ(run(context), "+SimplifyExpr+FoldConstant");
  context.opt_level = 3;
  EXPECT_EQ(run(context), "+SimplifyExpr+EliminateCommonSubexpr+FoldConstant");
  context.disabled_pass = {"SimplifyExpr"};
  EXPECT_EQ(run(context), "+EliminateCommonSubexpr+FoldConstant");
  context.opt_level = 0;
  context.required_pass = {"FoldConstant"};
  EXPECT_EQ(run(context), "+FoldConstant");
  context.required_pass = {"FoldConstants"};
  EXPECT_NE(ErrorOf([&] { run(context); }).hint().find("'FoldConstant'"), std::string::npos);
}

TEST(PassContextTest, RequiredPassesRunFirstOncePerChange) {
  const auto change = [](IRModule module, const PassContext&) {
    module.Set("main", Parse("negative(%x)").main());
    return module;
  };
  const auto keep = [](IRModule module, const PassContext&) { return module; };
  const Pass needs{"Needs", 0, {"FoldConstant"}, "", keep};
  const Pass changes{"Changes", 0, {}, "", change};
  PassContext context;
  const auto recorder = std::make_shared<Recorder>();
  context.instruments = {recorder};
  Sequential(std::vector<Pass>{needs, needs, changes, needs}).Run(Parse("exp(%x)"), context);
  std::string names;
  for (const std::string& seen : recorder->seen) names += seen[0] == '+' ? seen : "";
  EXPECT_EQ(names, "+FoldConstant+Needs+Needs+Changes+FoldConstant+Needs");
}

TEST(PassContextTest, AnInstrumentMayBarAPass) {
  PassContext context;
  const auto recorder = std::make_shared<Recorder>("SimplifyExpr");
  context.instruments = {recorder};
  const IRModule module = Sequential({"SimplifyExpr"}).Run(Parse("multiply(%x, 1f)"), context);
  EXPECT_TRUE(recorder->seen.empty());
  EXPECT_NE(PrintModule(module).find("multiply"), std::string::npos);
}

TEST(PassContextTest, TimesAndTextsAreKept) {
  PassContext context;
  const auto timing = std::make_shared<TimingInstrument>();
  std::ostringstream out;
  context.instruments = {timing, std::make_shared<PrintIrInstrument>(out, PrintIrInstrument::When::kBefore),
                         std::make_shared<PrintIrInstrument>(out, PrintIrInstrument::When::kAfter,
                                                             std::vector<std::string>{"SimplifyExpr"})};
  const Pass both = Sequential({"SimplifyExpr", "FoldConstant", "SimplifyExpr"}).AsPass("Both", 0, "");
  RunPass(both, Parse("multiply(%x, 1f)"), context);
  ASSERT_EQ(timing->rows().size(), 3u);
  EXPECT_EQ(timing->rows()[0].pass, "SimplifyExpr");
  EXPECT_EQ(timing->rows()[0].runs, 2);
  EXPECT_EQ(timing->rows()[2].pass, "Both");
  EXPECT_GE(timing->rows()[2].total, timing->rows()[0].total + timing->rows()[1].total);
  EXPECT_NE(timing->ToText().find("2x  SimplifyExpr"), std::string::npos) << timing->ToText();
  const std::string text = out.str();
  EXPECT_NE(text.find("// before Both\n#[version"), std::string::npos) << text;
  EXPECT_NE(text.find("// before FoldConstant\n"), std::string::npos) << text;
  EXPECT_NE(text.find("// after SimplifyExpr\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("// after FoldConstant\n"), std::string::npos) << text;
}

TEST(PassContextTest, FunctionsOfToolchainsAreLeftAlone) {
  const std::string text = R"(def @dnnl_0(%x: Tensor[(4), float32], Compiler="dnnl") -> Tensor[(4), float32] {
  multiply(%x, 1f)
}

def @main(%x: Tensor[(4), float32]) -> Tensor[(4), float32] {
  %0 = @dnnl_0(%x);
  multiply(%0, 1f)
}
)";
  IRModule module = ParseModule(text);
  module = RunPass(GetPass("SimplifyExpr"), module);
  EXPECT_NE(PrintExpr(module.Lookup("dnnl_0")).find("multiply"), std::string::npos);
  EXPECT_EQ(PrintExpr(module.main()).find("multiply"), std::string::npos);
}

}  // namespace
}  // namespace collage
