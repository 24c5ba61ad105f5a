// dnnl_calls_test.cc: native kernels that call oneDNN in place of Composite functions: `-libs=dnnl`, by the candidates
// that the native toolchain's own rule finds.
#include <gmock/gmock.h>

#include <cstring>
#include <memory>
#include <random>

#include "collage/ir/infer_type.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"
#include "partition/extract.h"
#include "partition/partition_rule.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point
using testing::HasSubstr;
using V = std::vector<int64_t>;

class NativeDnnlCallsTest : public testing::Test {
 protected:
  void SetUp() override {
    const Availability here = BuiltinToolchain("dnnl").Probe();
    if (!here.available) GTEST_SKIP() << "dnnl is not here: " << here.reason << "; " << here.hint;
    native_ = ToolchainConfiguration::Parse("native -libs=dnnl", ToolchainRegistry::Global()).Make();
  }

  /// The candidate that holds all operators of `function` and calls oneDNN for those in `label`.
  Function Labelled(const Function& function, const std::string& label) {
    InferType(function);
    const DataflowGraph graph(function);
    RuleLog log;
    size_t num_operators = 0;
    for (int i = 0; i < static_cast<int>(graph.size()); ++i) num_operators += graph.OpAt(i) != nullptr ? 1 : 0;
    std::string labels;
    for (const CandidatePartition& one : GatherPartitionRule(*native_)->AllCandidates(graph, *native_, log)) {
      for (const NestedSubGraph& nested : one.sub_graph.nested) {
        const auto is_operator = [&](int index) { return graph.OpAt(index) != nullptr; };
        labels += one.sub_graph.OperatorLabel(graph) + " of " + nested.attrs.String("Composite") + "\n";
        const bool is_whole =
            std::ranges::count_if(one.sub_graph.members(), is_operator) == static_cast<std::ptrdiff_t>(num_operators);
        if (is_whole && nested.attrs.String("Composite") == label) return Extract(graph, one.sub_graph).function;
      }
    }
    ADD_FAILURE() << "no candidate with a Composite " << label << " among\n" << labels;
    return function;
  }

  std::string LoopsOf(const Function& function, BoundaryLayouts layouts = {}, int num_threads = 1) {
    InferType(function);
    if (layouts == BoundaryLayouts{}) layouts = PlainLayouts(function->params().size(), 1);
    const Result<LoweredPartition> lowered = native_->RelayToTIR({function, layouts, num_threads});
    return lowered.ok() ? lowered->mlir : lowered.reason().text;
  }

  void ExpectCalled(const Function& function, const std::string& label, Options options = {}) {
    SCOPED_TRACE(label);
    const Function labelled = Labelled(function, label);
    EXPECT_THAT(LoopsOf(labelled, options.layouts, options.num_threads), HasSubstr("dnnl|execute "));
    ExpectAgrees(*native_, labelled, options);
  }

  std::unique_ptr<const Toolchain> native_;
};

TEST_F(NativeDnnlCallsTest, ProductsAgree) {
  std::mt19937 random(11);
  const auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int round = 0; round < 3; ++round) {
    const int64_t m = draw(1, 70), k = draw(1, 90), n = draw(2, 90);
    SCOPED_TRACE(testing::Message() << m << " x " << k << " x " << n);
    const Options options{.num_threads = static_cast<int>(draw(1, 2))};
    const Var x = Input("x", {m, k}), y = Input("y", {k, n}), mask = Input("mask", {m, n});
    const Expr dense = MakeCall("nn.dense", {x, RandomConstant({n, k}, 4, -0.3, 0.3)});
    const Expr biased = Plus(dense, RandomConstant({n}, 5));
    ExpectCalled(MakeFunction({x}, dense), "dnnl.dense", options);
    ExpectCalled(MakeFunction({x}, MakeCall("nn.relu", {biased})), "dnnl.dense_bias_relu", options);
    // Loops behind the call, of what oneDNN has no post-op for.
    ExpectCalled(MakeFunction({x, mask}, MakeCall("sin", {Mul(MakeCall("ceil", {biased}), mask)})), "dnnl.dense_bias",
                 options);
    ExpectCalled(MakeFunction({x, y}, MakeCall("floor", {MakeCall("nn.matmul", {x, y})})), "dnnl.matmul", options);
    const Var a = Input("a", {3, m, k}), b = Input("b", {3, n, k});
    ExpectCalled(MakeFunction({a, b}, MakeCall("atan", {MakeCall("nn.batch_matmul", {a, b}, {{"transpose_b", true}})})),
                 "dnnl.batch_matmul", options);
  }
}

TEST_F(NativeDnnlCallsTest, ConvolutionsAgreeInEveryLayout) {
  const Layout last = Layout::kChannelsLast;
  const Var x = Input("x", {2, 16, 9, 7}), scale = Input("scale", {1, 32, 1, 1});
  const Expr conv = MakeCall("nn.conv2d", {x, RandomConstant({32, 16, 3, 3}, 3, -0.2, 0.2)}, {{"padding", V{1, 1}}});
  const Expr layer = MakeCall("nn.relu", {Plus(conv, RandomConstant({32, 1, 1}, 6))});
  const Function function = MakeFunction({x, scale}, MakeCall("ceil", {Mul(MakeCall("floor", {layer}), scale)}));
  for (const Layout in : {Layout::kPlain, last}) {
    for (const Layout out : {Layout::kPlain, last}) {
      ExpectCalled(function, "dnnl.conv2d_bias_relu", {.layouts = {{in, Layout::kPlain}, {out}}});
    }
  }
}

TEST_F(NativeDnnlCallsTest, OtherPrimitivesAgree) {
  const Var x = Input("x", {13, 33});
  ExpectCalled(MakeFunction({x}, MakeCall("nn.softmax", {x})), "dnnl.softmax");
}

/// Each library does its part in one kernel: tiles of what has no label, and Composites.
TEST_F(NativeDnnlCallsTest, MicroKernelsComputeWhatHasNoLabel) {
  if (!BuiltinToolchain("xsmm").Probe().available) GTEST_SKIP() << BuiltinToolchain("xsmm").Probe().reason;
  const Var x = Input("x", {30, 24});
  const Expr called = MakeCall("nn.dense", {x, RandomConstant({24, 24}, 1, -0.3, 0.3)});
  const Function composite = Labelled(MakeFunction({x}, called), "dnnl.dense");
  const Expr layers =
      MakeCall("nn.dense", {MakeCall("tanh", {composite->body()}), RandomConstant({32, 24}, 2, -0.3, 0.3)});
  native_ = ToolchainConfiguration::Parse("native -libs=xsmm,dnnl", ToolchainRegistry::Global()).Make();
  const Function function = MakeFunction(composite->params(), layers);
  EXPECT_THAT(LoopsOf(function), testing::AllOf(HasSubstr("dnnl|execute "), HasSubstr("xsmm|product float32 ")));
  ExpectAgrees(*native_, function);
}

/// Equal layers share code and the plan; each has its own weights, packed.
TEST_F(NativeDnnlCallsTest, WeightsArePackedWhenTheKernelIsCompiled) {
  const auto request = [&](uint32_t seed) {
    const Var x = Input("x", {19, 48});
    const Expr dense = MakeCall("nn.dense", {x, RandomConstant({64, 48}, seed, -0.3, 0.3)});
    const Function labelled = Labelled(MakeFunction({x}, MakeCall("sin", {MakeCall("ceil", {dense})})), "dnnl.dense");
    InferType(labelled);
    return PartitionRequest{labelled, PlainLayouts(1, 1), 1};
  };
  const Result<CompiledPartition> compiled = native_->RelayToRuntime(request(1));
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const Result<std::vector<Tensor>> updated = native_->UpdateConstants(request(2), *compiled);
  ASSERT_TRUE(updated.ok()) << updated.reason().text;
  const Result<CompiledPartition> second = native_->RelayToRuntime(request(2));
  ASSERT_EQ(second->blob, compiled->blob);
  ASSERT_EQ(updated->size(), second->constants.size());
  const Tensor& packed = second->constants.at(0);
  EXPECT_EQ(std::memcmp(updated->at(0).raw(), packed.raw(), packed.size_bytes()), 0);
}

TEST_F(NativeDnnlCallsTest, ThreadsMayCallAtOnce) {
  const Var x = Input("x", {40, 41});
  const Expr dense = MakeCall("nn.dense", {x, RandomConstant({75, 41}, 1, -0.3, 0.3)});
  const Function function = Labelled(MakeFunction({x}, MakeCall("ceil", {MakeCall("sin", {dense})})), "dnnl.dense");
  ExpectThreadsAgree(*native_, function);
}

/// Packed weights are for one format: code that asks for another is not loaded.
TEST_F(NativeDnnlCallsTest, KernelsOfOtherFormatsAreRefused) {
  const Var x = Input("x", {19, 48});
  const Function function =
      Labelled(MakeFunction({x}, MakeCall("nn.dense", {x, RandomConstant({64, 48}, 3, -0.3, 0.3)})), "dnnl.dense");
  InferType(function);
  Result<CompiledPartition> compiled = native_->RelayToRuntime({function, PlainLayouts(1, 1), 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const std::string known = "plan 1 ";
  const auto* needle = reinterpret_cast<const std::byte*>(known.data());
  const auto at = std::search(compiled->blob.begin(), compiled->blob.end(), needle, needle + known.size());
  ASSERT_NE(at, compiled->blob.end());
  std::memset(&*at + known.size(), '0', 32);
  try {
    GetKernelLoader(compiled->loader).Load({compiled->blob, compiled->constants, 1});
    FAIL() << "was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kUnavailable);
    EXPECT_THAT(error.message(), HasSubstr("which it does not have on this processor ("));
    EXPECT_EQ(error.hint(), "compile the model on this machine");
  }
}

}  // namespace
}  // namespace collage
