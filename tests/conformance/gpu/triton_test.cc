// Models of which Triton computes operators on a GPU: single rows of its table in all types, and models as a whole,
// found by the search, checked, written, and run. On the stand-in for the driver, what Triton made of a kernel before
// it was for a kind of GPU is computed, and each access to memory is checked.
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

#include "backends/triton/kernel.h"
#include "backends/triton/schedules.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/runtime/device.h"
#include "conformance/conformance.h"
#include "conformance/gpu/gpu_test.h"
#include "conformance/gpu/triton_cases.h"

namespace collage {
namespace {

using testing::HasSubstr;

class TritonTest : public GpuTest {
 protected:
  TritonTest() : GpuTest("triton") {}
  CompileOptions Options(const std::string& name) const { return GpuTest::Options(name, "cuda -compiler=triton"); }
  static const Toolchain& Triton() { return *ToolchainRegistry::Global().Find("triton"); }
  /// Why a partition of these calls is not compiled; "" if it is.
  static std::string RefusalOf(const Expr& body, const std::vector<Var>& params) {
    const Function function = MakeFunction(params, body);
    InferType(function);
    const auto compiled = Triton().RelayToRuntime({function, PlainLayouts(params.size(), 1), 1});
    return compiled.ok() ? "" : compiled.reason().text;
  }
  static std::vector<PatternCase> Products(DataType dtype) {
    std::vector<PatternCase> cases = TritonCasesInShort(dtype);
    std::erase_if(cases, [](const PatternCase& one) {
      return one.pattern != "dense" && !one.pattern.ends_with("matmul") && one.pattern != "attention";
    });
    return cases;
  }
};

TEST_F(TritonTest, Float32PatternsAgree) { ExpectCasesAgree(Triton(), TritonCasesInShort(kFloat32)); }
TEST_F(TritonTest, Float16PatternsAgree) { ExpectCasesAgree(Triton(), TritonCasesInShort(kFloat16)); }
// Results are rounded once, and the reference also rounds what is before them.
TEST_F(TritonTest, BFloat16PatternsAgree) { ExpectCasesAgree(Triton(), TritonCasesInShort(kBFloat16), 1.0 / 64); }
TEST_F(TritonTest, IntegersAreExact) { ExpectCasesAgree(Triton(), TritonCases(kInt8), 0); }
TEST_F(TritonTest, FactorsAreRoundedWhereThatIsAllowed) {
  ExpectCasesAgree(*Configured(Triton(), {{"inference_precision", "tf32"}}), Products(kFloat32), 1e-2);
}

TEST_F(TritonTest, EachRowHasACase) {
  std::set<std::string> rows;
  for (const PatternTableEntry& entry : Triton().PatternTable()) rows.insert(entry.name);
  for (const PatternCase& one : TritonCases(kFloat32)) rows.erase("triton." + one.pattern);
  EXPECT_THAT(rows, testing::IsEmpty());
}

/// Two products with relu between them, a normalisation of the sum with what was before, and a classifier with a
/// softmax.
IRModule SmallNetwork() {
  const Var x = conformance::Input("x", {4, 24});
  const auto multiply = [](const Expr& data, int64_t columns, uint32_t seed) {
    const Expr product = MakeCall("nn.dense", {data, conformance::RandomConstant({columns, 24}, seed, -0.3, 0.3)});
    return MakeCall("add", {product, conformance::RandomConstant({columns}, seed + 1)});
  };
  const Expr second = multiply(MakeCall("nn.relu", {multiply(x, 24, 1)}), 24, 3);
  const Expr normal = MakeCall("nn.layer_norm", {MakeCall("add", {second, x}), conformance::RandomConstant({24}, 5),
                                                 conformance::RandomConstant({24}, 6)});
  return IRModule::FromFunction(MakeFunction({x}, MakeCall("nn.softmax", {multiply(normal, 10, 7)})));
}

TEST_F(TritonTest, TheSearchMixesProcessorAndGpu) {
  const IRModule module = SmallNetwork();
  CompileOptions options = Options("measured");
  const CompileReport measured = CompileModule(module, "measured", options);
  EXPECT_EQ(FailuresOf(measured), "");
  const Contender* alone = Find(measured, "triton");
  ASSERT_NE(alone, nullptr);
  EXPECT_EQ(alone->failure, "");
  EXPECT_EQ(alone->partitions, (std::map<std::string, int>{{"triton", 5}}));
  ExpectAgrees(module, options);
}

TEST_F(TritonTest, RowsAreTakenWithoutASearch) {
  const IRModule module = SmallNetwork();
  CompileOptions options = Options("taken");
  options.partition_for = "triton";
  const CompileReport report = CompileModule(module, "taken", options);
  EXPECT_EQ(FailuresOf(report), "");
  ASSERT_EQ(report.contenders.size(), 1u);
  EXPECT_EQ(report.contenders[0].partitions, (std::map<std::string, int>{{"triton", 5}}))
      << "a product with relu, one with a residual, a normalisation, a classifier, a softmax";
  ExpectAgrees(module, options);
}

TEST_F(TritonTest, SeveralToolchainsShareTheGpu) {
  const IRModule module = SmallNetwork();
  CompileOptions options = Options("shared");
  options.targets.emplace_back("cuda -compiler=cutlass");
  options.targets.emplace_back("cuda");
  options.estimator = R"(mock={"op_cost": {"native": 10, "cuda": 2, "cutlass": 1, "triton": 1.5}, "copy": 0.5})";
  const CompileReport report = CompileModule(module, "shared", options);
  EXPECT_EQ(FailuresOf(report), "");
  const bool has_both = std::ranges::any_of(report.contenders, [](const Contender& one) {
    return one.failure.empty() && one.partitions.contains("triton") && one.partitions.contains("cutlass");
  });
  EXPECT_TRUE(has_both);
  ExpectAgrees(module, options);
}

TEST_F(TritonTest, TilesAreSchedules) {
  const Var x = conformance::Input("x", {40, 24});
  const IRModule module = IRModule::FromFunction(
      MakeFunction({x}, MakeCall("nn.dense", {x, conformance::RandomConstant({36, 24}, 1, -0.3, 0.3)})));
  CompileOptions options = Options("tuned");
  options.toolchains = {"triton"};
  options.tuning_trials = 4;
  options.estimator = "measure";
  const CompileReport report = CompileModule(module, "tuned", options);
  EXPECT_EQ(FailuresOf(report), "");
  EXPECT_GT(report.tuning.trials, 0);
  ExpectAgrees(module, options);
}

Function CaseFunction(const std::string& pattern, DataType dtype = kFloat32) {
  const std::vector<PatternCase> all = TritonCases(dtype);
  return std::ranges::find(all, pattern, &PatternCase::pattern)->function();
}

TEST_F(TritonTest, EachScheduleComputesTheSame) {
  for (const char* pattern : {"dense_bias_gelu", "attention", "softmax", "single"}) {
    const Function function = CaseFunction(pattern);
    const BoundaryLayouts layouts = LayoutsOf(Triton(), function)[0];
    const Result<std::vector<std::string>> schedules = Triton().Schedules({function, layouts, 1});
    ASSERT_TRUE(schedules.ok()) << schedules.reason().text;
    EXPECT_FALSE(schedules->empty()) << pattern;
    for (const std::string& schedule : *schedules) {
      SCOPED_TRACE(schedule);
      conformance::Options options;
      options.schedule = schedule;
      options.layouts = layouts;
      conformance::ExpectAgrees(Triton(), function, options);
    }
    const auto compiled = Triton().RelayToRuntime({function, layouts, 1, "1x1x1/w1"});
    ASSERT_FALSE(compiled.ok());
    EXPECT_THAT(compiled.reason().text, HasSubstr("there is no schedule '1x1x1/w1'"));
  }
}

TEST_F(TritonTest, Float32FactorsAreTakenApartUnlessThatIsExcluded) {
  const Function function = CaseFunction("dense_bias");
  const BoundaryLayouts layouts = LayoutsOf(Triton(), function)[0];
  const auto standard = Triton().Schedules({function, layouts, 1});
  ASSERT_TRUE(standard.ok());
  EXPECT_THAT(*standard, testing::Contains(testing::StartsWith("tf32x3:")));
  const auto exact = Configured(Triton(), {{"accuracy", "exact"}})->Schedules({function, layouts, 1});
  ASSERT_TRUE(exact.ok());
  EXPECT_THAT(*exact, testing::Each(testing::Not(testing::HasSubstr("tf32"))));
}

TEST_F(TritonTest, SmallProductsGetSmallTiles) {
  const auto first = [](int64_t m, int64_t n) {
    triton::Description description;
    description.instance.program = triton::Program::kProduct;
    description.instance.factor = kFloat16;
    description.instance.sizes = {.batch = 1, .m = m, .n = n, .k = 1024};
    description.multipliers = {triton::Multiplier::kExact};
    return triton::RankSchedules(description, "sm_80").front();
  };
  EXPECT_LE(first(64, 64).m * first(64, 64).n, 64 * 64);
  EXPECT_EQ(first(8192, 8192).m * first(8192, 8192).n, 128 * 128);
}

TEST_F(TritonTest, RefusalsSayWhy) {
  const Var x = conformance::Input("x", {4, 5, 6}), y = conformance::Input("y", {4, 6, 5});
  EXPECT_THAT(RefusalOf(MakeCall("sum", {x}, {{"axis", std::vector<int64_t>{1}}}), {x}),
              HasSubstr("computes over the last axis only"));
  const Var doubles = conformance::Input("x", {4, 5}, kFloat64);
  EXPECT_THAT(RefusalOf(MakeCall("exp", {doubles}), {doubles}), HasSubstr("makes no float64"));
  const Var whole = conformance::Input("x", {4, 5}, kInt32);
  EXPECT_THAT(RefusalOf(MakeCall("sum", {whole}, {{"axis", std::vector<int64_t>{1}}}), {whole}),
              HasSubstr("reduces floats only"));
  const Expr product = MakeCall("nn.batch_matmul", {x, y}, {{"transpose_b", false}});
  EXPECT_THAT(RefusalOf(MakeCall("nn.softmax", {product}), {x, y}), HasSubstr("computes one product, or attention"));
  EXPECT_THAT(RefusalOf(MakeCall("reshape", {product}, {{"newshape", std::vector<int64_t>{10, 10}}}), {x, y}),
              HasSubstr("computes values of one shape, got (10, 10)"));
  EXPECT_THAT(RefusalOf(MakeCall("transpose", {x}), {x}), HasSubstr("computes no 'transpose'"));
  const Var longer = conformance::Input("x", {1, 20000});
  EXPECT_THAT(RefusalOf(MakeCall("nn.softmax", {longer}), {longer}),
              HasSubstr("rows of up to 16384 elements, got 20000"));
  const Var deep = conformance::Input("q", {1, 8, 300});
  const Expr scores = MakeCall("nn.batch_matmul", {deep, deep}, {{"transpose_b", true}});
  EXPECT_THAT(RefusalOf(MakeCall("nn.batch_matmul", {MakeCall("nn.softmax", {scores}), deep}, {{"transpose_b", false}}),
                        {deep}),
              HasSubstr("attends to up to 256 numbers, got 300 and 300"));
}

TEST_F(TritonTest, MatchesOfNamedRowsAreNoChains) {
  const std::vector<PatternTableEntry> table = Triton().PatternTable();
  const auto chain = std::ranges::find(table, "triton.chain", &PatternTableEntry::name);
  ASSERT_NE(chain, table.end());
  const Result<void> named = chain->predicate(CaseFunction("rms_norm"));
  ASSERT_FALSE(named.ok());
  EXPECT_THAT(named.reason().text, HasSubstr("another row"));
  EXPECT_TRUE(chain->predicate(CaseFunction("chain")).ok());
}

TEST_F(TritonTest, OptionsAreChecked) {
  EXPECT_THROW(Configured(Triton(), {{"arch", "sm_75"}}), Error);
  EXPECT_THROW(Configured(Triton(), {{"arch", "gfx90a"}}), Error);
  EXPECT_THROW(Configured(Triton(), {{"inference_precision", "bf16"}}), Error);
  EXPECT_THROW(Configured(Triton(), {{"accuracy", "high"}}), Error);
  EXPECT_NO_THROW(Configured(Triton(), {{"arch", "sm_90"}}));
}

TEST_F(TritonTest, ConstantsMayChangeUnlessTheyAreInTheText) {
  const auto function = [](uint32_t seed, double factor) {
    const Var x = conformance::Input("x", {3, 8});
    const Expr scaled = MakeCall("multiply", {x, MakeScalar(factor, kFloat32)});
    const Function made = MakeFunction({x}, MakeCall("add", {scaled, conformance::RandomConstant({8}, seed)}));
    InferType(made);
    return made;
  };
  const BoundaryLayouts layouts = In(Memory::kCuda, PlainLayouts(1, 1));
  const auto compiled = Triton().RelayToRuntime({function(1, 2), layouts, 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const auto constants = Triton().UpdateConstants({function(2, 2), layouts, 1}, *compiled);
  ASSERT_TRUE(constants.ok()) << constants.reason().text;
  ASSERT_EQ(constants->size(), 1u);
  EXPECT_FALSE(BitEqual(constants->at(0), compiled->constants.at(0)));
  EXPECT_FALSE(Triton().UpdateConstants({function(1, 3), layouts, 1}, *compiled).ok());
}

TEST_F(TritonTest, CodeForOtherGpusIsRefused) {
  if (std::getenv("COLLAGE_TEST_GPU") != nullptr) GTEST_SKIP() << "on a GPU, its own code is right";
  const Function function = CaseFunction("dense_bias");
  auto compiled = Triton().RelayToRuntime({function, LayoutsOf(Triton(), function)[0], 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const auto bytes = std::as_bytes(std::span(std::string_view(triton::kEmulatedText)));
  const auto image = std::ranges::search(compiled->blob, bytes);
  ASSERT_FALSE(image.empty());
  std::ranges::fill(image, std::byte{0x7F});
  const Error error = LoadingError(*compiled);
  EXPECT_EQ(error.category(), ErrorCategory::kUnavailable);
  EXPECT_THAT(error.message(), HasSubstr("made for emulated"));
}

TEST_F(TritonTest, CorruptKernelsAreRefused) {
  const Function function = CaseFunction("dense_bias");
  const auto compiled = Triton().RelayToRuntime({function, LayoutsOf(Triton(), function)[0], 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  for (const size_t kept : {size_t{0}, size_t{4}, size_t{40}, compiled->blob.size() - 1}) {
    CompiledPartition shortened = *compiled;
    shortened.blob.resize(kept);
    const Error error = LoadingError(shortened);
    EXPECT_EQ(error.category(), ErrorCategory::kCorrupt) << kept << " bytes: " << error.message();
    EXPECT_THAT(error.message(), HasSubstr("a kernel of Triton cannot be read")) << kept << " bytes";
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
