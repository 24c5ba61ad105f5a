// pattern_rows_test.cc: every row of every toolchain's pattern table finds a candidate somewhere: a row that never
// matches, or whose predicate never says yes, would be dead weight that nobody notices.
#include <gtest/gtest.h>

#include <memory>

#include "collage/partition_rule.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"
#include "conformance/primitive_calls.h"
#include "conformance/quantised_calls.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point
using Graphs = std::vector<std::unique_ptr<DataflowGraph>>;

/// Operators of `rank` spatial dimensions on [1, 16, 6…].
Anchor Deconvolution(int rank) {
  const auto dims = static_cast<size_t>(rank);
  Shape data(dims + 2, 6), weight(dims + 2, 3), bias(dims + 1, 1);
  data[0] = 1;
  data[1] = 16;
  weight[0] = 16;
  weight[1] = 8;
  bias[0] = 8;
  const Var x = Input("x", data);
  const std::string name = "conv" + std::to_string(rank) + "d_transpose";
  return {name, x, MakeCall("nn." + name, {x, RandomConstant(weight, 5, -0.2, 0.2)}), bias};
}

void Add(Graphs& graphs, const std::vector<Var>& params, const Expr& result) {
  const Function function = MakeFunction(params, result);
  InferType(function);
  graphs.push_back(std::make_unique<DataflowGraph>(function));
}

void AddRows(Graphs& graphs, const std::vector<RowCall>& rows) {
  for (const RowCall& row : rows) Add(graphs, row.function->params(), row.function->body());
}

/// An anchor alone, with bias, with a residual, with a factor; with activations behind each.
void AddAnchor(Graphs& graphs, const Anchor& a) {
  const Var other = Input("other", a.shape());
  for (const Expr& base : {a.result, a.Biased()}) {
    Add(graphs, {a.x}, base);
    for (const Activation& activation : Activations()) Add(graphs, {a.x}, activation.apply(base));
    const Expr sum = Plus(base, other);
    Add(graphs, {a.x, other}, sum);
    Add(graphs, {a.x, other}, MakeCall("nn.relu", {sum}));
    Add(graphs, {a.x, other}, Clip(sum, 0, 6));
    Add(graphs, {a.x, other}, Mul(base, other));
    Add(graphs, {a.x, other}, MakeCall("maximum", {base, other}));
    Add(graphs, {a.x, other}, MakeCall("sigmoid", {sum}));
    Add(graphs, {a.x, other}, MakeCall("tanh", {Mul(base, other)}));
    const Expr active = MakeCall("nn.relu", {base});
    Add(graphs, {a.x, other}, Plus(active, other));
    Add(graphs, {a.x, other}, MakeCall("nn.relu", {Plus(active, other)}));
    Add(graphs, {a.x, other}, Plus(Mul(base, other), other));
  }
}

void AddProducts(Graphs& graphs) {
  const Var a = Input("a", {17, 9}), b = Input("b", {9, 21}), w = Input("w", {21, 9});
  Add(graphs, {a, b}, MakeCall("nn.matmul", {a, b}));
  Add(graphs, {a, w}, MakeCall("nn.dense", {a, w}));
  const Var x = Input("x", {6, 8, 4}), y = Input("y", {6, 4, 5}), mask = Input("mask", {6, 8, 5});
  const Expr product = MakeCall("nn.batch_matmul", {x, y});
  Add(graphs, {x, y}, product);
  Add(graphs, {x, y}, Div(product, Scalar(2)));
  Add(graphs, {x, y, mask}, Plus(product, mask));
}

void AddPoolsAndNormalisations(Graphs& graphs) {
  for (int rank : {1, 2, 3}) {
    const auto dims = static_cast<size_t>(rank);
    Shape data(dims + 2, 6);
    data[0] = 1;
    const Var x = Input("x", data);
    const std::string suffix = std::to_string(rank) + "d";
    const Attrs window{{"pool_size", std::vector<int64_t>(dims, 2)}, {"strides", std::vector<int64_t>(dims, 2)}};
    for (const char* kind : {"nn.max_pool", "nn.avg_pool"}) Add(graphs, {x}, MakeCall(kind + suffix, {x}, window));
    for (const char* kind : {"nn.global_max_pool", "nn.global_avg_pool"}) {
      Add(graphs, {x}, MakeCall(kind + suffix, {x}));
    }
  }
  const Var x = Input("x", {3, 16});
  Add(graphs, {x}, MakeCall("nn.softmax", {x}));
  Add(graphs, {x}, MakeCall("nn.log_softmax", {x}));
  Add(graphs, {x}, MakeCall("nn.layer_norm", {x, RandomConstant({16}, 1), RandomConstant({16}, 2)}));
}

Graphs RealCalls() {
  Graphs graphs;
  for (const Anchor& a : Anchors()) AddAnchor(graphs, a);
  for (int rank : {1, 2, 3}) AddAnchor(graphs, Deconvolution(rank));
  for (const QuantisedAnchor& a : QuantisedAnchors()) AddRows(graphs, QuantisedRows(a));
  AddRows(graphs, IntegerRows());
  AddRows(graphs, QuantisedOthers());
  AddRows(graphs, PrimitiveRows());
  AddProducts(graphs);
  AddPoolsAndNormalisations(graphs);
  return graphs;
}

TEST(PatternRowsTest, EveryRowFindsACandidateInARealCall) {
  BuiltinToolchain("native");  // registers all
  const Graphs graphs = RealCalls();
  int num_rows = 0;
  for (const Toolchain* toolchain : ToolchainRegistry::Global().All()) {
    for (const PatternTableEntry& row : toolchain->PatternTable()) {
      ++num_rows;
      const PartitionRulePtr rule = DFPatternRule(row.name, ParsePattern(row.pattern), row.predicate);
      std::string reasons;
      RuleLog log;
      log.on_refusal = [&](const std::string& label, const Reason& reason) {
        if (reasons.find(reason.text) == std::string::npos) reasons += "\n  " + label + ": " + reason.text;
      };
      bool is_found = false;
      for (const auto& graph : graphs) is_found = is_found || !rule->AllCandidates(*graph, *toolchain, log).empty();
      EXPECT_TRUE(is_found) << row.name << " = " << row.pattern << (reasons.empty() ? " matches nothing" : reasons);
    }
  }
  EXPECT_GT(num_rows, 100) << "oneDNN's table alone has more";
}

}  // namespace
}  // namespace collage
