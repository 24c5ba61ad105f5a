// Plans that cuDNN itself makes, for GPUs that are not here: each row of the pattern table has one, and what the
// stand-in for the library takes for granted holds.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda_driver/toolkit.h"
#include "backends/cudnn/architectures.h"
#include "backends/cudnn/describe.h"
#include "backends/cudnn/plan.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "conformance/conformance.h"
#include "conformance/gpu/cudnn_cases.h"
#include "driver/builtins.h"
#include "support/dynamic_library.h"

namespace collage {
namespace {

using testing::HasSubstr;

class CudnnPlansTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      cuda_driver::FindSymbol("libcudnn.so.9", "cudnnGetVersion");
    } catch (const Error& error) {
      GTEST_SKIP() << error.message();
    }
    AddBuiltins();
  }

  static std::unique_ptr<const Toolchain> For(const std::string& architecture, const std::string& precision = "f32") {
    const Toolchain& cudnn = *ToolchainRegistry::Global().Find("cudnn");
    Attrs options;
    for (const AttrField& option : cudnn.Options()) options.Set(option.name, option.default_value);
    options.Set("arch", architecture);
    options.Set("inference_precision", precision);
    return cudnn.WithOptions(options);
  }

  static Result<cudnn::Plan> PlanOf(const cudnn::Graph& graph, const std::string& architecture) {
    Result<cudnn::Plan> plan = Reason{"nothing was asked", "test"};
    reinterpret_cast<cudnn::MakePlanFn*>(FindModuleSymbol("libcollage_rt_cudnn.so", "collage_cudnn_plan"))(
        {graph, cudnn::DeviceProperties(architecture)}, plan);
    return plan;
  }
};

/// Whether the quick test makes plans of the row: one or two of each anchor.
bool IsQuick(const std::string& pattern) {
  constexpr const char* kQuick[] = {
      "conv2d_bias_relu", "conv2d_bias_sum_relu", "conv2d_gelu",          "conv1d_bias",  "conv3d_bias_relu",
      "deconv2d",         "dense_bias_gelu",      "matmul_bias_relu",     "batch_matmul", "attention",
      "max_pool2d",       "layer_norm",           "attention_scale_mask", "instance_norm"};
  return std::ranges::find(kQuick, pattern) != std::end(kQuick);
}

/// For GPUs of an architecture, in a type.
class CudnnPlansForTest : public CudnnPlansTest,
                          public testing::WithParamInterface<std::pair<const char*, DataType>> {};

TEST_P(CudnnPlansForTest, RowsHavePlans) {
  const auto& [architecture, dtype] = GetParam();
  const bool is_full = std::getenv("COLLAGE_TEST_PLANS") != nullptr;
  const std::unique_ptr<const Toolchain> toolchain = For(architecture);
  for (const PatternCase& one : CudnnCases(dtype)) {
    if (!is_full && !IsQuick(one.pattern)) continue;
    const Function function = one.function();
    for (const BoundaryLayouts& layouts : LayoutsOf(*toolchain, function)) {
      const auto compiled = toolchain->RelayToRuntime({function, layouts, 1});
      const std::string why = compiled.ok() ? "" : compiled.reason().text;
      EXPECT_TRUE(compiled.ok()) << fmt::format("{}, {}: {}", one.pattern, ToString(layouts.outputs[0]), why);
      if (!compiled.ok()) continue;
      const cudnn::Plan plan = cudnn::PlanFrom(compiled->blob);
      EXPECT_EQ(plan.architecture, architecture);
      EXPECT_FALSE(plan.text.empty());
    }
  }
}

std::vector<std::pair<const char*, DataType>> Parameters() {
  std::vector<std::pair<const char*, DataType>> all;
  for (const char* architecture : {"sm_80", "sm_89", "sm_90", "sm_100"}) {
    for (const DataType dtype : {kFloat32, kFloat16, kBFloat16}) all.emplace_back(architecture, dtype);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, CudnnPlansForTest, testing::ValuesIn(Parameters()), [](const auto& info) {
  return fmt::format("{}_{}", info.param.first, info.param.second.ToString());
});

Function Typed(const std::vector<Var>& params, const Expr& body) {
  Function function = MakeFunction(params, body);
  InferType(function);
  return function;
}

// Assumptions of the stand-in.

TEST_F(CudnnPlansTest, Float32MatricesOfTwoInputsAreMultipliedAsTf32Only) {
  const std::vector<Var> params{conformance::Input("a", {2, 32, 64}), conformance::Input("b", {2, 32, 64})};
  const Function function = Typed(params, MakeCall("nn.batch_matmul", {params[0], params[1]}, {{"transpose_b", true}}));
  const BoundaryLayouts layouts = In(Memory::kCuda, PlainLayouts(2, 1));
  cudnn::Precision precision{.allows_tf32 = true};
  const auto described = cudnn::Describe(function, In(Memory::kHost, layouts), precision);
  ASSERT_TRUE(described.ok()) << described.reason().text;
  for (const char* architecture : {"sm_80", "sm_89", "sm_90", "sm_100"}) {
    EXPECT_TRUE(For(architecture, "tf32")->RelayToRuntime({function, layouts, 1}).ok()) << architecture;
    cudnn::Graph graph = described->graph;
    graph.may_round_factors = false;
    const Result<cudnn::Plan> plan = PlanOf(graph, architecture);
    ASSERT_FALSE(plan.ok()) << architecture;
    EXPECT_THAT(plan.reason().text, HasSubstr("all round more than is allowed")) << architecture;
  }
}

TEST_F(CudnnPlansTest, PlainImagesHaveNoEnginesForGelu) {
  const std::vector<PatternCase> all = CudnnCases(kFloat32);
  const Function function = std::ranges::find(all, "conv2d_bias_gelu", &PatternCase::pattern)->function();
  const auto described = cudnn::Describe(function, PlainLayouts(1, 1), {});
  ASSERT_TRUE(described.ok()) << described.reason().text;
  const Result<cudnn::Plan> plan = PlanOf(described->graph, "sm_90");
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.reason().text, HasSubstr("no engine of the library computes this"));
}

TEST_F(CudnnPlansTest, EnginesAreSchedules) {
  const std::vector<PatternCase> all = CudnnCases(kFloat16);
  const Function function = std::ranges::find(all, "conv2d_bias_relu", &PatternCase::pattern)->function();
  const std::unique_ptr<const Toolchain> toolchain = For("sm_90");
  const BoundaryLayouts layouts = In(Memory::kCuda, PlainLayouts(1, 1));
  const auto schedules = toolchain->Schedules({function, layouts, 1});
  ASSERT_TRUE(schedules.ok()) << schedules.reason().text;
  EXPECT_GT(schedules->size(), 1u);
  std::set<std::string> texts;
  for (const std::string& schedule : *schedules) {
    const auto compiled = toolchain->RelayToRuntime({function, layouts, 1, schedule});
    if (compiled.ok()) texts.insert(cudnn::PlanFrom(compiled->blob).text);
  }
  EXPECT_GT(texts.size(), 1u);
}

}  // namespace
}  // namespace collage
