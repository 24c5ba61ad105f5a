// Models of which CUTLASS computes operations on a GPU: single ones in all types, and models as a whole, found by the
// search, checked, written, and run. On the stand-in for the driver, an instance is computed by its description.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cutlass/tiles.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"
#include "conformance/conformance.h"
#include "conformance/gpu/cutlass_cases.h"
#include "conformance/gpu/gpu_test.h"

namespace collage {
namespace {

using testing::HasSubstr;

class CutlassTest : public GpuTest {
 protected:
  CutlassTest() : GpuTest("cutlass") {}
  CompileOptions Options(const std::string& name) const { return GpuTest::Options(name, "cuda -compiler=cutlass"); }
  static const Toolchain& Cutlass() { return *ToolchainRegistry::Global().Find("cutlass"); }
  static std::unique_ptr<const Toolchain> With(const std::map<std::string, std::string>& told) {
    return Configured(Cutlass(), told);
  }
  /// Why a partition of one call is not compiled; "" if it is.
  static std::string RefusalOf(const Expr& call, const std::vector<Var>& params, bool channels_last = true) {
    const Function function = MakeFunction(params, call);
    InferType(function);
    std::vector<bool> images(params.size(), channels_last);
    const auto compiled = Cutlass().RelayToRuntime({function, ChannelsLastLayouts(images, {channels_last}), 1});
    return compiled.ok() ? "" : compiled.reason().text;
  }
};

TEST_F(CutlassTest, Float32PatternsAgree) { ExpectCasesAgree(Cutlass(), CutlassCases(kFloat32)); }
TEST_F(CutlassTest, Float16PatternsAgree) { ExpectCasesAgree(Cutlass(), CutlassCases(kFloat16)); }
// Results are rounded once, and the reference also rounds what is before a bias.
TEST_F(CutlassTest, BFloat16PatternsAgree) { ExpectCasesAgree(Cutlass(), CutlassCases(kBFloat16), 1.0 / 128); }
TEST_F(CutlassTest, IntegersAreExact) { ExpectCasesAgree(Cutlass(), CutlassCases(kInt8), 0); }
TEST_F(CutlassTest, ExactProductsAgree) { ExpectCasesAgree(*With({{"accuracy", "exact"}}), CutlassCases(kFloat32)); }
TEST_F(CutlassTest, FactorsAreRoundedWhereThatIsAllowed) {
  ExpectCasesAgree(*With({{"inference_precision", "tf32"}}), CutlassCases(kFloat32), 1e-2);
}

TEST_F(CutlassTest, EachRowHasACase) {
  std::set<std::string> rows;
  for (const PatternTableEntry& entry : Cutlass().PatternTable()) rows.insert(entry.name);
  for (const PatternCase& one : CutlassCases(kFloat32)) rows.erase("cutlass." + one.pattern);
  EXPECT_THAT(rows, testing::IsEmpty());
}

/// A convolution of three channels in plain images with a residual, both as inputs of the model.
TEST_F(CutlassTest, PlainImagesAreMoved) {
  for (const DataType dtype : {kFloat32, kFloat16, kInt8}) {
    const DataType made = dtype == kInt8 ? kInt32 : dtype;
    const Var x = conformance::Input("x", {2, 3, 9, 37}, dtype),
              other = conformance::Input("other", {2, 40, 9, 37}, made);
    const Expr convolved =
        MakeCall("nn.conv2d", {x, MakeConstant(conformance::RandomTensor({40, 3, 3, 3}, dtype, -1, 1, 1))},
                 {{"padding", std::vector<int64_t>{1, 1}}, {"out_dtype", made}});
    const Function function = MakeFunction({x, other}, MakeCall("nn.relu", {MakeCall("add", {convolved, other})}));
    InferType(function);
    for (const bool is_result_plain : {true, false}) {
      conformance::Options options;
      options.layouts = In(Memory::kCuda, ChannelsLastLayouts({false, !is_result_plain}, {!is_result_plain}));
      conformance::ExpectPatternAgrees(Cutlass(), "cutlass.conv2d_residual_add_relu", function, options);
    }
  }
}

/// A pool, convolutions with bias, swish and a residual, and a classifier.
IRModule SmallNetwork() {
  const Var x = conformance::Input("x", {1, 4, 16, 16});
  const Expr pooled = MakeCall("nn.max_pool2d", {x},
                               {{"pool_size", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  const auto convolve = [](const Expr& data, const Shape& weights, uint32_t seed) {
    const Expr convolved = MakeCall("nn.conv2d", {data, conformance::RandomConstant(weights, seed, -0.3, 0.3)},
                                    {{"padding", std::vector<int64_t>{1, 1}}});
    return MakeCall("add", {convolved, conformance::RandomConstant({weights[0], 1, 1}, seed + 1)});
  };
  const Expr first = convolve(pooled, {8, 4, 3, 3}, 1);
  const Expr active = MakeCall("multiply", {first, MakeCall("sigmoid", {first})});
  const Expr block = MakeCall("nn.relu", {MakeCall("add", {convolve(active, {8, 8, 3, 3}, 3), active})});
  const Expr flat = MakeCall("nn.batch_flatten", {MakeCall("nn.global_avg_pool2d", {block})});
  const Expr scores = MakeCall("nn.dense", {flat, conformance::RandomConstant({10, 8}, 5, -0.1, 0.1)});
  return IRModule::FromFunction(MakeFunction({x}, MakeCall("nn.softmax", {scores})));
}

TEST_F(CutlassTest, TheSearchMixesProcessorAndGpu) {
  const IRModule module = SmallNetwork();
  CompileOptions options = Options("measured");
  const CompileReport measured = CompileModule(module, "measured", options);
  EXPECT_EQ(FailuresOf(measured), "");
  const Contender* alone = Find(measured, "cutlass");
  ASSERT_NE(alone, nullptr);
  EXPECT_EQ(alone->failure, "");
  EXPECT_EQ(alone->partitions.at("cutlass"), 3)
      << "a convolution with swish, one with a residual and relu, the product";
  ExpectAgrees(module, options);
}

TEST_F(CutlassTest, ConvolutionsOfInputsAreTakenWithoutASearch) {
  const Var x = conformance::Input("x", {1, 3, 8, 8});
  const Expr convolved = MakeCall("nn.conv2d", {x, conformance::RandomConstant({8, 3, 3, 3}, 1)});
  const IRModule module = IRModule::FromFunction(MakeFunction({x}, MakeCall("nn.relu", {convolved})));
  CompileOptions options = Options("taken");
  options.partition_for = "cutlass";
  const CompileReport report = CompileModule(module, "taken", options);
  EXPECT_EQ(FailuresOf(report), "");
  ASSERT_EQ(report.contenders.size(), 1u);
  EXPECT_EQ(report.contenders[0].partitions, (std::map<std::string, int>{{"cutlass", 1}}));
  ExpectAgrees(module, options);
}

TEST_F(CutlassTest, SeveralToolchainsShareTheGpu) {
  const IRModule module = SmallNetwork();
  CompileOptions options = Options("shared");
  options.targets.emplace_back("cuda -compiler=cudnn");
  options.targets.emplace_back("cuda");
  options.estimator = R"(mock={"op_cost": {"native": 10, "cuda": 4, "cudnn": 2, "cutlass": 1}, "copy": 0.5})";
  const CompileReport report = CompileModule(module, "shared", options);
  EXPECT_EQ(FailuresOf(report), "");
  const bool has_all = std::ranges::any_of(report.contenders, [](const Contender& one) {
    return one.failure.empty() && one.partitions.contains("cutlass") && one.partitions.contains("cudnn") &&
           one.partitions.contains("cuda");
  });
  EXPECT_TRUE(has_all);
  ExpectAgrees(module, options);
}

TEST_F(CutlassTest, TilesAreSchedules) {
  const IRModule module = SmallNetwork();
  CompileOptions options = Options("tuned");
  options.toolchains = {"cutlass"};
  options.tuning_trials = 8;
  options.estimator = "measure";
  const CompileReport report = CompileModule(module, "tuned", options);
  EXPECT_EQ(FailuresOf(report), "");
  EXPECT_GT(report.tuning.trials, 0);
  ExpectAgrees(module, options);
}

Function CaseFunction(const std::string& pattern) {
  const std::vector<PatternCase> all = CutlassCases(kFloat32);
  return std::ranges::find(all, pattern, &PatternCase::pattern)->function();
}

TEST_F(CutlassTest, EachScheduleComputesTheSame) {
  const Function function = CaseFunction("conv2d_bias_swish_residual_add_relu");
  const std::vector<BoundaryLayouts> layouts = LayoutsOf(Cutlass(), function);
  ASSERT_EQ(layouts.size(), 2u) << "channels-last, and plain, where images are moved";
  const Result<std::vector<std::string>> schedules = Cutlass().Schedules({function, layouts[0], 1});
  ASSERT_TRUE(schedules.ok()) << schedules.reason().text;
  EXPECT_THAT(*schedules, testing::Contains(testing::StartsWith("scalar:")));
  for (const std::string& schedule : *schedules) {
    conformance::Options options;
    options.schedule = schedule;
    options.layouts = layouts[0];
    conformance::ExpectAgrees(Cutlass(), function, options);
  }
  const auto compiled = Cutlass().RelayToRuntime({function, layouts[0], 1, "tensor:1x1x1"});
  ASSERT_FALSE(compiled.ok());
  EXPECT_THAT(compiled.reason().text, HasSubstr("there is no schedule 'tensor:1x1x1'"));
}

TEST_F(CutlassTest, SmallProductsGetSmallTiles) {
  const auto first = [](int64_t m, int64_t n, const char* architecture) {
    return cutlass::RankSchedules(cutlass::Element::kFloat16, {cutlass::Multiplier::kTensor}, {1, m, n, 1024},
                                  architecture)
        .front()
        .tile;
  };
  EXPECT_EQ(first(64, 64, "sm_80").m, 64);
  EXPECT_GE(first(8192, 8192, "sm_80").m * first(8192, 8192, "sm_80").n, 128 * 128);
  // GPUs for graphics have less shared memory, and none of its tiles is too large for it.
  const auto of_few =
      cutlass::RankSchedules(cutlass::Element::kFloat32, {cutlass::Multiplier::kTf32}, {1, 512, 512, 512}, "sm_86");
  const auto of_many =
      cutlass::RankSchedules(cutlass::Element::kFloat32, {cutlass::Multiplier::kTf32}, {1, 512, 512, 512}, "sm_90");
  EXPECT_LE(of_few.size(), of_many.size());
}

TEST_F(CutlassTest, RefusalsSayWhy) {
  const auto image = [](int64_t channels, DataType dtype = kFloat16) {
    return conformance::Input("x", {1, channels, 40, 40}, dtype);
  };
  const auto convolve = [](const Var& x, const Shape& weights, Attrs attrs = {}) {
    const DataType dtype = AsTensorType(x->type_annotation())->dtype();
    return MakeCall("nn.conv2d", {x, MakeConstant(conformance::RandomTensor(weights, dtype, -1, 1, 1))},
                    std::move(attrs));
  };
  const Var three = image(3), four = image(4), doubles = image(4, DataType::Float(64));
  EXPECT_THAT(RefusalOf(convolve(three, {8, 3, 3, 3}), {three}),
              HasSubstr("wants channels of a multiple of 4 bytes, got 3 of float16"));
  EXPECT_THAT(RefusalOf(convolve(four, {4, 1, 3, 3}, {{"groups", int64_t{4}}}), {four}),
              HasSubstr("convolves in one group only, got 4"));
  EXPECT_THAT(RefusalOf(convolve(four, {4, 4, 33, 1}), {four}), HasSubstr("kernels of up to 32x32, got 33x1"));
  EXPECT_EQ(RefusalOf(convolve(three, {8, 3, 3, 3}), {three}, /*channels_last=*/false), "") << "channels are filled up";
  EXPECT_THAT(RefusalOf(convolve(doubles, {4, 4, 3, 3}), {doubles}), HasSubstr("got float64"));
  const Var a = conformance::Input("a", {8, 16}, kInt8), b = conformance::Input("b", {16, 8}, kInt8);
  EXPECT_THAT(RefusalOf(MakeCall("nn.matmul", {a, b}, {{"out_dtype", kInt32}}), {a, b}, false),
              HasSubstr("multiplies rows of integers by rows only"));
}

TEST_F(CutlassTest, OptionsAreChecked) {
  EXPECT_THROW(With({{"arch", "sm_75"}}), Error);
  EXPECT_THROW(With({{"arch", "gfx90a"}}), Error);
  EXPECT_THROW(With({{"inference_precision", "bf16"}}), Error);
  EXPECT_THROW(With({{"accuracy", "high"}}), Error);
  EXPECT_NO_THROW(With({{"arch", "sm_90a"}}));
  // Without three products for one there is nothing but scalar arithmetic.
  const Function function = CaseFunction("dense_bias");
  const BoundaryLayouts layouts = LayoutsOf(Cutlass(), function)[0];
  const auto schedules = With({{"accuracy", "exact"}})->Schedules({function, layouts, 1});
  ASSERT_TRUE(schedules.ok());
  EXPECT_THAT(*schedules, testing::Each(testing::StartsWith("scalar:")));
}

TEST_F(CutlassTest, CodeForOtherGpusIsRefused) {
  if (std::getenv("COLLAGE_TEST_GPU") != nullptr) GTEST_SKIP() << "on a GPU, its own code is right";
  const Function function = CaseFunction("dense_bias");
  auto compiled = Cutlass().RelayToRuntime({function, LayoutsOf(Cutlass(), function)[0], 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const std::string_view text = cutlass::kEmulatedText;
  const auto bytes = std::as_bytes(std::span(text));
  const auto image = std::ranges::search(compiled->blob, bytes);
  ASSERT_FALSE(image.empty());
  std::ranges::fill(image, std::byte{0x7F});
  const Error error = LoadingError(*compiled);
  EXPECT_EQ(error.category(), ErrorCategory::kUnavailable);
  EXPECT_THAT(error.message(), HasSubstr("made for emulated"));
}

TEST_F(CutlassTest, CorruptKernelsAreRefused) {
  const Function function = CaseFunction("dense_bias");
  const auto compiled = Cutlass().RelayToRuntime({function, LayoutsOf(Cutlass(), function)[0], 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  for (const size_t kept : {size_t{0}, size_t{4}, size_t{40}}) {
    CompiledPartition shortened = *compiled;
    shortened.blob.resize(kept);
    const Error error = LoadingError(shortened);
    EXPECT_EQ(error.category(), ErrorCategory::kCorrupt) << kept << " bytes: " << error.message();
    EXPECT_THAT(error.message(), HasSubstr("a kernel of CUTLASS cannot be read")) << kept << " bytes";
  }
  CompiledPartition without_constants = *compiled;
  without_constants.constants.clear();
  EXPECT_EQ(LoadingError(without_constants).category(), ErrorCategory::kCorrupt);
  CompiledPartition with_smaller = *compiled;
  for (Tensor& constant : with_smaller.constants) constant = Tensor::Zeros({2}, kFloat32);
  EXPECT_EQ(LoadingError(with_smaller).category(), ErrorCategory::kCorrupt);
  const auto kernel = GetKernelLoader(compiled->loader).Load({compiled->blob, compiled->constants, 1});
  const DeviceBuffer memory(Memory::kCuda, 4096);
  const std::vector<void*> outputs{memory.address()};
  EXPECT_THROW(kernel->Bind({}, outputs, nullptr), Error);
  EXPECT_THROW(kernel->Bind(outputs, {}, nullptr), Error);
}

}  // namespace
}  // namespace collage
