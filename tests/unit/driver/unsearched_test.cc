// Programs of which nothing is searched, and required toolchains: nothing that is asked for is ignored in silence.
#include "driver/unsearched.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/vm/vm.h"
#include "runtime/random_inputs.h"
#include "support/file.h"
#include "unit/driver/listener.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

const std::string kOpen = "def @main(%x: Tensor[(?, 3), float32]) { nn.softmax(nn.relu(%x), axis=1) }";
const std::string kWithUnique =
    "def @main(%x: Tensor[(?), float32]) { %0 = unique(nn.relu(%x), sorted=1, return_counts=0); %0.0 }";
const std::string kStatic = "def @main(%x: Tensor[(4, 3), float32]) { nn.relu(%x) }";

class UnsearchedTest : public testing::Test {
 protected:
  UnsearchedTest() { ProbeToolchains(); }

  CompileOptions Options() {
    CompileOptions options;
    options.output = folder_ / "model.clg";
    options.database = (folder_ / "tuning.db").string();
    options.num_threads = 1;
    options.progress = &listener_;
    return options;
  }

  static IRModule Module(const std::string& text) { return ParseModule(text, "m.relay"); }

  TemporaryFolder folder_;
  Listener listener_;
};

TEST_F(UnsearchedTest, DefaultsAskForNoSearch) { EXPECT_TRUE(FlagsOfASearch(CompileOptions()).empty()); }

TEST_F(UnsearchedTest, EveryOptionThatOnlyASearchFollowsIsNamed) {
  CompileOptions options;
  options.partition_for = "dnnl";
  options.toolchains = {"dnnl"};
  options.targets = {"llvm -compiler=dnnl"};
  options.partitioning = "p.json";
  options.write_partitioning = "w.json";
  options.partition_rules = {{"dnnl", "{}"}};
  options.max_measurements = 1;
  options.tuning_trials = 1;
  options.search = "dp";
  options.evolution_seconds = 1;
  options.evolution_population = 2;
  options.evolution_seed = 3;
  options.estimator = "analytic";
  options.precision = "any";
  options.max_error = 0.5;
  options.num_covers = 3;
  options.max_optimality_covers = 0;
  options.percentile = 90;
  options.operands = "near";
  options.runner = "ray";
  const std::vector<std::string> flags = FlagsOfASearch(options);
  EXPECT_EQ(flags.size(), 20u);
  try {
    RefuseFlagsOfASearch(options, {{"image", {"?", "3", "height"}}, {"mask", {"batch"}}}, "m.onnx",
                         BindingHint({{"image", {"?", "3", "height"}}, {"mask", {"batch"}}}));
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kUnsupported);
    EXPECT_EQ(error.where(), "m.onnx");
    for (const std::string& flag : flags) EXPECT_NE(error.message().find(flag), std::string::npos) << flag;
    EXPECT_NE(error.message().find("inputs 'image' [?, 3, height], 'mask' [batch] leave them open"), std::string::npos)
        << error.message();
    EXPECT_EQ(error.hint(),
              "bind the sizes: --shape image=<size>x3x<height> --shape mask=<batch>, or name some of them: --tune-at "
              "image[0]=<sizes> --tune-at height=<sizes> --tune-at batch=<sizes>");
  }
}

TEST_F(UnsearchedTest, ListsWithTheNativeToolchainAreFollowed) {
  CompileOptions options;
  options.toolchains = {"dnnl", "native"};
  options.targets = {"llvm -compiler=dnnl", "llvm -accuracy=exact"};
  options.partition_for = "native";
  options.accuracy = "exact";
  EXPECT_TRUE(FlagsOfASearch(options).empty());
}

TEST_F(UnsearchedTest, ToolchainsThatCompeteAtAnySizeAreFollowed) {
  CompileOptions options;
  options.toolchains = {"openvino"};
  options.partition_for = "openvino";
  options.budget_seconds = 5;  // a limit, which holds in any case
  EXPECT_EQ(FlagsOfASearch(options), (std::vector<std::string>{"--toolchains", "--partition-for"}));
  EXPECT_TRUE(FlagsOfASearch(options, {"openvino"}).empty());
  EXPECT_TRUE(FlagsOfASearch(options, {"openvino -inference_precision=bf16"}).empty());
  options.search = "evolutionary";
  EXPECT_EQ(FlagsOfASearch(options, {"openvino"}), (std::vector<std::string>{"--search"}));
}

TEST_F(UnsearchedTest, AModelOfOpenSizesRefusesWhatItCannotFollowAndWritesNothing) {
  CompileOptions options = Options();
  options.toolchains = {"native"};
  options.budget_seconds = 5;
  options.tuning_seconds = 1;
  ExpectError([&] { CompileModule(Module(kOpen), "m", options); }, ErrorCategory::kUnsupported,
              "--tuning-budget cannot be followed: no part of the model has known sizes, input 'x' [?, 3] leaves them");
  options = Options();
  options.require = {"dnnl"};
  ExpectError([&] { CompileModule(Module(kOpen), "m", options); }, ErrorCategory::kUnavailable,
              "toolchain 'dnnl' is required, and none of its kernels runs a part of the model");
  EXPECT_FALSE(std::filesystem::exists(options.output));
  options.require = {"native"};
  CompileModule(Module(kOpen), "m", options);
  EXPECT_TRUE(std::filesystem::exists(options.output));
}

TEST_F(UnsearchedTest, AModelOfOpenSizesSaysThatNothingWasSearched) {
  CompileOptions options = Options();
  options.toolchains = {"native"};
  const CompileReport report = CompileModule(Module(kOpen), "m", options);
  EXPECT_TRUE(report.evaluated.empty());
  ASSERT_EQ(listener_.warnings.size(), 1u);
  EXPECT_EQ(
      listener_.warnings[0],
      "nothing was searched: the sizes of input 'x' [?, 3] are open, so only Collage's own any-size kernels take "
      "part\n  for a search of all toolchains, give the sizes in the types of @main's parameters, or name some of "
      "them: --tune-at x[0]=<sizes>");
}

TEST_F(UnsearchedTest, SizesThatAreNamedHavePlansThatWereSearched) {
  CompileOptions options = Options();
  options.tune_at = {{"x[0]", {64, 128}}};
  options.partition_for = "native";
  const CompileReport report = CompileModule(Module(kOpen), "m", options);
  EXPECT_TRUE(listener_.warnings.empty());
  EXPECT_EQ(report.searched_sizes, (std::vector<std::string>{"x[0]=64", "x[0]=128"}));
  ASSERT_EQ(report.regions.size(), 2u);
  EXPECT_EQ(report.regions[0].model, "m, x[0]=64, region 0");
  EXPECT_EQ(report.regions[1].model, "m, x[0]=128, region 1");
  const auto has = [&](const std::string& sizes) {
    return std::ranges::find(report.verified_sizes, sizes) != report.verified_sizes.end();
  };
  EXPECT_TRUE(has("x=64x3") && has("x=128x3") && has("x=2x3")) << report.verified_sizes.size();
  vm::Machine machine(vm::Executable::Load(options.output));
  for (const int64_t rows : {1, 64, 100, 128}) {
    const Tensor input = Tensor::Empty({rows, 3}, kFloat32);
    for (int64_t i = 0; i < input.num_elements(); ++i) input.Set(i, i % 3 == 0 ? 1 : -1);
    const Tensor result = machine.Invoke("main", {Value(input)}).tensor();
    EXPECT_EQ(result.shape(), input.shape());
    for (int64_t i = 0; i < result.num_elements(); ++i) {
      const double e = std::exp(1.0);
      EXPECT_NEAR(result.At(i), (i % 3 == 0 ? e : 1) / (e + 2), 1e-6) << rows << " rows, element " << i;
    }
  }
}

TEST_F(UnsearchedTest, PlansShareWeights) {
  const Tensor weights = Tensor::Empty({512, 512}, kFloat32);
  FillRandom(weights, 1);
  const Var x = MakeVar("x", TensorType(std::vector<Dim>{Dim::Any(), Dim(512)}, kFloat32));
  const Expr product = MakeCall("nn.dense", {x, MakeConstant(weights)});
  const IRModule module = InferTypes(IRModule::FromFunction(MakeFunction({x}, product)));
  const auto bytes_with = [&](const Shape& sizes) {
    CompileOptions options = Options();
    options.tune_at = {{"x[0]", sizes}};
    options.partition_for = "native";
    options.budget_seconds = 0;  // the same schedules always
    return CompileModule(module, "m", options).output_bytes;
  };
  const int64_t one = bytes_with({64});
  EXPECT_LT(bytes_with({64, 96, 128}) - one, static_cast<int64_t>(weights.size_bytes()) / 4);
}

TEST_F(UnsearchedTest, APlanWritesToTheBufferThatItIsGiven) {
  CompileOptions options = Options();
  options.tune_at = {{"kept[2]", {64}}};
  options.partition_for = "native";
  CompileModule(Module(R"(
    def @main(%kept: Tensor[(1, 2, ?, 8), float32], %at: Tensor[(1, 2, 1, 8), int64], %new: Tensor[(1, 2, 1, 8), float32]) {
      scatter_elements(%kept, %at, %new, axis=2)
    })"),
                "m", options);
  vm::Machine machine(vm::Executable::Load(options.output));
  const Tensor kept = Tensor::Zeros({1, 2, 64, 8}, kFloat32), at = Tensor::Zeros({1, 2, 1, 8}, kInt64),
               fresh = Tensor::Zeros({1, 2, 1, 8}, kFloat32);
  for (int token = 0; token < 5; ++token) {
    for (int64_t i = 0; i < at.num_elements(); ++i) {
      at.Set(i, token);
      fresh.Set(i, 100 * token + static_cast<double>(i));
    }
    const std::vector<Tensor> destinations{token < 3 ? kept : Tensor()};
    const Tensor result = machine.Invoke("main", {kept, at, fresh}, {.destinations = destinations}).tensor();
    EXPECT_EQ(result.raw() == kept.raw(), token == 1 || token == 2) << "the first run is not planned";
    for (int64_t i = 0; i < at.num_elements(); ++i) {
      EXPECT_EQ(result.At(i / 8 * 512 + token * 8 + i % 8), fresh.At(i)) << token << ", " << i;
    }
    EXPECT_EQ(result.At(512 + 8), token >= 1 ? 108 : 0) << "what the second token wrote";
  }
}

TEST_F(UnsearchedTest, NamedSizesMustBeThoseOfDynamicDimensions) {
  const auto refuse = [&](const std::string& model, const std::map<std::string, Shape>& sizes,
                          const std::string& text) {
    CompileOptions options = Options();
    options.tune_at = sizes;
    ExpectError([&] { CompileModule(Module(model), "m", options); }, ErrorCategory::kInput, text);
    EXPECT_FALSE(std::filesystem::exists(options.output));
  };
  refuse(kOpen, {{"batch", {1}}}, "--tune-at: error: the model has no dynamic dimension 'batch'");
  refuse(kOpen, {{"x[1]", {1}}}, "the model has no dynamic dimension 'x[1]'");
  refuse(kOpen, {{"x[0]", {}}}, "dimension 'x[0]' is named without a size");
  refuse(kStatic, {{"x[0]", {4}}}, "the model has no dynamic dimension 'x[0]'");
  refuse("def @main(%x: Tensor[(?, 3), float32], %w: Tensor[(5, 3), float32]) { nn.dense(%x, %w) }", {{"x[0]", {0}}},
         "dimension 'x[0]' cannot have size 0");
}

TEST_F(UnsearchedTest, OperatorsWithoutAKernelAreReportedWithTheReason) {
  const CompileReport report = CompileModule(Module(kWithUnique), "m", Options());
  ASSERT_EQ(report.evaluated.size(), 1u);
  EXPECT_EQ(report.evaluated[0].op, "unique");
  EXPECT_EQ(report.evaluated[0].count, 1);
  EXPECT_FALSE(report.evaluated[0].reason.empty());
  ASSERT_EQ(listener_.warnings.size(), 1u);
  EXPECT_NE(listener_.warnings[0].find("1 operator runs by reference evaluation, slowly: 'unique' ("),
            std::string::npos)
      << listener_.warnings[0];
}

TEST_F(UnsearchedTest, ConfiguredNativeKernelsTakeAnySize) {
  const auto check = [&](const CompileOptions& options, const std::string& how) {
    EXPECT_TRUE(CompileModule(Module(kOpen), "m", options).evaluated.empty()) << how;
    EXPECT_NE(vm::Executable::Load(options.output).Disassemble().find("dynamic_kernel"), std::string::npos) << how;
  };
  CompileOptions options = Options();
  options.accuracy = "exact";
  check(options, "--accuracy exact");
  for (const char* target : {"llvm -accuracy=exact", "llvm -mcpu=x86-64-v3", "llvm -winograd_tile=4"}) {
    options = Options();
    options.targets = {target};
    check(options, target);
  }
}

/// Declines every kernel once it is to be compiled.
class Declining : public Toolchain {
 public:
  std::string name() const override { return "declining"; }
  std::string description() const override { return "for tests"; }
  Availability Probe() const override { return {true, "1", "", ""}; }
  int priority() const override { return 1; }
  Result<void> SupportsDynamicShapes(const CallNode&) const override { return {}; }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest&) const override {
    return Reason{"no registers left", "declining"};
  }
};

TEST_F(UnsearchedTest, TheReasonOfAKernelThatIsDeclinedIsKept) {
  const Declining declining;
  const IRModule module = Module(
      "def @main(%x: Tensor[(?, 3), float32]) {\n"
      "  %0 = fn (%y: Tensor[(?, 3), float32], Primitive=1) { tanh(nn.relu(%y)) };\n  %0(%x)\n}");
  std::vector<EvaluatedOperator> evaluated;
  vm::CompileOptions options;
  options.for_dynamic_shapes = &declining;
  options.on_declined = [&](const Function& function, const std::string& reason) {
    AddEvaluated(function, reason, evaluated);
  };
  vm::Compile(module, options);
  ASSERT_EQ(evaluated.size(), 2u);
  EXPECT_EQ(evaluated[0].op, "nn.relu");
  EXPECT_EQ(evaluated[1].op, "tanh");
  EXPECT_EQ(evaluated[1].reason, "no registers left");
  EXPECT_EQ(EvaluatedText(evaluated),
            "2 operators run by reference evaluation, slowly: 'nn.relu' (no registers left), 'tanh' (no registers "
            "left)");
}

TEST_F(UnsearchedTest, OptionsAreCheckedBeforeAnyWork) {
  const auto refuse = [&](const CompileOptions& options, ErrorCategory category, const std::string& text) {
    ExpectError([&] { CompileModule(Module(kStatic), "m", options); }, category, text);
  };
  CompileOptions options = Options();
  options.output = folder_ / "none" / "m.clg";
  refuse(options, ErrorCategory::kResource, "cannot create: No such file or directory");
  options.output = folder_.path();
  refuse(options, ErrorCategory::kResource, "cannot write: it is a folder");
  options = Options();
  options.write_partitioning = folder_ / "none" / "p.json";
  refuse(options, ErrorCategory::kResource, "cannot create");
  options.write_partitioning = options.output;
  refuse(options, ErrorCategory::kInput, "go to the same file");
  for (const double error : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    options = Options();
    options.max_error = error;
    refuse(options, ErrorCategory::kInput, "--max-error: error: expected a value from 0 to 1");
  }
  options = Options();
  options.budget_seconds = -1;
  refuse(options, ErrorCategory::kInput, "--budget: error: a duration is not below 0 seconds, got -1");
  options = Options();
  options.partition_for = "native";
  options.partitioning = folder_ / "p.json";
  refuse(options, ErrorCategory::kInput, "--partitioning: error: there is no file");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 0) << "nothing is left";
  AtomicFile(options.partitioning).Commit();
  refuse(options, ErrorCategory::kInput, "beside a toolchain that is to be alone");
}

TEST_F(UnsearchedTest, ABudgetOfNothingMeasuresNothing) {
  CompileOptions options = Options();
  options.budget_seconds = 0;
  options.toolchains = {"native"};
  const CompileReport report = CompileModule(Module(kStatic), "m", options);
  EXPECT_EQ(report.num_measured, 0);
  EXPECT_TRUE(report.budget_spent);
  EXPECT_TRUE(std::filesystem::exists(options.output));
}

TEST_F(UnsearchedTest, ARequiredToolchainMustRunAPart) {
  const auto contender = [](const std::string& name, std::map<std::string, int> partitions, std::string failure = "") {
    Contender one{.name = name};
    one.partitions = std::move(partitions);
    one.failure = std::move(failure);
    return one;
  };
  CompileOptions options;
  options.require = {"acme"};
  CompileReport report;
  report.contenders = {contender("native", {{"native", 3}}), contender("acme", {{"acme -level=3", 2}, {"native", 1}})};
  CheckRequired(options, report, "m");
  report.contenders[1].failure = "crashed with signal 11";
  ExpectError([&] { CheckRequired(options, report, "m"); }, ErrorCategory::kUnavailable, "crashed with signal 11");
  report.contenders = {contender("native", {{"native", 3}}), contender("acme", {{"native", 3}})};
  report.failures["acme: wrong result 0"] = {2, "cumsum: wrong result 0, got 1, wanted 2"};
  report.failures["acmes: other"] = {1, "other"};
  ExpectError([&] { CheckRequired(options, report, "m"); }, ErrorCategory::kUnavailable,
              "'acme' is required, and none of its kernels runs a part of the model: acme: wrong result 0 (2 times), "
              "first: cumsum: wrong result 0, got 1, wanted 2");
  CompileReport program;
  program.regions.resize(2);
  program.regions[0] = report;
  program.regions[1].contenders = {contender("collage", {{"acme", 1}})};
  CheckRequired(options, program, "m");
}

}  // namespace
}  // namespace collage
