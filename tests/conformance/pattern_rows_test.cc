// pattern_rows_test.cc: every row of every toolchain's pattern table finds a candidate somewhere: a row that never
// matches, or whose predicate never says yes, would be dead weight that nobody notices.
#include <gtest/gtest.h>

#include <memory>

#include "conformance/conformance.h"
#include "conformance/fused_calls.h"
#include "conformance/gpu/cublas_calls.h"
#include "conformance/gpu/cudnn_cases.h"
#include "conformance/gpu/cutlass_cases.h"
#include "conformance/gpu/triton_cases.h"
#include "conformance/primitive_calls.h"
#include "conformance/quantised_calls.h"
#include "partition/partition_rule.h"

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
    Add(graphs, {a.x}, MakeCall("abs", {base}));
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
  const auto add = [&](const std::vector<Var>& params, const Expr& result) {
    Add(graphs, params, result);
    Add(graphs, params, MakeCall("nn.relu", {result}));
  };
  add({a, b}, MakeCall("nn.matmul", {a, b}));
  add({a, w}, MakeCall("nn.dense", {a, w}));
  add({a, b}, Plus(MakeCall("nn.matmul", {a, b}), RandomConstant({21}, 1)));
  const Var x = Input("x", {6, 8, 4}), y = Input("y", {6, 4, 5}), mask = Input("mask", {6, 8, 5});
  const Expr product = MakeCall("nn.batch_matmul", {x, y});
  add({x, y}, product);
  add({x, y}, Div(product, Scalar(2)));
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
  const Var image = Input("image", {1, 6, 6, 6});
  for (const char* kind : {"nn.max_pool2d", "nn.avg_pool2d", "nn.global_avg_pool2d"}) {
    const Attrs window = kind[3] == 'g' ? Attrs() : Attrs{{"pool_size", std::vector<int64_t>{2, 2}}};
    Add(graphs, {image}, MakeCall("nn.relu", {MakeCall(kind, {image}, window)}));
    Add(graphs, {image}, Clip(MakeCall(kind, {image}, window), 0, 6));
  }
  const Var x = Input("x", {3, 16});
  Add(graphs, {x}, MakeCall("nn.softmax", {x}));
  Add(graphs, {x}, MakeCall("nn.log_softmax", {x}));
  Add(graphs, {x}, MakeCall("nn.layer_norm", {x, RandomConstant({16}, 1), RandomConstant({16}, 2)}));
}

void AddElementWise(Graphs& graphs) {
  const Var x = Input("x", {2, 5, 6, 7}), y = Input("y", {2, 5, 6, 7});
  for (const char* name :
       {"abs", "negative", "floor", "ceil", "round", "trunc", "sqrt", "sigmoid", "nn.relu", "nn.leaky_relu"}) {
    Add(graphs, {x}, MakeCall(name, {x}));
  }
  Add(graphs, {x}, Clip(x, 0, 6));
  Add(graphs, {x}, MakeCall("nn.prelu", {x, RandomConstant({5}, 3)}, {{"axis", 1}}));
  Add(graphs, {x}, Mul(x, x));
  for (const Activation& activation : Activations()) Add(graphs, {x}, activation.apply(x));
  Add(graphs, {x}, Mul(Mul(x, Clip(Plus(x, Scalar(3)), 0, 6)), Scalar(1.0 / 6)));
  const Expr below = Plus(MakeCall("exp", {MakeCall("minimum", {x, Scalar(0)})}), Scalar(-1));
  Add(graphs, {x}, Plus(MakeCall("nn.relu", {x}), below));
  for (const char* name : {"add", "subtract", "multiply", "divide", "maximum", "minimum"}) {
    const Expr both = MakeCall(name, {x, y});
    Add(graphs, {x, y}, both);
    Add(graphs, {x, y}, MakeCall("nn.relu", {both}));
    Add(graphs, {x, y}, Clip(both, 0, 6));
    Add(graphs, {x, y}, Mul(both, both));
  }
  Add(graphs, {x}, MakeCall("image.resize2d", {x}, {{"size", std::vector<int64_t>{12, 14}}, {"method", "linear"}}));
  const AttrValue none(std::vector<int64_t>{0, 0}), two(std::vector<int64_t>{2, 2});
  Add(graphs, {x},
      MakeCall("nn.pad", {x, Scalar(0)}, {{"pad_width", AttrValue(AttrValue::List{none, none, two, two})}}));
  std::vector<Expr> fields{x};
  for (int count = 2; count <= 8; ++count) {
    fields.push_back(y);
    Add(graphs, {x, y}, MakeCall("concatenate", {MakeTuple(fields)}, {{"axis", 1}}));
  }
}

/// Between qnn.dequantize and qnn.quantize, as they are imported.
void AddQuantised(Graphs& graphs) {
  const auto zero = [](int value) { return MakeScalar(value, kUInt8); };
  const auto dequantize = [&](const Expr& x, double scale) {
    return MakeCall("qnn.dequantize", {x, Scalar(scale), zero(128)}, {{"axis", -1}, {"out_dtype", kFloat32}});
  };
  const auto add = [&](const std::vector<Var>& params, const Expr& y, double scale, int point) {
    for (const Expr& result : {y, MakeCall("nn.relu", {y})}) {
      Add(graphs, params,
          MakeCall("qnn.quantize", {result, Scalar(scale), zero(point)}, {{"axis", -1}, {"out_dtype", kUInt8}}));
    }
  };
  const auto weights = [&](const Shape& shape) {
    return dequantize(MakeConstant(RandomTensor(shape, kUInt8, 0, 255, 3)), 0.01);
  };
  const Var image = Input("image", {1, 6, 7, 8}, kUInt8), other = Input("other", {1, 6, 7, 8}, kUInt8);
  const Var rows = Input("rows", {4, 6}, kUInt8);
  const Expr x = dequantize(image, 0.02), y = dequantize(other, 0.03), matrix = dequantize(rows, 0.02);
  const Expr conv = MakeCall("nn.conv2d", {x, weights({5, 6, 3, 3})});
  const Expr deconv = MakeCall("nn.conv2d_transpose", {x, weights({6, 5, 3, 3})});
  const Expr dense = MakeCall("nn.dense", {matrix, weights({5, 6})});
  for (const Expr& product : {conv, deconv}) {
    add({image}, product, 0.1, 128);
    add({image}, Plus(product, RandomConstant({5, 1, 1}, 4)), 0.1, 128);
  }
  add({rows}, dense, 0.1, 128);
  add({rows}, Plus(dense, RandomConstant({5}, 4)), 0.1, 128);
  for (const char* name : {"add", "subtract", "multiply"}) add({image, other}, MakeCall(name, {x, y}), 0.05, 128);
  const Attrs window{{"pool_size", std::vector<int64_t>{2, 2}}};
  add({image}, MakeCall("nn.max_pool2d", {x}, window), 0.02, 128);
  add({image}, MakeCall("nn.avg_pool2d", {x}, window), 0.02, 128);
  add({image}, MakeCall("nn.global_avg_pool2d", {x}), 0.02, 128);
  add({image}, MakeCall("sigmoid", {x}), 1.0 / 256, 0);
  add({image}, MakeCall("tanh", {x}), 1.0 / 128, 128);
  add({image}, MakeCall("nn.leaky_relu", {x}), 0.02, 128);
  add({rows}, MakeCall("nn.softmax", {matrix}), 1.0 / 256, 0);
  Add(graphs, {image}, x);
  const Var floats = Input("floats", {3, 5});
  add({floats}, floats, 0.02, 128);
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
  AddElementWise(graphs);
  AddQuantised(graphs);
  // Sums with every function behind, and products of matrices that are not float32.
  for (const DataType dtype : {kFloat32, kFloat16}) {
    for (const PatternCase& one : CudnnCases(dtype)) Add(graphs, one.params, one.body);
    for (const PatternCase& one : CutlassCases(dtype)) Add(graphs, one.params, one.body);
    for (const PatternCase& one : TritonCases(dtype)) Add(graphs, one.params, one.body);
  }
  AddRows(graphs, CublasCalls(kFloat32));
  AddRows(graphs, CublasIntegerCalls());
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
