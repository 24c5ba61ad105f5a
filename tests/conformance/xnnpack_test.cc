// xnnpack_test.cc: every pattern of XNNPACK's table against the reference: random shapes, both layouts, threads, 8
// bits.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <random>

#include "bytecode/bytecode.h"
#include "collage/ir/infer_type.h"
#include "collage/runtime/kernel.h"
#include "collage/runtime/thread_pool.h"
#include "collage/vm/vm.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"
#include "conformance/pattern_text.h"
#include "ir/eval/interpreter.h"
#include "runtime/random_inputs.h"

namespace collage {
namespace {

using conformance::Anchor;
using conformance::BuiltinToolchain;
using conformance::Clip;
using conformance::Div;
using conformance::Input;
using conformance::Mul;
using conformance::Options;
using conformance::Plus;
using conformance::RandomConstant;
using conformance::Scalar;
using V = std::vector<int64_t>;

constexpr Layout kLast = Layout::kChannelsLast;

const Toolchain& Xnnpack() { return BuiltinToolchain("xnnpack"); }

class XnnpackTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Xnnpack().Probe().available) GTEST_SKIP() << Xnnpack().Probe().reason;
  }
};

/// The row as a kernel of a program, around which values are plain.
void ExpectInProgram(const std::string& name, const Function& function) {
  SCOPED_TRACE(name + " in a program");
  const Function composite = WithAttr(function, "Composite", "xnnpack." + name);
  std::vector<Var> params, inputs;
  std::vector<Value> values;
  for (const Var& param : function->params()) {
    params.push_back(MakeVar(param->name(), param->type_annotation()));
    inputs.push_back(MakeVar(param->name(), param->type_annotation()));
    const Tensor value = Tensor::Empty(AsTensorType(param->type_annotation())->static_shape(), kFloat32);
    FillRandom(value, values.size());
    values.emplace_back(value);
  }
  const Function partition = MakeFunction(params, MakeCall(Expr(composite), {params.begin(), params.end()}), nullptr,
                                          {{"Primitive", 1}, {"Compiler", "xnnpack"}});
  const Function main = MakeFunction(inputs, MakeCall(Expr(partition), {inputs.begin(), inputs.end()}));
  const IRModule module = InferTypes(IRModule::FromFunction(main));
  const vm::Executable program = vm::Compile(module, {.toolchains = &ToolchainRegistry::Global()});
  EXPECT_EQ(program.program().kernels.size(), 1u) << program.Disassemble();
  const Value expected = Interpret(module, "main", values);
  EXPECT_TRUE(ValuesEqual(expected, vm::Machine(program).Invoke("main", values), 1e-3));
}

bool IsFloat32(const Function& function) {
  return std::ranges::all_of(function->params(), [](const Var& param) {
    const TensorTypeNode* type = AsTensorType(param->type_annotation());
    return type != nullptr && type->dtype() == kFloat32;
  });
}

/// Alone, and, where it takes channels-last values, in a program.
void ExpectRow(const std::string& name, const Function& function, const Options& options = {}) {
  conformance::ExpectRow(Xnnpack(), "xnnpack." + name, function, options);
  const std::vector<Layout>& layouts = options.layouts.inputs;
  if (std::ranges::find(layouts, kLast) != layouts.end() && IsFloat32(function)) ExpectInProgram(name, function);
}

std::string RefusalOf(const std::string& name, const Function& function) {
  return conformance::RefusalOf(Xnnpack(), "xnnpack." + name, function);
}

Options ChannelsLast(size_t inputs = 1, int num_threads = 1) {
  return {.layouts = {std::vector<Layout>(inputs, kLast), {kLast}}, .num_threads = num_threads};
}

Expr Relu(const Expr& x) { return MakeCall("nn.relu", {x}); }

// ---- windows ----

struct ConvCase {
  const char* label;
  Shape data;
  Shape weight;
  Attrs attrs;
};

class XnnpackConv : public testing::TestWithParam<ConvCase> {};

TEST_P(XnnpackConv, AgreesChannelsLast) {
  if (!Xnnpack().Probe().available) GTEST_SKIP() << Xnnpack().Probe().reason;
  const ConvCase& c = GetParam();
  const Var x = Input("x", c.data);
  const Expr conv = MakeCall("nn.conv2d", {x, RandomConstant(c.weight, 3, -0.3, 0.3)}, c.attrs);
  const Expr biased = Plus(conv, RandomConstant({c.weight[0], 1, 1}, 4));
  for (int threads : {1, 2}) {
    ExpectRow("conv2d_bias_relu", MakeFunction({x}, Relu(biased)), ChannelsLast(1, threads));
    ExpectRow("conv2d_bias_clip", MakeFunction({x}, Clip(biased, -0.25, 0.5)), ChannelsLast(1, threads));
    ExpectRow("conv2d", MakeFunction({x}, conv), ChannelsLast(1, threads));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, XnnpackConv,
    testing::Values(ConvCase{"pointwise", {1, 32, 7, 7}, {40, 32, 1, 1}, {}},
                    ConvCase{"same", {1, 16, 14, 15}, {24, 16, 3, 3}, {{"padding", V{1, 1}}}},
                    ConvCase{"asymmetric", {1, 15, 9, 11}, {7, 15, 3, 3}, {{"padding", V{0, 1, 2, 3}}}},
                    ConvCase{"strided", {2, 16, 13, 12}, {17, 16, 3, 3}, {{"padding", V{1, 1}}, {"strides", V{2, 3}}}},
                    ConvCase{"dilated", {1, 16, 19, 13}, {16, 16, 3, 2}, {{"dilation", V{2, 3}}, {"padding", V{2, 1}}}},
                    ConvCase{"grouped", {1, 32, 9, 11}, {48, 8, 3, 3}, {{"groups", 4}, {"padding", V{1, 1}}}},
                    ConvCase{"depthwise", {1, 23, 9, 11}, {23, 1, 5, 5}, {{"groups", 23}, {"padding", V{2, 2}}}},
                    ConvCase{
                        "depthwise_multiplied", {1, 8, 9, 9}, {16, 1, 3, 3}, {{"groups", 8}, {"padding", V{1, 1}}}},
                    ConvCase{"image", {1, 3, 23, 23}, {16, 3, 7, 7}, {{"padding", V{3, 3}}, {"strides", V{2, 2}}}}),
    [](const auto& info) { return std::string(info.param.label); });

TEST_F(XnnpackTest, RandomConvolutions) {
  std::mt19937 random(7);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < 30; ++trial) {
    const int64_t groups = draw(1, 3), in = groups * draw(1, 12), out = groups * draw(1, 20);
    const V kernel{draw(1, 4), draw(1, 4)};
    const Shape data{draw(1, 2), in, draw(4, 17), draw(4, 17)};
    const Attrs attrs{{"groups", groups},
                      {"strides", V{draw(1, 2), draw(1, 3)}},
                      {"padding", V{draw(0, 2), draw(0, 2), draw(0, 2), draw(0, 2)}}};
    SCOPED_TRACE("data " + ToString(data) + " to " + std::to_string(out) + " in groups " + std::to_string(groups));
    const Var x = Input("x", data);
    const Expr w = RandomConstant({out, in / groups, kernel[0], kernel[1]}, static_cast<uint32_t>(trial), -0.4, 0.4);
    ExpectRow("conv2d", MakeFunction({x}, MakeCall("nn.conv2d", {x, w}, attrs)), ChannelsLast(1, 1 + trial % 2));
  }
}

TEST_F(XnnpackTest, OneDimensionalWindows) {
  const Anchor a = Anchor::Conv(1);
  ExpectRow("conv1d_bias_relu", MakeFunction({a.x}, Relu(a.Biased())), ChannelsLast());
  const Var x = Input("x", {2, 12, 21});
  const Attrs window{{"pool_size", V{3}}, {"strides", V{2}}, {"padding", V{1}}};
  ExpectRow("max_pool1d", MakeFunction({x}, MakeCall("nn.max_pool1d", {x}, window)), ChannelsLast());
  ExpectRow("avg_pool1d", MakeFunction({x}, MakeCall("nn.avg_pool1d", {x}, window)), ChannelsLast());
}

TEST_F(XnnpackTest, TransposedConvolutions) {
  struct Case {
    Shape data, weight;
    Attrs attrs;
  };
  const std::vector<Case> cases{
      {{1, 16, 7, 9}, {16, 24, 4, 4}, {{"strides", V{2, 2}}, {"padding", V{1, 1}}}},
      {{1, 16, 7, 9}, {16, 8, 2, 2}, {{"strides", V{2, 2}}}},
      {{1, 15, 6, 5}, {15, 7, 3, 3}, {{"strides", V{2, 2}}, {"padding", V{1, 1}}, {"output_padding", V{1, 1}}}},
      {{1, 16, 6, 5}, {16, 4, 3, 3}, {{"groups", 2}, {"padding", V{1, 0, 0, 1}}}},
  };
  for (const Case& c : cases) {
    const Var x = Input("x", c.data);
    const Expr deconv = MakeCall("nn.conv2d_transpose", {x, RandomConstant(c.weight, 9, -0.3, 0.3)}, c.attrs);
    const int64_t channels = AsTensorType(InferType(deconv))->static_shape()[1];
    const Expr biased = Plus(deconv, RandomConstant({channels, 1, 1}, 10));
    ExpectRow("deconv2d_bias_relu", MakeFunction({x}, Relu(biased)), ChannelsLast(1, 2));
    ExpectRow("deconv2d", MakeFunction({x}, deconv), ChannelsLast());
  }
}

TEST_F(XnnpackTest, Pools) {
  const std::vector<Attrs> windows{
      {{"pool_size", V{3, 3}}, {"strides", V{2, 2}}, {"padding", V{1, 1}}},
      {{"pool_size", V{2, 2}}, {"strides", V{2, 2}}},
      {{"pool_size", V{3, 2}}, {"strides", V{2, 1}}, {"padding", V{0, 1, 1, 0}}},
      {{"pool_size", V{3, 3}}, {"strides", V{2, 2}}, {"ceil_mode", true}},
      {{"pool_size", V{2, 2}}, {"strides", V{3, 3}}},
      {{"pool_size", V{7, 7}}},
  };
  for (int64_t channels : {16, 13}) {
    const Var x = Input("x", {2, channels, 13, 12});
    for (const Attrs& window : windows) {
      const Expr max = MakeCall("nn.max_pool2d", {x}, window), avg = MakeCall("nn.avg_pool2d", {x}, window);
      ExpectRow("max_pool2d", MakeFunction({x}, max), ChannelsLast(1, 2));
      ExpectRow("max_pool2d_relu", MakeFunction({x}, Relu(max)), ChannelsLast());
      ExpectRow("avg_pool2d", MakeFunction({x}, avg), ChannelsLast(1, 2));
      ExpectRow("avg_pool2d_clip", MakeFunction({x}, Clip(avg, -0.1, 0.1)), ChannelsLast());
    }
    ExpectRow("global_avg_pool2d", MakeFunction({x}, MakeCall("nn.global_avg_pool2d", {x})), ChannelsLast());
    ExpectRow("global_max_pool2d", MakeFunction({x}, MakeCall("nn.global_max_pool2d", {x})), ChannelsLast());
  }
  Attrs counted = windows[0];
  counted.Set("count_include_pad", true);
  const Var x = Input("x", {1, 16, 13, 12});
  EXPECT_EQ(RefusalOf("avg_pool2d", MakeFunction({x}, MakeCall("nn.avg_pool2d", {x}, counted))),
            "leaves padding out of averages of floats");
}

TEST_F(XnnpackTest, Resizing) {
  for (const char* mode : {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"}) {
    for (const V& size : {V{10, 14}, V{13, 9}, V{4, 3}}) {
      const Var x = Input("x", {1, 7, 5, 7});
      const Attrs attrs{{"size", size}, {"method", "linear"}, {"coordinate_transformation_mode", mode}};
      ExpectRow("resize2d", MakeFunction({x}, MakeCall("image.resize2d", {x}, attrs)), ChannelsLast(1, 2));
    }
  }
  const Var x = Input("x", {1, 7, 5, 7});
  EXPECT_EQ(RefusalOf("resize2d",
                      MakeFunction({x}, MakeCall("image.resize2d", {x}, {{"size", V{10, 14}}, {"method", "cubic"}}))),
            "interpolates linearly only");
}

// ---- products, rows ----

TEST_F(XnnpackTest, DenseLayers) {
  std::mt19937 random(11);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < 12; ++trial) {
    const int64_t m = draw(1, 40), k = draw(1, 90), n = draw(1, 70);
    SCOPED_TRACE(ToString({m, k, n}));
    const Var x = Input("x", {m, k});
    const Expr dense = MakeCall("nn.dense", {x, RandomConstant({n, k}, static_cast<uint32_t>(trial), -0.3, 0.3)});
    ExpectRow("dense", MakeFunction({x}, dense), {.num_threads = 2});
    const Expr biased = MakeCall("nn.bias_add", {dense, RandomConstant({n}, 8)}, {{"axis", -1}});
    ExpectRow("dense_bias_relu", MakeFunction({x}, Relu(biased)));
  }
  const Var x = Input("x", {14, 24});
  const Expr y = MakeCall("reshape", {MakeCall("nn.dense", {x, RandomConstant({10, 24}, 12, -0.4, 0.4)})},
                          {{"newshape", V{2, 7, 10}}});
  ExpectRow("dense_bias", MakeFunction({x}, Plus(y, RandomConstant({10}, 13))));
}

TEST_F(XnnpackTest, SoftmaxOfTheInnermostAxis) {
  const Options wide{.low = -4, .high = 4};
  const Var x = Input("x", {3, 5, 33});
  ExpectRow("softmax", MakeFunction({x}, MakeCall("nn.softmax", {x})), wide);
  const Var image = Input("image", {1, 19, 4, 5});
  ExpectRow("softmax", MakeFunction({image}, MakeCall("nn.softmax", {image}, {{"axis", 1}})), ChannelsLast());
  const Var matrix = Input("matrix", {6, 5});
  EXPECT_EQ(RefusalOf("softmax", MakeFunction({matrix}, MakeCall("nn.softmax", {matrix}, {{"axis", 0}}))),
            "has softmax of the axis that is innermost in memory only");
}

// ---- element by element ----

TEST_F(XnnpackTest, FunctionsOfOneTensor) {
  const Options wide{.num_threads = 2, .low = -4, .high = 4};
  const Var x = Input("x", {3, 5, 1237});
  for (const char* name : {"abs", "negative", "floor", "ceil", "round", "trunc", "sigmoid"}) {
    ExpectRow(name, MakeFunction({x}, MakeCall(name, {x})), wide);
  }
  ExpectRow("sqrt", MakeFunction({x}, MakeCall("sqrt", {x})), {.low = 0, .high = 9});
  ExpectRow("relu", MakeFunction({x}, Relu(x)), wide);
  ExpectRow("clip", MakeFunction({x}, Clip(x, -1, 2)), wide);
  ExpectRow("leaky_relu", MakeFunction({x}, MakeCall("nn.leaky_relu", {x}, {{"alpha", 0.1}})), wide);
  ExpectRow("square", MakeFunction({x}, Mul(x, x)), wide);
  ExpectRow("square", MakeFunction({x}, MakeCall("power", {x, Scalar(2)})), wide);
  ExpectRow("hardswish", MakeFunction({x}, Mul(x, Div(Clip(Plus(x, Scalar(3)), 0, 6), Scalar(6)))), wide);
  ExpectRow("hardswish", MakeFunction({x}, Div(Mul(x, Clip(Plus(x, Scalar(3)), 0, 6)), Scalar(6))), wide);
  ExpectRow("hardswish", MakeFunction({x}, Mul(Mul(x, Clip(Plus(x, Scalar(3)), 0, 6)), Scalar(1.0 / 6))), wide);
  ExpectRow("hardswish", MakeFunction({x}, Mul(x, Clip(Plus(Mul(x, Scalar(1.0 / 6)), Scalar(0.5)), 0, 1))), wide);
  const Expr below = Plus(MakeCall("exp", {MakeCall("minimum", {x, Scalar(0)})}), Scalar(-1));
  ExpectRow("elu", MakeFunction({x}, Plus(Relu(x), below)), wide);
  ExpectRow("elu", MakeFunction({x}, Plus(Relu(x), Mul(below, Scalar(0.7)))), wide);
  // Looks like hard swish, but is scaled by another constant.
  EXPECT_NE(RefusalOf("hardswish", MakeFunction({x}, Mul(x, Div(Clip(Plus(x, Scalar(3)), 0, 6), Scalar(5))))), "none");
}

TEST_F(XnnpackTest, SlopesPerChannel) {
  const Var x = Input("x", {1, 19, 6, 5});
  ExpectRow("prelu", MakeFunction({x}, MakeCall("nn.prelu", {x, RandomConstant({19}, 3)}, {{"axis", 1}})),
            ChannelsLast());
  const Var row = Input("row", {4, 21});
  ExpectRow("prelu", MakeFunction({row}, MakeCall("nn.prelu", {row, RandomConstant({21}, 3)}, {{"axis", 1}})));
}

TEST_F(XnnpackTest, OperatorsOnTwoTensorsBroadcast) {
  const std::vector<std::pair<Shape, Shape>> shapes{{{2, 5, 6, 7}, {2, 5, 6, 7}},
                                                    {{2, 5, 6, 7}, {5, 1, 1}},
                                                    {{2, 5, 6, 7}, {7}},
                                                    {{2, 1, 6, 1}, {1, 5, 1, 7}},
                                                    {{9, 31}, {}}};
  for (const auto& [left, right] : shapes) {
    const Var a = Input("a", left), b = Input("b", right);
    for (const char* name : {"add", "subtract", "multiply", "maximum", "minimum"}) {
      ExpectRow(name, MakeFunction({a, b}, MakeCall(name, {a, b})), {.num_threads = 2});
      ExpectRow(name, MakeFunction({a, b}, MakeCall(name, {b, a})));
    }
    for (const char* name : {"add", "subtract", "multiply"}) {
      ExpectRow(std::string(name) + "_relu", MakeFunction({a, b}, Relu(MakeCall(name, {a, b}))));
      ExpectRow(std::string(name) + "_clip", MakeFunction({a, b}, Clip(MakeCall(name, {a, b}), -0.2, 0.3)));
    }
    const Options positive{.low = 0.5, .high = 2};
    ExpectRow("divide", MakeFunction({a, b}, Div(a, b)), positive);
    ExpectRow("divide_clip", MakeFunction({a, b}, Clip(Div(a, b), 0.7, 1.1)), positive);
    const Expr difference = MakeCall("subtract", {a, b});
    ExpectRow("squared_difference", MakeFunction({a, b}, Mul(difference, difference)));
    ExpectRow("squared_difference", MakeFunction({a, b}, MakeCall("power", {difference, Scalar(2)})));
  }
}

TEST_F(XnnpackTest, OperatorsKeepChannelsLast) {
  const Var a = Input("a", {1, 5, 6, 7}), b = Input("b", {1, 5, 6, 7}), one = Input("one", {5, 1, 1});
  ExpectRow("add", MakeFunction({a, b}, Plus(a, b)), ChannelsLast(2));
  const Layout plain = Layout::kPlain;
  ExpectRow("multiply", MakeFunction({a, one}, Mul(a, one)), {.layouts = {{kLast, plain}, {kLast}}});
  // A constant with several dimensions is reordered, one that varies along the channels only is not.
  ExpectRow("add", MakeFunction({a}, Plus(a, RandomConstant({1, 5, 6, 7}, 3))), ChannelsLast());
  ExpectRow("add", MakeFunction({a}, Plus(a, RandomConstant({6, 7}, 4))), ChannelsLast());
  ExpectRow("add", MakeFunction({a}, Plus(a, RandomConstant({5, 1, 1}, 5))), ChannelsLast());
}

TEST_F(XnnpackTest, PadsAndJoins) {
  const Var x = Input("x", {1, 5, 6, 7}), y = Input("y", {1, 3, 6, 7}), z = Input("z", {1, 4, 6, 7});
  const auto pair = [](int64_t before, int64_t after) { return AttrValue(V{before, after}); };
  const Attrs widths{{"pad_width", AttrValue(AttrValue::List{pair(0, 0), pair(1, 0), pair(2, 1), pair(0, 3)})}};
  for (const Options& options : {Options{.num_threads = 2}, ChannelsLast()}) {
    ExpectRow("pad", MakeFunction({x}, MakeCall("nn.pad", {x, Scalar(0.5)}, widths)), options);
  }
  ExpectRow("concatenate3", MakeFunction({x, y, z}, MakeCall("concatenate", {MakeTuple({x, y, z})}, {{"axis", 1}})),
            ChannelsLast(3));
  ExpectRow("concatenate2", MakeFunction({x, y}, MakeCall("concatenate", {MakeTuple({x, y})}, {{"axis", 1}})));
  const Var a = Input("a", {4, 3, 1}), b = Input("b", {4, 3, 6});
  ExpectRow("concatenate2", MakeFunction({a, b}, MakeCall("concatenate", {MakeTuple({a, b})}, {{"axis", -1}})));
}

// ---- 8 bits ----

Expr ScaleOf(double scale) { return MakeScalar(scale, kFloat32); }
Expr Dequantize(const Expr& x, double scale, int zero, DataType dtype, int64_t axis = -1) {
  return MakeCall("qnn.dequantize", {x, ScaleOf(scale), MakeScalar(zero, dtype)},
                  {{"axis", axis}, {"out_dtype", kFloat32}});
}
Expr Quantize(const Expr& x, double scale, int zero, DataType dtype) {
  return MakeCall("qnn.quantize", {x, ScaleOf(scale), MakeScalar(zero, dtype)}, {{"axis", -1}, {"out_dtype", dtype}});
}
Constant IntegerConstant(const Shape& shape, DataType dtype, uint32_t seed) {
  const bool is_signed = dtype == kInt8;
  return MakeConstant(conformance::RandomTensor(shape, dtype, is_signed ? -127 : 0, is_signed ? 127 : 255, seed));
}

/// Results may be one step of the quantisation beside the reference, which rounds once less; 128 is the largest one by
/// which differences are divided.
Options EightBits(DataType dtype, Options options = {}) {
  options.low = dtype == kInt8 ? -128 : 0;
  options.high = dtype == kInt8 ? 127 : 255;
  options.tolerance = 1.01 / 100;
  return options;
}

struct Signedness {
  DataType data, weights;
  int data_zero, weights_zero;
};

const Signedness kKinds[] = {
    {kInt8, kInt8, 3, 0}, {kUInt8, kUInt8, 121, 133}, {kUInt8, kInt8, 121, 0}, {kInt8, kUInt8, -7, 128}};

TEST_F(XnnpackTest, QuantisedContractions) {
  for (const Signedness& kind : kKinds) {
    SCOPED_TRACE(kind.data.ToString() + " by " + kind.weights.ToString());
    const double scale = 0.02, weight_scale = 0.01, result_scale = 0.09;
    const auto quantised = [&](const Expr& y) { return Quantize(y, result_scale, kind.data_zero, kind.data); };
    const Var image = Input("image", {1, 12, 9, 10}, kind.data);
    const Expr data = Dequantize(image, scale, kind.data_zero, kind.data);
    const auto weights = [&](const Shape& shape) {
      return Dequantize(IntegerConstant(shape, kind.weights, 5), weight_scale, kind.weights_zero, kind.weights);
    };
    const Expr conv = MakeCall("nn.conv2d", {data, weights({9, 12, 3, 3})}, {{"padding", V{1, 1}}});
    const Expr bias = RandomConstant({9, 1, 1}, 6, -2, 2);
    const Options image_options = EightBits(kind.data, ChannelsLast(1, 2));
    ExpectRow("q_conv2d", MakeFunction({image}, quantised(conv)), image_options);
    ExpectRow("q_conv2d_bias", MakeFunction({image}, quantised(Plus(conv, bias))), image_options);
    ExpectRow("q_conv2d_bias_clamp", MakeFunction({image}, quantised(Relu(Plus(conv, bias)))), image_options);
    const Expr deconv = MakeCall("nn.conv2d_transpose", {data, weights({12, 9, 2, 2})}, {{"strides", V{2, 2}}});
    ExpectRow("q_deconv2d_bias", MakeFunction({image}, quantised(Plus(deconv, bias))), image_options);
    const Var rows = Input("rows", {5, 37}, kind.data);
    const Expr dense = MakeCall("nn.dense", {Dequantize(rows, scale, kind.data_zero, kind.data), weights({11, 37})});
    ExpectRow("q_dense_bias", MakeFunction({rows}, quantised(Plus(dense, RandomConstant({11}, 7)))),
              EightBits(kind.data));
  }
}

TEST_F(XnnpackTest, ScalesPerChannelAreForSignedConvolutions) {
  const auto function = [](DataType data) {
    const Var image = Input("image", {1, 12, 9, 10}, data);
    const Expr scales = RandomConstant({9}, 3, 0.005, 0.02);
    const Expr zeros = MakeConstant(Tensor::Zeros({9}, kInt8));
    const Expr weights = MakeCall("qnn.dequantize", {IntegerConstant({9, 12, 3, 3}, kInt8, 5), scales, zeros},
                                  {{"axis", 0}, {"out_dtype", kFloat32}});
    const Expr conv = MakeCall("nn.conv2d", {Dequantize(image, 0.02, 2, data), weights});
    return MakeFunction({image}, Quantize(Plus(conv, RandomConstant({9, 1, 1}, 4)), 0.08, 1, data));
  };
  ExpectRow("q_conv2d_bias", function(kInt8), EightBits(kInt8, ChannelsLast()));
  EXPECT_EQ(RefusalOf("q_conv2d_bias", function(kUInt8)),
            "takes a scale per channel in convolutions of signed integers only");
}

TEST_F(XnnpackTest, BiasMayBeQuantisedToo) {
  const Var rows = Input("rows", {5, 37}, kInt8);
  const Expr dense = MakeCall(
      "nn.dense", {Dequantize(rows, 0.02, 1, kInt8), Dequantize(IntegerConstant({11, 37}, kInt8, 5), 0.01, 0, kInt8)});
  const Expr sums = MakeConstant(conformance::RandomTensor({11}, kInt32, -9000, 9000, 8));
  const Expr bias = MakeCall("qnn.dequantize", {sums, ScaleOf(0.0002), MakeScalar(0, kInt32)},
                             {{"axis", -1}, {"out_dtype", kFloat32}});
  ExpectRow("q_dense_bias", MakeFunction({rows}, Quantize(Plus(dense, bias), 0.09, -4, kInt8)), EightBits(kInt8));
}

TEST_F(XnnpackTest, QuantisedOperatorsPoolsAndFunctions) {
  for (const DataType dtype : {kInt8, kUInt8}) {
    SCOPED_TRACE(dtype.ToString());
    const bool is_signed = dtype == kInt8;
    const int zero = is_signed ? -5 : 118;
    const Var a = Input("a", {1, 11, 6, 7}, dtype), b = Input("b", {1, 11, 6, 7}, dtype);
    const Expr x = Dequantize(a, 0.03, zero, dtype), y = Dequantize(b, 0.02, zero + 4, dtype);
    for (const char* name : {"add", "subtract"}) {
      const Expr sum = MakeCall(name, {x, y});
      ExpectRow("q_" + std::string(name), MakeFunction({a, b}, Quantize(sum, 0.05, zero, dtype)),
                EightBits(dtype, {.num_threads = 2}));
      ExpectRow("q_" + std::string(name) + "_clamp",
                MakeFunction({a, b}, Quantize(Clip(sum, -1, 2), 0.05, zero, dtype)), EightBits(dtype));
    }
    ExpectRow("q_multiply", MakeFunction({a, b}, Quantize(Mul(x, y), 0.1, zero, dtype)), EightBits(dtype));
    ExpectRow("q_global_avg_pool2d",
              MakeFunction({a}, Quantize(MakeCall("nn.global_avg_pool2d", {x}), 0.005, zero, dtype)),
              EightBits(dtype, ChannelsLast()));
    const Attrs window{{"pool_size", V{3, 3}}, {"strides", V{2, 2}}, {"padding", V{1, 1}}};
    ExpectRow("q_max_pool2d", MakeFunction({a}, Quantize(MakeCall("nn.max_pool2d", {x}, window), 0.03, zero, dtype)),
              EightBits(dtype, ChannelsLast()));
    ExpectRow("max_pool2d", MakeFunction({a}, MakeCall("nn.max_pool2d", {a}, window)),
              EightBits(dtype, ChannelsLast()));
    if (!is_signed) {
      Attrs counted = window;
      counted.Set("count_include_pad", true);
      const auto averaged = [&](const Attrs& how) {
        return MakeFunction({a}, Quantize(MakeCall("nn.avg_pool2d", {x}, how), 0.03, zero, dtype));
      };
      ExpectRow("q_avg_pool2d", averaged(counted), EightBits(dtype, ChannelsLast()));
      ExpectRow("q_avg_pool2d", averaged({{"pool_size", V{2, 3}}}), EightBits(dtype, ChannelsLast()));
      EXPECT_EQ(RefusalOf("q_avg_pool2d", averaged(window)), "counts padding in averages of 8-bit integers");
      ExpectRow("q_leaky_relu",
                MakeFunction({a}, Quantize(MakeCall("nn.leaky_relu", {x}, {{"alpha", 0.1}}), 0.03, zero, dtype)),
                EightBits(dtype));
      const Var rows = Input("rows", {5, 13}, dtype);
      const Expr softmax = MakeCall("nn.softmax", {Dequantize(rows, 0.03, 9, dtype)});
      ExpectRow("q_softmax", MakeFunction({rows}, Quantize(softmax, 1.0 / 256, 0, dtype)), EightBits(dtype));
    }
    ExpectRow("q_sigmoid",
              MakeFunction({a}, Quantize(MakeCall("sigmoid", {x}), 1.0 / 256, is_signed ? -128 : 0, dtype)),
              EightBits(dtype));
    ExpectRow("q_tanh", MakeFunction({a}, Quantize(MakeCall("tanh", {x}), 1.0 / 128, is_signed ? 0 : 128, dtype)),
              EightBits(dtype));
    ExpectRow("dequantize", MakeFunction({a}, x), EightBits(dtype, ChannelsLast()));
    const Var f = Input("f", {3, 55});
    ExpectRow("quantize", MakeFunction({f}, Quantize(f, 0.01, zero, dtype)),
              {.tolerance = 1.01 / 100, .low = -2, .high = 2});
  }
}

// ---- refusals and edges ----

TEST_F(XnnpackTest, DeclinesWithReasons) {
  const Var half = Input("half", {4, 6}, kFloat16), wide = Input("wide", {4, 6}, kFloat64);
  EXPECT_EQ(RefusalOf("relu", MakeFunction({half}, Relu(half))),
            "leaves float16 to others: on x86 this version rounds every partial sum to 16 bits");
  EXPECT_EQ(RefusalOf("relu", MakeFunction({wide}, Relu(wide))),
            "computes float32 and quantised 8-bit integers only, got float64");
  const Var x = Input("x", {1, 16, 7, 7}), w = Input("w", {4, 16, 3, 3});
  EXPECT_EQ(RefusalOf("conv2d", MakeFunction({x, w}, MakeCall("nn.conv2d", {x, w}))),
            "takes constant weights only, which are packed once");
  EXPECT_EQ(RefusalOf("clip", MakeFunction({x}, Clip(x, 2, 2))), "clamps to [2, 2], which is no range");
  const Var bytes = Input("bytes", {1, 16, 7, 7}, kInt8);
  const Expr pool = MakeCall("nn.max_pool2d", {bytes}, {{"pool_size", V{2, 2}}});
  EXPECT_EQ(RefusalOf("max_pool2d_relu", MakeFunction({bytes}, Relu(pool))), "clamps 8-bit integers with scales only");
  const Expr softmax = MakeCall("nn.softmax", {x}, {{"axis", 1}});
  EXPECT_EQ(RefusalOf("softmax", MakeFunction({x}, Clip(softmax, 0, 0.5))), "fuses no clamp into this operator");
  const Expr conv = MakeCall("nn.conv2d", {x, RandomConstant({4, 16, 3, 3}, 1)});
  EXPECT_EQ(RefusalOf("conv2d_bias", MakeFunction({x}, Plus(conv, RandomConstant({1, 4, 5, 5}, 2)))),
            "adds one value per channel only, got (1, 4, 5, 5)");
  const Function plain = MakeFunction({x}, conv);
  InferType(plain);
  const auto answer = Xnnpack().RelayToRuntime({plain, PlainLayouts(1, 1), 1});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.reason().text, "reads and writes images channels-last only");
}

TEST_F(XnnpackTest, OffersWhatItComputes) {
  const Var x = Input("x", {1, 16, 7, 7});
  const Function conv = MakeFunction({x}, MakeCall("nn.conv2d", {x, RandomConstant({4, 16, 3, 3}, 1)}));
  InferType(conv);
  EXPECT_EQ(Xnnpack().Layouts(conv, {true}, {true}), (std::vector<BoundaryLayouts>{{{kLast}, {kLast}}}));
  const Function relu = MakeFunction({x}, Relu(x));
  InferType(relu);
  EXPECT_EQ(Xnnpack().Layouts(relu, {true}, {true}),
            (std::vector<BoundaryLayouts>{{{kLast}, {kLast}}, PlainLayouts(1, 1)}));
}

TEST_F(XnnpackTest, ReadsNothingBehindAnOperandThatEndsItsPage) {
  // 5 channels of floats end within a vector; the page behind the data is not there.
  const Var x = Input("x", {1, 5, 8, 8});
  const Function function = MakeFunction({x}, MakeCall("nn.max_pool2d", {x}, {{"pool_size", V{2, 2}}}));
  InferType(function);
  const BoundaryLayouts layouts{{kLast}, {kLast}};
  auto compiled = Xnnpack().RelayToRuntime({function, layouts, 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const auto kernel = GetKernelLoader("xnnpack").Load({compiled->blob, compiled->constants, 1});
  constexpr size_t kPage = 4096, kBytes = 5 * 8 * 8 * sizeof(float);
  auto* pages =
      static_cast<std::byte*>(mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(munmap(pages + kPage, kPage), 0);
  void* input = pages + kPage - kBytes;
  auto* values = static_cast<float*>(input);
  for (int i = 0; i < 320; ++i) values[i] = static_cast<float>(i);
  std::vector<float> result(5 * 7 * 7);
  void* output = result.data();
  kernel->Bind({&input, 1}, {&output, 1}, nullptr);
  kernel->Run();
  EXPECT_EQ(result.front(), 45.0f);  // row 1, column 1, channel 0
  EXPECT_EQ(result.back(), 319.0f);
  values[319] = 1000;  // a copy is made at every run
  kernel->Run();
  EXPECT_EQ(result.back(), 1000.0f);
  munmap(pages, kPage);
}

/// Counts how often every element of a grid is visited.
struct Visits {
  std::array<size_t, 3> sizes;
  std::vector<std::atomic<int>> counts;
  explicit Visits(std::array<size_t, 3> the_sizes)
      : sizes(the_sizes), counts(the_sizes[0] * the_sizes[1] * the_sizes[2]) {}

  static void Tile(void* self, size_t i, size_t j, size_t k, size_t size_j, size_t size_k) {
    auto& visits = *static_cast<Visits*>(self);
    for (size_t y = j; y < j + size_j; ++y) {
      for (size_t x = k; x < k + size_k; ++x) ++visits.counts.at((i * visits.sizes[1] + y) * visits.sizes[2] + x);
    }
  }
};

TEST_F(XnnpackTest, ItsLoopsRunOnTheProcessesOwnThreads) {
  GetKernelLoader("xnnpack");
  void* library = dlopen("libpthreadpool.so.0", RTLD_LAZY | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  void* pool = dlsym(library, "collage_shared_pthreadpool");
  ASSERT_NE(pool, nullptr) << "another library of that name is loaded";
  using ParallelFn = void(void*, decltype(&Visits::Tile), void*, size_t, size_t, size_t, size_t, size_t, uint32_t);
  auto* parallel = reinterpret_cast<ParallelFn*>(dlsym(library, "pthreadpool_parallelize_3d_tile_2d"));
  ASSERT_NE(parallel, nullptr);
  for (int threads : {1, 3}) {
    SetNumThreads(threads);
    for (const auto& sizes : {std::array<size_t, 3>{3, 7, 10}, {1, 1, 1}, {5, 4, 9}, {2, 0, 4}}) {
      for (void* given : {pool, static_cast<void*>(nullptr)}) {
        Visits visits(sizes);
        parallel(given, &Visits::Tile, &visits, sizes[0], sizes[1], sizes[2], 2, 4, 0);
        for (const auto& count : visits.counts) ASSERT_EQ(count.load(), 1);
      }
    }
  }
}

TEST_F(XnnpackTest, ABrokenKernelIsCorrupt) {
  const std::string text = R"({"kind": 99})";
  try {
    GetKernelLoader("xnnpack").Load({std::as_bytes(std::span(text)), {}, 1});
    FAIL() << "loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kCorrupt);
  }
}

}  // namespace
}  // namespace collage
