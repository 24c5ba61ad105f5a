// onednn_graph_test.cc: oneDNN's graph API against the reference: every row of its table, what its partitioner
// proposes, and regions that it cuts into several partitions.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "backends/onednn_graph/describe.h"
#include "backends/onednn_graph/operators.h"
#include "collage/ir/infer_type.h"
#include "conformance/conformance.h"
#include "dataflow/dataflow_graph.h"
#include "partition/partition_rule.h"
#include "support/machine.h"

namespace collage {
namespace {

using conformance::BuiltinToolchain;
using conformance::ExampleFunction;
using conformance::ExpectAgrees;
using conformance::Input;
using conformance::RandomConstant;
using V = std::vector<int64_t>;

const Toolchain& GraphToolchain() { return BuiltinToolchain("onednn_graph"); }

class OneDnnGraph : public testing::Test {
 protected:
  void SetUp() override {
    const Availability here = GraphToolchain().Probe();
    if (!here.available) GTEST_SKIP() << here.reason;
  }
};

Expr Relu(const Expr& x) { return MakeCall("nn.relu", {x}); }
Expr Reshape(const Expr& x, V shape) { return MakeCall("reshape", {x}, {{"newshape", std::move(shape)}}); }

/// The kinds of operations of each partition that the library makes of `function`.
std::string PartitionsOf(const Function& function) {
  InferType(function);
  const size_t results = FlattenTensorTypes(function->body()->checked_type()).size();
  const auto compiled =
      GraphToolchain().RelayToRuntime({function, PlainLayouts(function->params().size(), results), 1});
  if (!compiled.ok()) return compiled.reason().text;
  return compiled->source.substr(0, compiled->source.find('{'));
}

/// Sizes, in operators, of the candidates that the library proposes.
std::multiset<int> ProposedSizes(const Function& function) {
  InferType(function);
  const DataflowGraph graph(function);
  RuleLog log;
  std::multiset<int> sizes;
  for (const auto& candidate :
       ProposedRule(OpPredicateRule("target.nobody"))->AllCandidates(graph, GraphToolchain(), log)) {
    int size = 0;
    for (int index : candidate.sub_graph.members()) size += graph.OpAt(index) != nullptr ? 1 : 0;
    sizes.insert(size);
  }
  return sizes;
}

TEST_F(OneDnnGraph, AgreesOnEveryOperatorOfItsTable) {
  for (const onednn_graph::OperatorRow& row : onednn_graph::Operators()) {
    SCOPED_TRACE(row.name);
    const OpDef& op = GetOp(row.name)->def();
    bool is_taken = false;
    for (const OpExample& example : op.examples) {
      for (const size_t constant_from : {size_t{1}, SIZE_MAX}) {
        const Function function = ExampleFunction(op, example, constant_from);
        InferType(function);
        if (!GraphToolchain().SupportsCall(*As<CallNode>(function->body())).ok()) continue;
        is_taken = true;
        ExpectAgrees(GraphToolchain(), function, {.low = 0.1, .high = 1});
      }
    }
    // Some have no examples, or such of integers, or scales that are no constants, or are not taken alone: see below.
    const bool has_own_test = row.name == "cast" || row.name == "transpose" || row.name.starts_with("qnn.");
    EXPECT_TRUE(is_taken || has_own_test || op.examples.empty());
  }
}

TEST_F(OneDnnGraph, AgreesOnWindowsOfEveryRank) {
  for (const int64_t rank : {1, 2, 3}) {
    const auto name = [&](const char* op) { return fmt::format("nn.{}{}d", op, rank); };
    const auto all = [&](int64_t value) { return V(static_cast<size_t>(rank), value); };
    Shape shape{2, 8}, weight{8, 6}, kernel = all(3);
    shape.insert(shape.end(), kernel.size(), 7);
    weight.insert(weight.end(), kernel.begin(), kernel.end());
    const Var x = Input("x", shape);
    const Expr w = RandomConstant(weight, 1);
    Shape other = weight;
    std::swap(other[0], other[1]);
    std::vector<Expr> calls{
        MakeCall(name("conv"), {x, RandomConstant(other, 2)}, {{"padding", all(1)}, {"strides", all(2)}}),
        MakeCall(name("conv") + "_transpose", {x, w}, {{"padding", all(1)}, {"strides", all(2)}}),
        MakeCall(name("max_pool"), {x}, {{"pool_size", kernel}, {"strides", all(2)}}),
        MakeCall(name("avg_pool"), {x}, {{"pool_size", kernel}, {"strides", all(2)}, {"padding", all(1)}}),
        MakeCall(name("avg_pool"), {x},
                 {{"pool_size", kernel}, {"strides", all(2)}, {"padding", all(1)}, {"count_include_pad", true}}),
        MakeCall(name("global_max_pool"), {x}),
        MakeCall(name("global_avg_pool"), {x})};
    for (const Expr& call : calls) {
      SCOPED_TRACE(As<CallNode>(call)->op()->name);
      for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
        ExpectAgrees(GraphToolchain(), MakeFunction({x}, call), {.layouts = {{layout}, {layout}}});
      }
    }
  }
}

TEST_F(OneDnnGraph, DequantizesByChannel) {
  const Var x = Input("x", {6, 5}, kInt8);
  const Expr scales = RandomConstant({6}, 1, 0.1, 1);
  const auto call = [&](std::vector<int32_t> zeros) {
    Tensor zero = Tensor::Empty({static_cast<int64_t>(zeros.size())}, kInt32);
    std::ranges::copy(zeros, zero.data<int32_t>());
    return MakeCall("qnn.dequantize", {x, scales, MakeConstant(zero)}, {{"axis", 0}});
  };
  ExpectAgrees(GraphToolchain(), MakeFunction({x}, call({0, 0, 0, 0, 0, 0})), {.all_bytes = true});
  const Expr shifted = call({0, 1, 2, 3, 4, 5});
  InferType(MakeFunction({x}, shifted));
  EXPECT_EQ(GraphToolchain().SupportsCall(*As<CallNode>(shifted)).reason().text,
            "takes a zero point with one scale for all only");
}

TEST_F(OneDnnGraph, ConvertsBetweenFloats) {
  const Var x = Input("x", {3, 5});
  const Expr half = MakeCall("cast", {x}, {{"dtype", "bfloat16"}});
  ExpectAgrees(GraphToolchain(), MakeFunction({x}, half), {.tolerance = 0.01});
  const Var y = Input("y", {3, 5}, kBFloat16);
  ExpectAgrees(GraphToolchain(), MakeFunction({y}, MakeCall("cast", {y}, {{"dtype", "float32"}})));
}

/// [1, S, heads * D] from keys, queries and values per head, as exporters write it.
Function Attention(DataType dtype) {
  const int64_t heads = 4, length = 16, depth = 8;
  const Var q = Input("q", {heads, length, depth}, dtype), k = Input("k", {heads, length, depth}, dtype),
            v = Input("v", {heads, length, depth}, dtype), mask = Input("mask", {1, 1, 1, length}, dtype);
  Expr scores = MakeCall("nn.batch_matmul", {q, k}, {{"transpose_b", true}});
  scores = MakeCall("divide", {Reshape(scores, {1, heads, length, length}), MakeScalar(2.8, dtype)});
  scores = MakeCall("nn.softmax", {MakeCall("add", {scores, mask})});
  Expr y = MakeCall("nn.batch_matmul", {Reshape(scores, {heads, length, length}), v});
  y = MakeCall("transpose", {Reshape(y, {1, heads, length, depth})}, {{"axes", V{0, 2, 1, 3}}});
  return MakeFunction({q, k, v, mask}, Reshape(y, {1, length, heads * depth}));
}

TEST_F(OneDnnGraph, ComputesAttentionAsOnePartition) {
  EXPECT_EQ(PartitionsOf(Attention(kFloat32)), "MatMul+Divide+Add+SoftMax+MatMul+StaticTranspose+StaticReshape\n");
  for (int threads : {1, 2}) ExpectAgrees(GraphToolchain(), Attention(kFloat32), {.num_threads = threads});
  EXPECT_THAT(ProposedSizes(Attention(kFloat32)), testing::ElementsAre(9));
  // Below AVX-512, oneDNN has no products of bfloat16.
  const std::vector<std::string>& features = ThisMachine().features;
  if (std::ranges::find(features, "avx512bw") == features.end()) return;
  ExpectAgrees(GraphToolchain(), Attention(kBFloat16), {.tolerance = 0.02});
}

Expr Convolution(const Expr& x, const Shape& weight, uint32_t seed) {
  const int64_t pad = weight[2] / 2;
  const Expr y = MakeCall("nn.conv2d", {x, RandomConstant(weight, seed, -0.2, 0.2)}, {{"padding", V{pad, pad}}});
  return MakeCall("add", {y, RandomConstant({weight[0], 1, 1}, seed + 100)});
}

Expr Bottleneck(const Expr& x, const Expr& shortcut, int64_t channels, uint32_t seed) {
  Expr y = Relu(Convolution(x, {8, channels, 1, 1}, seed));
  y = Relu(Convolution(y, {8, 8, 3, 3}, seed + 1));
  return Relu(MakeCall("add", {Convolution(y, {32, 8, 1, 1}, seed + 2), shortcut}));
}

/// Three bottlenecks, the first with a convolution on its shortcut.
Function ResidualStage() {
  const Var x = Input("x", {1, 16, 12, 12});
  Expr y = Bottleneck(x, Convolution(x, {32, 16, 1, 1}, 50), 16, 1);
  y = Bottleneck(y, y, 32, 11);
  return MakeFunction({x}, Bottleneck(y, y, 32, 21));
}

TEST_F(OneDnnGraph, ComputesAResidualStageAsOnePartition) {
  const std::string partitions = PartitionsOf(ResidualStage());
  EXPECT_EQ(std::ranges::count(partitions, '\n'), 1) << partitions;
  for (const Layout in : {Layout::kPlain, Layout::kChannelsLast}) {
    for (const Layout out : {Layout::kPlain, Layout::kChannelsLast}) {
      for (int threads : {1, 2})
        ExpectAgrees(GraphToolchain(), ResidualStage(), {.layouts = {{in}, {out}}, .num_threads = threads});
    }
  }
  EXPECT_THAT(ProposedSizes(ResidualStage()), testing::ElementsAre(32));
}

TEST_F(OneDnnGraph, ComputesARegionOfSeveralPartitions) {
  const Var x = Input("x", {1, 16, 12, 12});
  Expr y = Relu(Convolution(x, {24, 16, 3, 3}, 1));
  y = MakeCall("nn.max_pool2d", {y}, {{"pool_size", V{2, 2}}, {"strides", V{2, 2}}});
  y = MakeCall("tanh", {Convolution(y, {8, 24, 3, 3}, 5)});
  y = MakeCall("nn.dense", {Reshape(y, {1, 288}), RandomConstant({10, 288}, 9)});
  const Function function = MakeFunction({x}, MakeCall("nn.softmax", {MakeCall("add", {y, RandomConstant({10}, 3)})}));
  EXPECT_GT(std::ranges::count(PartitionsOf(function), '\n'), 2);
  for (int threads : {1, 2}) ExpectAgrees(GraphToolchain(), function, {.num_threads = threads});
}

TEST_F(OneDnnGraph, ProposesAroundWhatItDoesNotCompute) {
  const Var x = Input("x", {4, 32});
  Expr y = Relu(MakeCall("nn.dense", {x, RandomConstant({32, 32}, 1)}));
  y = MakeCall("cumsum", {y}, {{"axis", 1}});
  y = MakeCall("sigmoid", {MakeCall("nn.dense", {y, RandomConstant({8, 32}, 2)})});
  EXPECT_THAT(ProposedSizes(MakeFunction({x}, y)), testing::ElementsAre(2, 2));
}

TEST_F(OneDnnGraph, ReturnsValuesThatAreReadInside) {
  const Var x = Input("x", {4, 32});
  const Expr y = MakeCall("nn.dense", {x, RandomConstant({32, 32}, 1)});
  ExpectAgrees(GraphToolchain(), MakeFunction({x}, MakeTuple({y, Relu(y)})));
}

Expr Dequantized(const Expr& x, double scale, int32_t zero) {
  return MakeCall("qnn.dequantize", {x, MakeScalar(scale, kFloat32), MakeScalar(zero, kInt32)});
}
Expr Quantized(const Expr& x, double scale, int32_t zero, const char* dtype) {
  return MakeCall("qnn.quantize", {x, MakeScalar(scale, kFloat32), MakeScalar(zero, kInt32)}, {{"out_dtype", dtype}});
}
Expr Weight(const Shape& shape, uint32_t seed) {
  return Dequantized(MakeConstant(conformance::RandomTensor(shape, kInt8, -127, 127, seed)), 0.01, 0);
}

TEST_F(OneDnnGraph, MultipliesBytes) {
  if (!HasVnni(ThisMachine().features)) GTEST_SKIP() << "this processor has no VNNI instructions";
  const Var x = Input("x", {1, 16, 10, 10}, kUInt8);
  Expr y = MakeCall("nn.conv2d", {Dequantized(x, 0.02, 100), Weight({8, 16, 3, 3}, 1)}, {{"padding", V{1, 1}}});
  y = Quantized(Relu(y), 0.05, 3, "uint8");
  ExpectAgrees(GraphToolchain(), MakeFunction({x}, y), {.all_bytes = true});
  const Var a = Input("a", {7, 32}, kInt8);
  y = Quantized(MakeCall("nn.dense", {Dequantized(a, 0.02, 0), Weight({12, 32}, 2)}), 0.1, 0, "int8");
  ExpectAgrees(GraphToolchain(), MakeFunction({a}, y), {.all_bytes = true});
  EXPECT_THAT(ProposedSizes(MakeFunction({a}, y)), testing::ElementsAre(4));
}

TEST_F(OneDnnGraph, DeclinesWithReasons) {
  const auto reason = [](const Expr& body, std::vector<Var> params) {
    InferType(MakeFunction(std::move(params), body));
    return GraphToolchain().SupportsCall(*As<CallNode>(body)).reason().text;
  };
  const Var x = Input("x", {3, 6}), n = Input("n", {3, 6}, kInt64);
  EXPECT_EQ(reason(MakeCall("cumsum", {x}, {{"axis", 1}}), {x}), "has no operation for 'cumsum'");
  EXPECT_EQ(reason(MakeCall("abs", {n}), {n}), "computes float32, bfloat16 and float16, one of them at a time");
  EXPECT_EQ(reason(MakeCall("nn.prelu", {x, Input("a", {3})}, {{"axis", 0}}), {x}),
            "takes slopes per channel, on axis 1, only");
}

}  // namespace
}  // namespace collage
