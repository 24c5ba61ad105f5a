// dnnl_primitives_test.cc: oneDNN's primitives without weights, and 16-bit floats, against the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "conformance/dnnl_rows.h"
#include "conformance/primitive_calls.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point
using V = std::vector<int64_t>;

class DnnlPrimitives : public DnnlTest {};

/// `expr` with float32 variables and constants, and casts to them, of `dtype`.
Expr InDType(const Expr& expr, DataType dtype, std::unordered_map<const ExprNode*, Expr>& done) {
  if (const auto it = done.find(expr.get()); it != done.end()) return it->second;
  Expr result = expr;
  if (const VarNode* var = As<VarNode>(expr)) {
    const TensorTypeNode& type = *AsTensorType(var->type_annotation());
    if (type.dtype() == kFloat32) result = MakeVar(var->name(), TensorType(type.static_shape(), dtype));
  } else if (const ConstantNode* constant = As<ConstantNode>(expr);
             constant != nullptr && constant->value().dtype() == kFloat32) {
    Tensor value = Tensor::Empty(constant->value().shape(), dtype);
    for (int64_t i = 0; i < value.num_elements(); ++i) value.Set(i, constant->value().At(i));
    result = MakeConstant(value);
  } else if (const TupleNode* tuple = As<TupleNode>(expr)) {
    std::vector<Expr> fields;
    for (const Expr& field : tuple->fields()) fields.push_back(InDType(field, dtype, done));
    result = MakeTuple(fields);
  } else if (const CallNode* call = As<CallNode>(expr)) {
    std::vector<Expr> args;
    for (const Expr& arg : call->args()) args.push_back(InDType(arg, dtype, done));
    result = MakeCall(call->op()->name, args, call->attrs());
  }
  return done[expr.get()] = result;
}

Function InDType(const Function& function, DataType dtype) {
  std::unordered_map<const ExprNode*, Expr> done;
  const Expr body = InDType(function->body(), dtype, done);
  std::vector<Var> params;
  for (const Var& param : function->params()) params.push_back(AsShared<VarNode>(InDType(param, dtype, done)));
  return MakeFunction(params, body);
}

int NumCalls(const Function& function) {
  int calls = 0;
  const DataflowGraph graph(function);
  for (size_t i = 0; i < graph.size(); ++i)
    calls += As<CallNode>(graph.node(static_cast<int>(i)).expr) != nullptr ? 1 : 0;
  return calls;
}

/// The reference rounds what every operator gives to `bits` significant bits, an error of at most 2^-bits of a value;
/// oneDNN computes in float32 and rounds once. Values inside are at most twice the largest result, and no function here
/// is steeper than 1.13 (GELU): 4 times the largest covers both.
double HalfTolerance(const Function& function, int bits) {
  return 4 * (NumCalls(function) + 1) * std::ldexp(1.0, -bits);
}

constexpr int kBFloat16Bits = 8;
constexpr int kFloat16Bits = 11;

/// Right, or declined because there is no fast implementation for this processor.
bool ExpectRightOrSlow(const RowCall& call, DataType dtype, int bits) {
  const Function function = InDType(call.function, dtype);
  InferType(function);
  Options options{.tolerance = HalfTolerance(function, bits), .low = 0.25, .high = 1};
  options.layouts = call.has_channels ? ChannelsLast(function) : PlainLayouts(function->params().size(), 1);
  const auto compiled = Dnnl().RelayToRuntime({function, options.layouts, 1});
  if (!compiled.ok()) {
    EXPECT_NE(compiled.reason().text.find("oneDNN has"), std::string::npos)
        << call.row << ": " << compiled.reason().text;
    return false;
  }
  ExpectRow("dnnl." + call.row, function, options);
  return true;
}

std::vector<RowCall> ContractionRows() {
  std::vector<RowCall> rows;
  for (const Anchor& a : Anchors()) {
    const bool has_channels = a.name != "dense";
    const Var r = Input("r", a.shape());
    rows.push_back({a.name, MakeFunction({a.x}, a.result), has_channels});
    rows.push_back({a.name + "_bias", MakeFunction({a.x}, a.Biased()), has_channels});
    rows.push_back({a.name + "_bias_relu", MakeFunction({a.x}, MakeCall("nn.relu", {a.Biased()})), has_channels});
    rows.push_back(
        {a.name + "_bias_sum_relu", MakeFunction({a.x, r}, MakeCall("nn.relu", {Plus(a.Biased(), r)})), has_channels});
    rows.push_back({a.name + "_bias_swish", MakeFunction({a.x}, Mul(a.Biased(), MakeCall("sigmoid", {a.Biased()}))),
                    has_channels});
  }
  // Each call of Biased() makes a value of its own: a swish is of one.
  for (RowCall& row : rows) {
    if (!row.row.ends_with("_swish")) continue;
    const Expr x = As<CallNode>(row.function->body())->args()[0];
    row.function = MakeFunction(row.function->params(), Mul(x, MakeCall("sigmoid", {x})));
  }
  return rows;
}

TEST_F(DnnlPrimitives, BFloat16AgreesUpToTheRoundingOfItsResults) {
  int computed = 0;
  std::vector<RowCall> rows = ContractionRows();
  for (const auto& part : {ElementwiseRows({1, 16, 5, 7}, kBFloat16), ReductionRows(kBFloat16), OtherPrimitiveRows()}) {
    rows.insert(rows.end(), part.begin(), part.end());
  }
  for (const RowCall& call : rows) {
    if (call.row == "cast" || call.row == "prod") continue;  // of one dtype only; of hundreds of factors
    computed += ExpectRightOrSlow(call, kBFloat16, kBFloat16Bits) ? 1 : 0;
  }
  std::cout << computed << " of " << rows.size() << " rows have fast bfloat16 implementations here\n";
}

TEST_F(DnnlPrimitives, Float16AgreesOrHasNoFastImplementation) {
  int computed = 0;
  const std::vector<RowCall> rows = ContractionRows();
  for (const RowCall& call : rows) computed += ExpectRightOrSlow(call, kFloat16, kFloat16Bits) ? 1 : 0;
  std::cout << computed << " of " << rows.size() << " rows have fast float16 implementations here\n";
}

TEST_F(DnnlPrimitives, CastsConvertBetweenFloats) {
  const Var x = Input("x", {3, 16, 5, 7}), y = Input("y", {3, 16, 5, 7}, kBFloat16);
  ExpectRow("dnnl.cast", MakeFunction({x}, MakeCall("cast", {x}, {{"dtype", kBFloat16}})), {.tolerance = 0});
  ExpectRow("dnnl.cast", MakeFunction({y}, MakeCall("cast", {y}, {{"dtype", kFloat32}})), {.tolerance = 0});
}

/// In every layout that the toolchain offers and has a fast implementation for; at least one where the processor has
/// the widest vectors.
void ExpectInEveryLayout(const RowCall& call, const Options& given = {}) {
  InferType(call.function);
  const bool has_result_channels = AsTensorType(call.function->body()->checked_type())->rank() >= 3;
  std::vector<bool> inputs;
  for (const Var& param : call.function->params()) {
    inputs.push_back(call.has_channels && AsTensorType(param->type_annotation())->rank() >= 3);
  }
  int computed = 0;
  std::string reasons;
  for (const BoundaryLayouts& layouts :
       Dnnl().Layouts(call.function, inputs, {call.has_channels && has_result_channels})) {
    const auto compiled = Dnnl().RelayToRuntime({call.function, layouts, 1});
    if (!compiled.ok()) {
      reasons += compiled.reason().text + "; ";
      continue;
    }
    ++computed;
    Options options = given;
    options.layouts = layouts;
    for (int threads : {1, 2}) {
      options.num_threads = threads;
      ExpectRow("dnnl." + call.row, call.function, options);
    }
  }
  const std::vector<std::string>& features = ThisMachine().features;
  const bool has_all = std::find(features.begin(), features.end(), "avx512f") != features.end();
  EXPECT_GE(computed, has_all ? 1 : 0) << call.row << " is declined in every layout: " << reasons;
}

TEST_F(DnnlPrimitives, ElementwiseOperators) {
  for (const RowCall& call : ElementwiseRows({2, 16, 5, 7})) ExpectInEveryLayout(call, {.low = -3, .high = 3});
  for (const RowCall& call : ElementwiseRows({9, 33})) ExpectInEveryLayout(call, {.low = -3, .high = 3});
  for (const RowCall& call : PositiveRows()) ExpectInEveryLayout(call, {.low = 0.5, .high = 3});
}

TEST_F(DnnlPrimitives, ReductionsOfTrailingAxes) {
  int computed = 0, declined = 0;
  for (const RowCall& call : ReductionRows()) {
    InferType(call.function);
    if (Dnnl().RelayToRuntime({call.function, PlainLayouts(1, 1), 1})) {
      ++computed;
      // Factors around 1 keep a product of thousands within the range of float32.
      ExpectInEveryLayout(call, {.low = 0.9, .high = 1.1});
    } else {
      ++declined;  // axes in the middle have a reference implementation only
    }
  }
  EXPECT_EQ(computed, 5 * 6);
  EXPECT_EQ(declined, 5 * 3);
}

TEST_F(DnnlPrimitives, Resizing) {
  for (const RowCall& call : ResizeRows()) ExpectInEveryLayout(call);
}

TEST_F(DnnlPrimitives, NormsPoolsConcatenationsAndPermutations) {
  for (const RowCall& call : OtherPrimitiveRows())
    ExpectInEveryLayout(call, {.tolerance = call.row == "cast" ? 0.0 : 1e-4});
}

TEST_F(DnnlPrimitives, ChainsOfFunctionsAndTensorsBehindContractions) {
  for (const Anchor& a : Anchors()) {
    Options options;
    const Var r = Input("r", a.shape());
    const auto expect = [&](const std::string& suffix, const Expr& result) {
      const Function function = MakeFunction({a.x, r}, result);
      if (a.name != "dense") options.layouts = ChannelsLast(function);
      ExpectRow("dnnl." + a.name + suffix, function, options);
    };
    const Expr base = a.Biased();
    for (const std::string op : {"subtract", "maximum", "minimum"}) expect("_binary", MakeCall(op, {base, r}));
    expect("_sum_activation", MakeCall("sigmoid", {Plus(base, r)}));
    expect("_binary_activation", MakeCall("nn.relu", {Mul(base, r)}));
    expect("_activation_binary", Plus(MakeCall("tanh", {base}), r));
    expect("_activation_sum_activation", MakeCall("nn.relu", {Plus(MakeCall("nn.relu", {base}), r)}));
    expect("_scale_sum", Plus(Mul(a.result, Scalar(0.5)), r));
  }
}

TEST_F(DnnlPrimitives, FunctionsOfOneOperatorBehindContractions) {
  for (const Anchor& a : Anchors()) {
    const auto expect = [&](const Expr& result) {
      const Function function = MakeFunction({a.x}, result);
      Options options;
      if (a.name != "dense") options.layouts = ChannelsLast(function);
      ExpectRow("dnnl." + a.name + "_function", function, options);
    };
    const Expr base = a.Biased();
    for (const std::string op : {"abs", "exp", "negative"}) expect(MakeCall(op, {base}));
    expect(Mul(base, base));
    expect(MakeCall("power", {base, Scalar(2)}));
  }
}

TEST_F(DnnlPrimitives, SlopesAreTensorsToo) {
  const Anchor a = Anchor::Conv(2);
  const Var slopes = Input("slopes", {32});
  const Function function = MakeFunction({a.x, slopes}, MakeCall("nn.prelu", {a.Biased(), slopes}, {{"axis", 1}}));
  ExpectRow("dnnl.conv2d_bias_prelu", function, {.layouts = ChannelsLast(function)});
  const Var x = Input("x", {2, 16, 5, 7}), all = Input("all", {2, 16, 5, 7});
  const Expr below = MakeCall("minimum", {x, Scalar(0)});
  const Expr written = Plus(MakeCall("nn.relu", {x}), Mul(all, below));
  ExpectRow("dnnl.prelu", MakeFunction({x, all}, written));
}

TEST_F(DnnlPrimitives, OneSlopeForAllIsLeakyRelu) {
  const Anchor a = Anchor::Dense();
  const Expr below = MakeCall("minimum", {a.result, Scalar(0)});
  ExpectRow("dnnl.dense_prelu", MakeFunction({a.x}, Plus(MakeCall("nn.relu", {a.result}), Mul(Scalar(0.2), below))));
}

TEST_F(DnnlPrimitives, BatchesAreBroadcast) {
  const Var x = Input("x", {1, 5, 9}), y = Input("y", {3, 9, 6});
  ExpectRow("dnnl.batch_matmul", MakeFunction({x, y}, MakeCall("nn.batch_matmul", {x, y})));
}

TEST_F(DnnlPrimitives, DeclinesWithReasons) {
  const Var x = Input("x", {2, 16, 12, 9});
  const auto resize = [&](const Attrs& attrs) {
    return RefusalOf(MakeFunction({x}, MakeCall("image.resize2d", {x}, attrs)));
  };
  EXPECT_EQ(resize({{"size", V{6, 5}}, {"method", "cubic"}}), "has no interpolation 'cubic'");
  EXPECT_EQ(resize({{"size", V{24, 18}}, {"coordinate_transformation_mode", "align_corners"}}),
            "interpolates between pixels' centres only, got align_corners");
  EXPECT_EQ(resize({{"size", V{18, 18}}, {"method", "nearest_neighbor"}}),
            "repeats pixels a whole number of times only, or rounds otherwise");
  const Expr gamma = RandomConstant({16}, 51);
  EXPECT_EQ(RefusalOf(MakeFunction({x}, MakeCall("nn.group_norm", {x, gamma, gamma}, {{"num_groups", 4}}))),
            "has no groups of channels in this version");
  EXPECT_EQ(RefusalOf(MakeFunction({x}, MakeCall("nn.instance_norm", {x, gamma, gamma}))),
            "scales and shifts the channels of one sample only");
  EXPECT_EQ(RefusalOf(MakeFunction({x}, MakeCall("nn.lrn", {x}, {{"size", 4}}))),
            "normalises over an odd number of channels only");
  EXPECT_EQ(RefusalOf(MakeFunction({x}, MakeCall("nn.adaptive_avg_pool2d", {x}, {{"output_size", V{5, 3}}}))),
            "pools windows of one size only, 5 does not divide 12");
  EXPECT_EQ(RefusalOf(MakeFunction({x}, MakeCall("cast", {x}, {{"dtype", kUInt8}}))), "rounds, but does not truncate");
  const Anchor conv = Anchor::Conv(2);
  EXPECT_EQ(
      RefusalOf(MakeFunction({conv.x}, MakeCall("nn.prelu", {conv.result, RandomConstant({9}, 3)}, {{"axis", 3}}))),
      "takes slopes per channel only");
  const Var i = Input("i", {3, 4}, kInt32);
  EXPECT_EQ(RefusalOf(MakeFunction({i}, MakeCall("nn.prelu", {i, MakeConstant(RandomTensor({4}, kInt32, 0, 3, 1))}))),
            "computes this of floats only");
  const Var nhwc = Input("nhwc", {1, 9, 9, 16});
  EXPECT_EQ(RefusalOf(MakeFunction({nhwc}, MakeCall("nn.conv2d", {nhwc, RandomConstant({8, 16, 3, 3}, 71)},
                                                    {{"data_layout", "NHWC"}, {"kernel_layout", "OIHW"}}))),
            "takes channels on axis 1 only, got NHWC");
}

}  // namespace
}  // namespace collage
