// A toolchain whose patterns are written for operators that preparation replaces gets the model in its form.
#include <gtest/gtest.h>

#include <algorithm>

#include "collage/compile.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "driver/builtins.h"
#include "unit/driver/fake_library.h"

namespace collage {
namespace {

/// Takes normalisations that change nothing, with the relu behind them.
class NormLibrary : public testing_library::FakeLibrary {
 public:
  NormLibrary() : FakeLibrary("norm") {}
  std::vector<std::string> Preamble() const override { return {"-SimplifyInference"}; }
  std::vector<PatternTableEntry> PatternTable() const override {
    return {{"norm.batch_norm_relu", "nn.relu(proj(nn.batch_norm(*, const, const, const, const), 0))", {}}};
  }
};

class ModelFormsTest : public testing::Test {
 protected:
  ModelFormsTest() {
    AddBuiltins();
    ToolchainRegistry& registry = ToolchainRegistry::Global();
    if (registry.Find("norm") != nullptr) return;
    AddKernelLoader("norm", std::make_unique<testing_library::FakeLoader>());
    registry.Add(std::make_unique<NormLibrary>());
  }

  CompileOptions Options() const {
    CompileOptions options;
    options.output = folder_ / "m.clg";
    options.database = (folder_ / "tuning.db").string();
    options.num_threads = 1;
    options.toolchains = {"native", "norm"};
    options.estimator = R"(mock={"op_cost": {"native": 9, "norm": 1}})";
    options.max_optimality_covers = 0;
    return options;
  }

  /// tanh(relu(norm(product of x))), the normalisation an identity, or without it.
  CompileReport Compile(bool normalises) {
    const Var x = testing_graphs::Param("x", {8, 24});
    Expr value = MakeCall("nn.dense", {x, testing_graphs::Weights({16, 24})});
    if (normalises) {
      const auto vector = [](double of) {
        const Tensor tensor = Tensor::Empty({16}, kFloat32);
        for (int64_t i = 0; i < 16; ++i) tensor.Set(i, of);
        return MakeConstant(tensor);
      };
      value = MakeTupleGetItem(
          MakeCall("nn.batch_norm", {value, vector(1), vector(0), vector(0), vector(1)}, {{"epsilon", 0.0}}), 0);
    }
    const Function main = testing_graphs::Typed({x}, MakeCall("tanh", {MakeCall("nn.relu", {value})}));
    return CompileModule(IRModule::FromFunction(main), "m", Options());
  }

  const TemporaryFolder folder_;
};

int NumOf(const Contender& contender, const std::string& toolchain) {
  const auto it = contender.partitions.find(toolchain);
  return it == contender.partitions.end() ? 0 : it->second;
}

TEST_F(ModelFormsTest, BothFormsMeetInThePlayOff) {
  const CompileReport report = Compile(/*normalises=*/true);
  const auto with =
      std::ranges::find_if(report.contenders, [](const Contender& one) { return NumOf(one, "norm") > 0; });
  ASSERT_NE(with, report.contenders.end());
  EXPECT_EQ(with->failure, "");
  EXPECT_EQ(with->partitions.at("norm"), 1);
  EXPECT_GT(with->p50, 0);
  const auto mix = std::ranges::find(report.contenders, "collage-for-norm", &Contender::name);
  const auto own = std::ranges::find(report.contenders, "norm", &Contender::name);
  EXPECT_TRUE(mix != report.contenders.end() || own != report.contenders.end());
  const auto native = [](const Contender& one) { return NumOf(one, "norm") == 0; };
  EXPECT_GT(std::ranges::count_if(report.contenders, native), 0) << "the form for all";
}

TEST_F(ModelFormsTest, AModelThatIsTheSameInBothHasOne) {
  const CompileReport report = Compile(/*normalises=*/false);
  for (const Contender& contender : report.contenders) {
    EXPECT_EQ(contender.name.find("-for-"), std::string::npos) << contender.name;
    // By its passes it takes the relu, which no pattern has.
    EXPECT_EQ(NumOf(contender, "norm"), contender.name == "partition_for_norm" ? 1 : 0) << contender.name;
  }
}

TEST_F(ModelFormsTest, TheQuantisedDialectIsCompiledWhereNothingReplacesIt) {
  const IRModule module = ParseModule(R"(
def @main(%x: Tensor[(1, 8, 8, 4), uint8], %w: Tensor[(3, 3, 4, 8), int8]) {
  %0 = layout_transform(%x, src_layout="NHWC", dst_layout="NCHW");
  %1 = layout_transform(%w, src_layout="HWIO", dst_layout="OIHW");
  %2 = qnn.conv2d(%0, %1, 3, 0, 0.1f, 0.2f, channels=8, kernel_size=[3, 3], out_dtype="int32");
  qnn.dequantize(qnn.requantize(%2, 0.02f, 0, 0.5f, 5, out_dtype="uint8"), 0.5f, 5)
})",
                                      "quantised");
  CompileOptions options = Options();
  options.pass_context.disabled_pass = {"qnn.CanonicalizeOps"};
  const CompileReport report = CompileModule(module, "m", options);
  EXPECT_EQ(report.contenders.front().failure, "");
  EXPECT_GT(report.contenders.front().p50, 0);
}

}  // namespace
}  // namespace collage
