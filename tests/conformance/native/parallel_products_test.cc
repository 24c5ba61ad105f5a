// parallel_products_test.cc: products of one value by constant weights are one candidate, and one product in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "backends/native/canonicalise.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "conformance/conformance.h"
#include "partition/extract.h"
#include "partition/partition_spec.h"

namespace collage {
namespace {

using conformance::ExpectAgrees;
using conformance::Input;
using conformance::RandomConstant;

const Toolchain& Native() { return conformance::BuiltinToolchain("native"); }

Expr Dense(const Expr& x, int64_t units, uint32_t seed) {
  const int64_t depth = AsTensorType(InferType(x))->static_shape().back();
  return MakeCall("nn.dense", {x, RandomConstant({units, depth}, seed)}, {{"units", units}});
}
Expr Biased(const Expr& x, uint32_t seed) {
  const int64_t units = AsTensorType(InferType(x))->static_shape().back();
  return MakeCall("add", {x, RandomConstant({units}, seed)});
}
Expr Convolution(const Expr& x, int64_t channels, int64_t taps, uint32_t seed) {
  const int64_t depth = AsTensorType(InferType(x))->static_shape()[1];
  const int64_t margin = taps / 2;
  const Expr product = MakeCall("nn.conv2d", {x, RandomConstant({channels, depth, taps, taps}, seed)},
                                {{"padding", std::vector<int64_t>{margin, margin, margin, margin}},
                                 {"channels", channels},
                                 {"kernel_size", std::vector<int64_t>{taps, taps}}});
  return MakeCall("nn.relu", {MakeCall("add", {product, RandomConstant({channels, 1, 1}, seed + 1)})});
}

/// A function, and how many operators its parallel products are a candidate with.
struct Case {
  const char* name;
  Function function;
  size_t num_calls;
};

Case QueriesKeysAndValues() {
  const Var x = Input("x", {17, 24});
  const Expr scaled = MakeCall("multiply", {Biased(Dense(x, 32, 1), 2), MakeScalar(0.125, kFloat32)});
  return {"queries, keys and values",
          MakeFunction({x}, MakeTuple({scaled, Biased(Dense(x, 32, 3), 4), Biased(Dense(x, 32, 5), 6)})), 7};
}
/// Results that begin at whole vectors, and are stored where they go.
Case WholeVectors() {
  const Var x = Input("x", {17, 24});
  return {"results of whole vectors",
          MakeFunction({x},
                       MakeTuple({Biased(Dense(x, 64, 1), 2), Biased(Dense(x, 32, 3), 4), Biased(Dense(x, 21, 5), 6)})),
          6};
}
Case WholeVectorsOfBatches() {
  const Var x = Input("x", {3, 7, 12});
  const auto product = [&](int64_t columns, uint32_t seed) {
    return MakeCall("nn.batch_matmul", {x, RandomConstant({3, columns, 12}, seed)}, {{"transpose_b", true}});
  };
  return {"batches of whole vectors", MakeFunction({x}, MakeTuple({product(16, 1), product(32, 2)})), 2};
}
Case WholeVectorsOfImages() {
  const Var x = Input("x", {2, 12, 9, 9});
  return {"images of whole vectors",
          MakeFunction({x}, MakeTuple({Convolution(x, 16, 3, 1), Convolution(x, 32, 3, 3), Convolution(x, 16, 3, 5)})),
          9};
}
Case SharedKeys() {
  const Var x = Input("x", {1, 40});
  return {"fewer keys than queries, one row",
          MakeFunction({x}, MakeTuple({Dense(x, 48, 1), Dense(x, 8, 2), Dense(x, 9, 3)})), 3};
}
Case Gate() {
  const Var x = Input("x", {5, 24});
  const Expr gate = Dense(x, 33, 1);
  const Expr opened = MakeCall("multiply", {gate, MakeCall("sigmoid", {gate})});
  return {"a gate and what it scales", MakeFunction({x}, MakeCall("multiply", {opened, Dense(x, 33, 2)})), 5};
}
Case Batches() {
  const Var x = Input("x", {3, 7, 12});
  const auto product = [&](int64_t columns, uint32_t seed) {
    return MakeCall("nn.batch_matmul", {x, RandomConstant({3, columns, 12}, seed)}, {{"transpose_b", true}});
  };
  return {"batches", MakeFunction({x}, MakeTuple({product(10, 1), MakeCall("tanh", {product(6, 2)})})), 3};
}
Case Inception() {
  const Var x = Input("x", {1, 12, 9, 9});
  const Expr other = Convolution(x, 8, 3, 7);
  const Expr branches = MakeTuple({Convolution(x, 16, 1, 1), other, Convolution(x, 5, 1, 3)});
  return {"convolutions of one image", MakeFunction({x}, MakeCall("concatenate", {branches}, {{"axis", 1}})), 6};
}
Case WayBackIn() {
  const Var x = Input("x", {4, 16});
  const Expr first = Dense(x, 16, 1);
  const Expr between = MakeCall("nn.softmax", {first}, {{"axis", -1}});
  return {"a way out and back in", MakeFunction({x}, MakeTuple({MakeCall("add", {Dense(x, 16, 2), between}), first})),
          2};
}

std::vector<Case> Cases() {
  std::vector<Case> cases{QueriesKeysAndValues(),
                          WholeVectors(),
                          WholeVectorsOfBatches(),
                          WholeVectorsOfImages(),
                          SharedKeys(),
                          Gate(),
                          Batches(),
                          Inception(),
                          WayBackIn()};
  for (const Case& one : cases) InferType(one.function);
  return cases;
}

bool IsProduct(const Expr& expr) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr && call->op()->pattern == OpPatternKind::kOutEWiseFusable;
}

int NumProducts(const Function& function) {
  int number = 0;
  PostOrder(function->body(), [&](const Expr& expr) { number += IsProduct(expr) ? 1 : 0; });
  return number;
}

/// Candidates that hold several products, as functions.
std::vector<Function> Parallel(const DataflowGraph& graph) {
  RuleLog log;
  std::vector<Function> found;
  for (const CandidatePartition& candidate : SpecOf(Native()).AllCandidates(graph, log)) {
    const Function function = Extract(graph, candidate.sub_graph).function;
    if (NumProducts(function) > 1) found.push_back(function);
  }
  return found;
}

TEST(NativeParallelProductsTest, AreOneCandidateForEachValue) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.name);
    const std::vector<Function> found = Parallel(DataflowGraph(one.function));
    ASSERT_EQ(found.size(), 1U);
    size_t num_calls = 0;
    PostOrder(found[0]->body(), [&](const Expr& expr) { num_calls += As<CallNode>(expr) != nullptr ? 1 : 0; });
    EXPECT_EQ(num_calls, one.num_calls);
    EXPECT_EQ(NumProducts(native::Canonicalise(found[0])), 1);
  }
}

TEST(NativeParallelProductsTest, AgreeWithTheReference) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.name);
    const Function function = Parallel(DataflowGraph(one.function)).at(0);
    const std::vector<Type> results = FlattenTensorTypes(function->body()->checked_type());
    for (const int threads : {1, 2}) {
      ExpectAgrees(Native(), function, {.num_threads = threads});
      const std::vector<bool> inputs(function->params().size(), AsTensorType(results[0])->rank() == 4);
      const std::vector<bool> outputs(results.size(), inputs[0]);
      ExpectAgrees(Native(), function, {.layouts = ChannelsLastLayouts(inputs, outputs), .num_threads = threads});
    }
  }
}

TEST(NativeParallelProductsTest, WholeVectorsAreStoredWhereTheyGo) {
  for (const Case& one : {WholeVectors(), WholeVectorsOfBatches()}) {
    SCOPED_TRACE(one.name);
    InferType(one.function);
    const size_t results = FlattenTensorTypes(one.function->body()->checked_type()).size();
    const Result<LoweredPartition> lowered = Native().RelayToTIR({one.function, PlainLayouts(1, results), 1});
    ASSERT_TRUE(lowered.ok()) << lowered.reason().text;
    EXPECT_EQ(lowered->workspace_bytes, 0U) << "nothing is copied to its place";
  }
}

TEST(NativeParallelProductsTest, OthersStayApart) {
  const Var x = Input("x", {4, 16}), y = Input("y", {4, 16}), w = Input("w", {8, 16});
  const auto is_apart = [](const std::vector<Var>& params, const Expr& a, const Expr& b) {
    const Function function = MakeFunction(params, MakeTuple({a, b}));
    InferType(function);
    return Parallel(DataflowGraph(function)).empty() && NumProducts(native::Canonicalise(function)) == 2;
  };
  EXPECT_TRUE(is_apart({x, y}, Dense(x, 8, 1), Dense(y, 8, 2))) << "of two values";
  EXPECT_TRUE(is_apart({x, w}, Dense(x, 8, 1), MakeCall("nn.dense", {x, w}))) << "weights that are no constant";
  const Var image = Input("image", {1, 4, 8, 8});
  EXPECT_TRUE(is_apart({image}, Convolution(image, 8, 1, 1), Convolution(image, 8, 3, 2))) << "of other sizes";
}

}  // namespace
}  // namespace collage
