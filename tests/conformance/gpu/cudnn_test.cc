// Models of which cuDNN computes operations on a GPU: single ones in all types and layouts, and models as a whole,
// found by the search, checked, written, and run.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"
#include "conformance/conformance.h"
#include "conformance/gpu/cudnn_cases.h"
#include "conformance/gpu/gpu_test.h"

namespace collage {
namespace {

using testing::HasSubstr;

class CudnnTest : public GpuTest {
 protected:
  CudnnTest() : GpuTest("cudnn") {}
  CompileOptions Options(const std::string& name) const { return GpuTest::Options(name, "cuda -compiler=cudnn"); }
  static const Toolchain& Cudnn() { return *ToolchainRegistry::Global().Find("cudnn"); }
  static std::unique_ptr<const Toolchain> With(const std::map<std::string, std::string>& told) {
    Attrs options;
    for (const AttrField& option : Cudnn().Options()) options.Set(option.name, option.default_value);
    for (const auto& [name, value] : told) options.Set(name, value);
    return Cudnn().WithOptions(options);
  }
};

TEST_F(CudnnTest, Float32PatternsAgree) { ExpectCasesAgree(Cudnn(), CudnnCases(kFloat32)); }
TEST_F(CudnnTest, Float16PatternsAgree) { ExpectCasesAgree(Cudnn(), CudnnCases(kFloat16)); }
TEST_F(CudnnTest, BFloat16PatternsAgree) { ExpectCasesAgree(Cudnn(), CudnnCases(kBFloat16)); }

TEST_F(CudnnTest, EachRowHasACase) {
  std::set<std::string> rows;
  for (const PatternTableEntry& entry : Cudnn().PatternTable()) rows.insert(entry.name);
  for (const DataType dtype : {kFloat32, kFloat16}) {
    for (const PatternCase& one : CudnnCases(dtype)) rows.erase("cudnn." + one.pattern);
  }
  EXPECT_THAT(rows, testing::IsEmpty());
}

/// A convolution with bias and relu, a pool, and a classifier.
IRModule SmallNetwork() {
  const Var x = conformance::Input("x", {1, 3, 8, 8});
  const Expr convolution = MakeCall("nn.conv2d", {x, conformance::RandomConstant({4, 3, 3, 3}, 1, -0.3, 0.3)},
                                    {{"padding", std::vector<int64_t>{1, 1}}});
  const Expr active = MakeCall("nn.relu", {MakeCall("add", {convolution, conformance::RandomConstant({4, 1, 1}, 2)})});
  const Expr pooled = MakeCall("nn.max_pool2d", {active},
                               {{"pool_size", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  const Expr flat = MakeCall("nn.batch_flatten", {pooled});
  const Expr scores = MakeCall("nn.dense", {flat, conformance::RandomConstant({10, 64}, 3, -0.1, 0.1)});
  return IRModule::FromFunction(MakeFunction({x}, MakeCall("nn.softmax", {scores})));
}

TEST_F(CudnnTest, TheSearchMixesProcessorAndGpu) {
  const IRModule module = SmallNetwork();
  CompileOptions options = Options("measured");
  const CompileReport measured = CompileModule(module, "measured", options);
  EXPECT_EQ(FailuresOf(measured), "");
  const Contender* alone = Find(measured, "cudnn");
  ASSERT_NE(alone, nullptr);
  EXPECT_EQ(alone->failure, "");
  EXPECT_EQ(alone->partitions.at("cudnn"), 3) << "the convolution with bias and relu, the pool, the product";
  ExpectAgrees(module, options);
}

TEST_F(CudnnTest, SeveralToolchainsShareTheGpu) {
  const IRModule module = SmallNetwork();
  CompileOptions options = Options("shared");
  options.targets.emplace_back("cuda -compiler=cublas");
  options.targets.emplace_back("cuda");
  options.estimator = R"(mock={"op_cost": {"native": 10, "cuda": 4, "cudnn": 2, "cublas": 1}, "copy": 0.5})";
  const CompileReport report = CompileModule(module, "shared", options);
  EXPECT_EQ(FailuresOf(report), "");
  const bool has_all = std::ranges::any_of(report.contenders, [](const Contender& one) {
    return one.failure.empty() && one.partitions.contains("cublas") && one.partitions.contains("cudnn") &&
           one.partitions.contains("cuda");
  });
  EXPECT_TRUE(has_all);
  ExpectAgrees(module, options);
}

TEST_F(CudnnTest, EnginesAreSchedules) {
  const IRModule module = SmallNetwork();
  CompileOptions options = Options("tuned");
  options.toolchains = {"cudnn"};
  options.tuning_trials = 12;
  options.estimator = "measure";
  const CompileReport report = CompileModule(module, "tuned", options);
  EXPECT_EQ(FailuresOf(report), "");
  EXPECT_GT(report.tuning.trials, 0);
  ExpectAgrees(module, options);
}

/// A case of float32 with several engines.
Function ConvolutionWithBias() {
  const std::vector<PatternCase> all = CudnnCases(kFloat32);
  return std::ranges::find(all, "conv2d_bias_relu", &PatternCase::pattern)->function();
}

BoundaryLayouts OnGpu() { return In(Memory::kCuda, PlainLayouts(1, 1)); }

TEST_F(CudnnTest, EachEngineOfTheRankingComputesTheSame) {
  const Function function = ConvolutionWithBias();
  const Result<std::vector<std::string>> schedules = Cudnn().Schedules({function, OnGpu(), 1});
  ASSERT_TRUE(schedules.ok()) << schedules.reason().text;
  ASSERT_FALSE(schedules->empty());
  for (const std::string& schedule : *schedules) {
    conformance::Options options;
    options.schedule = schedule;
    conformance::ExpectAgrees(Cudnn(), function, options);
  }
  const auto compiled = Cudnn().RelayToRuntime({function, OnGpu(), 1, "engine=1000"});
  ASSERT_FALSE(compiled.ok());
  EXPECT_THAT(compiled.reason().text, HasSubstr("number 1001 is wanted"));
}

TEST_F(CudnnTest, FactorsAreRoundedWhereThatIsAllowed) {
  const std::vector<Var> params{conformance::Input("a", {2, 5, 40}), conformance::Input("b", {2, 6, 40})};
  const Function function =
      MakeFunction(params, MakeCall("nn.batch_matmul", {params[0], params[1]}, {{"transpose_b", true}}));
  InferType(function);
  const BoundaryLayouts layouts = In(Memory::kCuda, PlainLayouts(2, 1));
  const auto refused = Cudnn().RelayToRuntime({function, layouts, 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.reason().text, HasSubstr("as TF32 only (-inference_precision=tf32)"));
  conformance::Options options;
  options.tolerance = 1e-2;
  conformance::ExpectPatternAgrees(*With({{"inference_precision", "tf32"}}), "cudnn.batch_matmul", function, options);
}

TEST_F(CudnnTest, OptionsAreChecked) {
  EXPECT_THROW(With({{"arch", "sm_1"}}), Error);
  EXPECT_THROW(With({{"inference_precision", "bf16"}}), Error);
  EXPECT_THROW(With({{"accuracy", "high"}}), Error);
  // Without Winograd's algorithm there is an engine less.
  const Function function = ConvolutionWithBias();
  const auto standard = Cudnn().Schedules({function, OnGpu(), 1});
  const auto exact = With({{"accuracy", "exact"}})->Schedules({function, OnGpu(), 1});
  ASSERT_TRUE(standard.ok() && exact.ok());
  EXPECT_LT(exact->size(), standard->size());
}

TEST_F(CudnnTest, PlansForOtherGpusAreRefused) {
  if (std::getenv("COLLAGE_TEST_GPU") != nullptr) GTEST_SKIP() << "on a GPU, one of its plans may be right";
  const auto compiled = With({{"arch", "sm_90"}})->RelayToRuntime({ConvolutionWithBias(), OnGpu(), 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const Error error = LoadingError(*compiled);
  EXPECT_EQ(error.category(), ErrorCategory::kUnavailable);
  EXPECT_THAT(error.message(), HasSubstr("made for sm_90"));
}

TEST_F(CudnnTest, CorruptPlansAreRefused) {
  const auto compiled = Cudnn().RelayToRuntime({ConvolutionWithBias(), OnGpu(), 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const size_t size = compiled->blob.size();
  for (const size_t kept : {size_t{0}, size_t{4}, size_t{40}, size - 1}) {
    CompiledPartition shortened = *compiled;
    shortened.blob.resize(kept);
    const Error error = LoadingError(shortened);
    EXPECT_EQ(error.category(), ErrorCategory::kCorrupt) << kept << " bytes: " << error.message();
    EXPECT_THAT(error.message(), HasSubstr("a kernel's plan cannot be read")) << kept << " bytes";
  }
  CompiledPartition without_constants = *compiled;
  without_constants.constants.clear();
  const auto kernel = GetKernelLoader(compiled->loader).Load({without_constants.blob, {}, 1});
  const DeviceBuffer memory(Memory::kCuda, 4096);
  const std::vector<void*> addresses{memory.address()};
  EXPECT_THROW(kernel->Bind(addresses, addresses, memory.address()), Error);
}

}  // namespace
}  // namespace collage
