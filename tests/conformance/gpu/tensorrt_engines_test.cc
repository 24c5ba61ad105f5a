// Engines that TensorRT-RTX itself builds, without a GPU, of every operator that the toolchain takes: its predicates
// promise what the library's parser reads. Skipped where the library is not installed.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "backends/tensorrt/engine.h"
#include "backends/tensorrt/support.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "collage/target/compiles_elsewhere.h"
#include "conformance/conformance.h"
#include "conformance/operators/more_examples.h"
#include "driver/builtins.h"
#include "inspect/random_calls.h"

namespace collage {
namespace {

using testing::HasSubstr;

class TensorRtEnginesTest : public testing::Test {
 protected:
  void SetUp() override {
    AddBuiltins();
    toolchain_ = For("sm_89");
    const Availability compiler = ProbeCompilerOf(*toolchain_);
    if (!compiler.available) GTEST_SKIP() << compiler.reason;
  }

  static std::unique_ptr<const Toolchain> For(const std::string& architecture, const std::string& precision = "f32") {
    const Toolchain& plain = *ToolchainRegistry::Global().Find("tensorrt");
    Attrs options;
    for (const AttrField& option : plain.Options()) options.Set(option.name, option.default_value);
    options.Set("module", "tensorrt_rtx");
    options.Set("arch", architecture);
    options.Set("inference_precision", precision);
    return plain.WithOptions(options);
  }

  static Result<CompiledPartition> Build(const Toolchain& toolchain, const Function& function) {
    const size_t results = FlattenTensorTypes(function->body()->checked_type()).size();
    size_t inputs = 0;
    for (const Var& param : function->params()) inputs += FlattenTensorTypes(param->checked_type()).size();
    return toolchain.RelayToRuntime({function, In(Memory::kCuda, PlainLayouts(inputs, results)), 1});
  }

  static std::vector<OpExample> ExamplesOf(const OpDef& op) {
    std::vector<OpExample> examples = op.examples;
    for (OpExample& example : conformance::MoreExamples(op.name)) examples.push_back(std::move(example));
    return examples;
  }

  /// Builds an engine of each example of `op`, and expects that there is one wherever the predicate says so. Returns
  /// how many there were.
  int BuildExamples(const OpDef& op) const {
    int built = 0;
    std::mt19937 random(1);
    for (const OpExample& example : ExamplesOf(op)) {
      for (const DataType dtype : DataTypesToTry()) {
        for (const size_t first_constant : {example.args.size(), size_t{1}}) {
          const std::optional<RandomCall> call = MakeRandomCall(op, example, dtype, first_constant, random);
          if (!call) continue;
          const Result<void> taken = toolchain_->SupportsCall(*As<CallNode>(call->function->body()));
          if (!taken.ok()) continue;
          const Result<CompiledPartition> compiled = Build(*toolchain_, call->function);
          EXPECT_TRUE(compiled.ok()) << op.name << " of " << dtype.ToString() << ", constants from " << first_constant
                                     << ": " << compiled.reason().text;
          built += compiled.ok() ? 1 : 0;
        }
      }
    }
    for (auto& [function, options] : conformance::MoreFunctions(op.name)) {
      InferType(function);
      if (!toolchain_->SupportsCall(*As<CallNode>(function->body())).ok()) continue;
      const Result<CompiledPartition> compiled = Build(*toolchain_, function);
      EXPECT_TRUE(compiled.ok()) << op.name << ": " << compiled.reason().text;
      built += compiled.ok() ? 1 : 0;
    }
    return built;
  }

  std::unique_ptr<const Toolchain> toolchain_;
};

/// A residual block, attention, and a classifier: what is fused within an engine.
Function Network() {
  using V = std::vector<int64_t>;
  const Var x = conformance::Input("x", {1, 8, 14, 14});
  const auto convolution = [](const Expr& data, uint32_t seed) {
    const Expr sum = MakeCall("nn.conv2d", {data, conformance::RandomConstant({8, 8, 3, 3}, seed, -0.3, 0.3)},
                              {{"padding", V{1, 1}}});
    return MakeCall("nn.bias_add", {sum, conformance::RandomConstant({8}, seed + 1)});
  };
  const Expr block =
      MakeCall("nn.relu", {MakeCall("add", {convolution(MakeCall("nn.relu", {convolution(x, 1)}), 3), x})});
  const Expr rows = MakeCall("reshape", {block}, {{"newshape", V{1, 8, 196}}});
  const Expr scores = MakeCall("nn.softmax", {MakeCall("nn.batch_matmul", {rows, rows}, {{"transpose_b", true}})});
  const Expr seen = MakeCall("nn.batch_matmul", {scores, rows});
  const Expr flat = MakeCall("nn.batch_flatten", {seen});
  Function function =
      MakeFunction({x}, MakeCall("nn.dense", {flat, conformance::RandomConstant({10, 8 * 196}, 5, -0.1, 0.1)}));
  InferType(function);
  return function;
}

TEST_F(TensorRtEnginesTest, SubGraphsHaveEnginesForEachGpuInEachPrecision) {
  const Function function = Network();
  for (const char* architecture : {"sm_80", "sm_86", "sm_89", "sm_120"}) {
    std::set<std::string> engines;
    for (const char* precision : {"f32", "tf32", "f16", "bf16"}) {
      const Result<CompiledPartition> compiled = Build(*For(architecture, precision), function);
      ASSERT_TRUE(compiled.ok()) << architecture << ", " << precision << ": " << compiled.reason().text;
      const tensorrt::Engine engine = tensorrt::EngineFrom(compiled->blob);
      EXPECT_EQ(engine.architecture, architecture);
      EXPECT_THAT(engine.version, HasSubstr("TensorRT-RTX 1."));
      engines.insert(engine.bytes);
    }
    EXPECT_GT(engines.size(), 2u) << "precisions make a difference";
  }
}

TEST_F(TensorRtEnginesTest, GpusThatItDoesNotKnowAreRefusedByName) {
  const auto toolchain = For("sm_70");
  const Result<CompiledPartition> compiled = Build(*toolchain, Network());
  ASSERT_FALSE(compiled.ok());
  EXPECT_THAT(compiled.reason().text, HasSubstr("not for sm_70"));
  if (toolchain->Probe().available) GTEST_SKIP() << "there is a GPU, for which engines are built";
  const Availability compiler = ProbeCompilerOf(*toolchain);
  EXPECT_FALSE(compiler.available);
  EXPECT_THAT(compiler.reason, HasSubstr("not for sm_70"));
  EXPECT_THAT(ProbeCompilerOf(*For("")).reason, HasSubstr("and none is named"));
}

TEST_F(TensorRtEnginesTest, CompilingElsewhereJoinsVersions) {
  const auto* elsewhere = dynamic_cast<const CompilesElsewhere*>(toolchain_.get());
  ASSERT_NE(elsewhere, nullptr);
  const std::string version = ProbeCompilerOf(*toolchain_).version;
  EXPECT_TRUE(elsewhere->JoinVersions(version, version + " for sm_89 on a GPU").has_value());
  EXPECT_FALSE(elsewhere->JoinVersions(version, "TensorRT-RTX 0.1 for sm_89 on a GPU").has_value());
}

/// `value`, quantised to int8 and back.
Expr Quantised(const Expr& value, float scale) {
  const Expr by = MakeConstant(Tensor::Of<float>({}, kFloat32, std::vector<float>{scale}));
  const Expr zero = MakeConstant(Tensor::Of<int32_t>({}, kInt32, std::vector<int32_t>{0}));
  const Expr narrow = MakeCall("qnn.quantize", {value, by, zero}, {{"out_dtype", kInt8}});
  return MakeCall("qnn.dequantize", {narrow, by, zero});
}

TEST_F(TensorRtEnginesTest, QuantisedConvolutionsHaveEngines) {
  const Var x = conformance::Input("x", {1, 8, 14, 14});
  const Expr weights = Quantised(conformance::RandomConstant({8, 8, 3, 3}, 1, -0.3, 0.3), 0.003F);
  const Expr sum = MakeCall("nn.conv2d", {Quantised(x, 0.01F), weights}, {{"padding", std::vector<int64_t>{1, 1}}});
  Function function = MakeFunction({x}, Quantised(MakeCall("nn.relu", {sum}), 0.02F));
  InferType(function);
  PostOrder(function->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr) return;
    const Result<void> taken = toolchain_->SupportsCall(*call);
    EXPECT_TRUE(taken.ok()) << call->op()->name << ": " << taken.reason().text;
  });
  const Result<CompiledPartition> compiled = Build(*toolchain_, function);
  EXPECT_TRUE(compiled.ok()) << compiled.reason().text;
}

TEST_F(TensorRtEnginesTest, EveryOperatorThatIsTakenHasAnEngine) {
  // All of them take minutes.
  const bool is_full = std::getenv("COLLAGE_TEST_PLANS") != nullptr;
  const std::set<std::string> some{"nn.conv2d", "nn.dense", "nn.max_pool2d", "add", "nn.softmax", "take", "topk"};
  for (const Op& node : AllOps()) {
    const OpDef* op = &node->def();
    const auto row = std::ranges::find(tensorrt::Operators(), std::string_view(op->name), &tensorrt::OperatorRow::name);
    if (row == tensorrt::Operators().end()) {
      ADD_FAILURE() << op->name << " has no row";
    } else if (op->name.starts_with("qnn.")) {
      continue;  // examples have zero points; the case above has calls without
    } else if (row->why_not.empty() && (is_full || some.contains(op->name))) {
      EXPECT_GT(BuildExamples(*op), 0) << op->name << ": there is no example, or the predicate takes none";
    }
  }
}

}  // namespace
}  // namespace collage
