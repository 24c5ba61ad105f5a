// native_test.cc: the native toolchain against the reference: every operator's examples in each layout it offers, and
// the combinations that models are made of.
#include <gtest/gtest.h>

#include <cmath>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "conformance/conformance.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

using conformance::ExampleFunction;
using conformance::ExpectAgrees;
using conformance::Input;
using conformance::RandomConstant;
using V = std::vector<int64_t>;

const Toolchain& Native() { return conformance::BuiltinToolchain("native"); }

/// The layouts that the toolchain likes best when all tensors of rank 3 to 5 may be channels-last, and plain ones.
std::vector<BoundaryLayouts> OfferedLayouts(const Function& function) {
  const auto is_eligible = [](const Type& type) {
    const int rank = AsTensorType(type)->rank();
    return rank >= 3 && rank <= 5;
  };
  std::vector<bool> inputs;
  for (const Var& param : function->params()) inputs.push_back(is_eligible(param->checked_type()));
  std::vector<bool> outputs;
  for (const Type& type : FlattenTensorTypes(function->body()->checked_type())) outputs.push_back(is_eligible(type));
  std::vector<BoundaryLayouts> layouts = Native().Layouts(function, inputs, outputs);
  layouts.push_back(PlainLayouts(inputs.size(), outputs.size()));
  if (layouts.back() == layouts.front()) layouts.pop_back();
  return {layouts.front(), layouts.back()};
}

TEST(NativeTest, OperatorsAgreeOnTheirExamples) {
  int tried = 0;
  for (const Op& op : AllOps()) {
    for (const OpExample& example : op->def().examples) {
      SCOPED_TRACE(op->name());
      const Function function = ExampleFunction(op->def(), example);
      InferType(function);
      const Result<void> answer = Native().SupportsCall(*As<CallNode>(function->body()));
      if (!answer.ok()) {
        EXPECT_FALSE(answer.reason().text.empty());
        RecordProperty("declined " + op->name(), answer.reason().text);
        continue;
      }
      for (const BoundaryLayouts& layouts : OfferedLayouts(function)) {
        ExpectAgrees(Native(), function, {.layouts = layouts, .low = example.low, .high = example.high});
      }
      ++tried;
      if (!op->name().starts_with("nn.conv") && op->name() != "nn.dense") continue;
      const Function with_weights = ExampleFunction(op->def(), example, 1);
      InferType(with_weights);
      ExpectAgrees(Native(), with_weights,
                   {.layouts = OfferedLayouts(with_weights).front(), .low = example.low, .high = example.high});
    }
  }
  EXPECT_GE(tried, 220);
}

TEST(NativeTest, ReasonsAreGivenForWhatIsNotLowered) {
  const auto reason_of = [](const Function& function) {
    InferType(function);
    const Result<void> answer = Native().SupportsCall(*As<CallNode>(function->body()));
    return answer.ok() ? std::string("supported") : answer.reason().text;
  };
  const Var wide = Input("x", {3}, DataType::UInt(64));
  EXPECT_EQ(reason_of(MakeFunction({wide}, MakeCall("add", {wide, wide}))), "uint64 tensors");
  const Var truth = Input("x", {3}, kBool);
  EXPECT_EQ(reason_of(MakeFunction({truth}, MakeCall("sum", {truth}))), "'sum' of truth values");
  const Var unknown = MakeVar("x", TensorType(std::vector<Dim>{Dim::Any(), Dim(3)}, kFloat32));
  EXPECT_EQ(reason_of(MakeFunction({unknown}, MakeCall("nn.relu", {unknown}))), "dynamic shapes");
}

TEST(NativeTest, ProductsOfOddSizesWithEpilogueAgree) {
  for (const auto& [m, k, n] :
       {std::tuple{1, 7, 5}, {13, 33, 47}, {12, 64, 32}, {25, 17, 100}, {3, 128, 16}, {1, 64, 64}}) {
    const Var x = Input("x", {m, k});
    const Expr dense = MakeCall("nn.dense", {x, RandomConstant({n, k}, 1)});
    const Expr biased = MakeCall("add", {dense, RandomConstant({n}, 2)});
    ExpectAgrees(Native(), MakeFunction({x}, MakeCall("nn.relu", {biased})));
  }
}

TEST(NativeTest, ProductsWhoseLastVectorIsHalfEmptyAgree) {
  for (const int64_t n : {1, 8, 9, 24, 25, 38, 40, 56}) {
    for (const DataType dtype : {kFloat32, kFloat64, kInt32}) {
      SCOPED_TRACE(std::to_string(n) + " columns of " + dtype.ToString());
      const Var x = Input("x", {2, 13, 20}, dtype), y = Input("y", {2, 20, n}, dtype);
      const Expr weight = MakeConstant(conformance::RandomTensor({n, 20}, dtype, -3, 3, 1));
      const Expr packed = MakeCall("nn.dense", {MakeCall("reshape", {x}, {{"newshape", V{26, 20}}}), weight});
      ExpectAgrees(Native(), MakeFunction({x}, MakeCall("abs", {packed})), {.low = -3, .high = 3});
      const Expr in_place = MakeCall("nn.batch_matmul", {x, y});
      const Var other = Input("other", {2, 13, n}, dtype);
      ExpectAgrees(Native(), MakeFunction({x, y, other}, MakeCall("add", {in_place, other})), {.low = -3, .high = 3});
    }
  }
}

TEST(NativeTest, NormsOfNothingAgree) {
  for (const DataType dtype : {kFloat32, kBFloat16}) {
    const Var x = Input("x", {64, 70, 70, 0}, dtype);
    const Expr ones = MakeConstant(conformance::RandomTensor({0}, dtype, 1, 1, 1));
    ExpectAgrees(Native(), MakeFunction({x}, MakeCall("nn.layer_norm", {x, ones, ones}, {{"axis", 3}})));
    ExpectAgrees(Native(), MakeFunction({x}, MakeCall("nn.softmax", {x}, {{"axis", 3}})));
    const Expr sums = MakeCall("sum", {x}, {{"axis", V{3}}, {"keepdims", true}});
    ExpectAgrees(Native(), MakeFunction({x}, MakeCall("subtract", {x, sums})));
  }
}

TEST(NativeTest, ConvolutionsOfOneTapWithEpiloguesOfAllShapesAgree) {
  for (const Shape& data : {Shape{1, 5, 6, 7}, Shape{3, 5, 4, 1}, Shape{2, 5, 1, 1}, Shape{1, 5, 1, 9}}) {
    const Var x = Input("x", data);
    Shape result = data;
    result[1] = 20;
    const Var sum = Input("sum", result), column = Input("column", {1, 1, data[2], 1}), scale = Input("s", {20, 1, 1});
    const Expr convolution = MakeCall("nn.conv2d", {x, RandomConstant({20, 5, 1, 1}, 1)});
    const Expr biased = MakeCall("nn.bias_add", {convolution, RandomConstant({20}, 2)}, {{"axis", 1}});
    const Expr sloped = MakeCall("nn.prelu", {biased, RandomConstant({20}, 3)}, {{"axis", 1}});
    const Expr whole = MakeCall("add", {MakeCall("multiply", {sloped, scale}), MakeCall("tanh", {sum})});
    for (const Function& function :
         {MakeFunction({x}, convolution), MakeFunction({x, scale, sum}, whole),
          MakeFunction({x, column}, MakeCall("add", {biased, column})),
          MakeFunction({x, sum},
                       MakeCall("nn.bias_add", {MakeCall("add", {convolution, sum}), RandomConstant({data[3]}, 4)},
                                {{"axis", 3}}))}) {
      InferType(function);
      const size_t count = function->params().size();
      for (const Layout of_sum : {Layout::kPlain, Layout::kChannelsLast}) {
        BoundaryLayouts layouts{std::vector<Layout>(count, Layout::kChannelsLast), {Layout::kChannelsLast}};
        for (size_t i = 1; i < count; ++i) {
          layouts.inputs[i] = function->params()[i] == sum ? of_sum : Layout::kPlain;
        }
        SCOPED_TRACE(ToString(data) + std::to_string(count) + std::string(ToString(of_sum)));
        ExpectAgrees(Native(), function, {.layouts = layouts});
      }
    }
  }
}

TEST(NativeTest, PlanesOfFewChannelsAreReadWhereTheyLie) {
  for (const int64_t pad : {0, 1}) {
    const Var x = Input("x", {2, 3, 21, 33});
    const Function function = MakeFunction({x}, MakeCall("nn.conv2d", {x, RandomConstant({20, 3, 3, 3}, 1)},
                                                         {{"padding", V{pad, pad}}, {"strides", V{2, 2}}}));
    const BoundaryLayouts layouts{{Layout::kPlain}, {Layout::kChannelsLast}};
    ExpectAgrees(Native(), function, {.layouts = layouts});
    const Result<CompiledPartition> compiled = Native().RelayToRuntime({function, layouts, 1});
    ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
    const int64_t padded = pad == 0 ? 0 : 2 * 3 * 23 * 35 * static_cast<int64_t>(sizeof(float));
    EXPECT_NEAR(static_cast<double>(compiled->workspace_bytes), static_cast<double>(padded), 64);
  }
}

TEST(NativeTest, ThreadsShareTheWork) {
  const Var x = Input("x", {128, 256});
  const Expr dense = MakeCall("nn.dense", {x, RandomConstant({96, 256}, 1)});
  ExpectAgrees(Native(), MakeFunction({x}, MakeCall("tanh", {dense})), {.num_threads = 2});
  const Var y = Input("y", {64, 33, 50});
  ExpectAgrees(Native(), MakeFunction({y}, MakeCall("transpose", {y}, {{"axes", V{0, 2, 1}}})), {.num_threads = 2});
  ExpectAgrees(Native(), MakeFunction({y}, MakeCall("nn.softmax", {y})), {.num_threads = 2});
  ExpectAgrees(Native(), MakeFunction({y}, MakeCall("sum", {y}, {{"axis", V{0}}})), {.num_threads = 2});
}

TEST(NativeTest, AttentionSoftmaxWithScaleAndMaskAgrees) {
  const Var x = Input("x", {3, 17, 33});
  const Var mask = Input("mask", {1, 1, 33});
  const Expr scaled = MakeCall("multiply", {x, MakeScalar(0.125, kFloat32)});
  ExpectAgrees(Native(), MakeFunction({x, mask}, MakeCall("nn.softmax", {MakeCall("add", {scaled, mask})})));
}

TEST(NativeTest, SoftmaxOfNumbersFarApart) {
  for (const Shape& shape : {Shape{5, 33}, {3, 7, 197}, {6, 64}, {3, 1100}, {2, 30, 17}}) {
    const Var x = Input("x", shape);
    for (const char* op : {"nn.softmax", "nn.log_softmax"}) {
      for (const int64_t axis : {-1, -2}) {
        const Function function = MakeFunction({x}, MakeCall(op, {x}, {{"axis", axis}}));
        for (const double most : {5.0, 150.0, 1e9}) {
          ExpectAgrees(Native(), function, {.tolerance = 2e-6, .low = -most, .high = most});
        }
      }
    }
  }
  // Elements that are nothing, among them all but one.
  Tensor mask = Tensor::Zeros({4, 40}, kFloat32);
  for (int64_t i = 0; i < 40; ++i) {
    for (const int64_t row : {1, 2}) {
      if (i % 3 == row || (row == 2 && i != 7)) mask.data<float>()[row * 40 + i] = -INFINITY;
    }
  }
  const Var x = Input("x", {4, 40});
  ExpectAgrees(Native(), MakeFunction({x}, MakeCall("nn.softmax", {MakeCall("add", {x, MakeConstant(mask)})})));
}

TEST(NativeTest, RowsThatRegistersDoNotHoldOverlap) {
  // Groups of four rows: one, several, some left over; rows with and without a rest, up to where they no longer
  // overlap.
  for (const int64_t rows : {4, 8, 23}) {
    for (const int64_t length : {70, 96, 130, 512, 513}) {
      const Var x = Input("x", {rows, length});
      const Var y = Input("y", {rows, length});
      const Var scale = Input("scale", {length});
      const Var shift = Input("shift", {length});
      // Of what lies in memory, of what has to be computed, with more behind.
      for (const Expr& data : {Expr(x), MakeCall("add", {x, MakeCall("nn.relu", {y})})}) {
        const Expr softmax = MakeCall("nn.softmax", {data});
        const Expr norm = MakeCall("nn.layer_norm", {data, scale, shift});
        for (const Expr& whole : {softmax, norm, MakeCall("multiply", {softmax, y}), MakeCall("add", {norm, x})}) {
          const Function function = MakeFunction({x, y, scale, shift}, whole);
          ExpectAgrees(Native(), function, {.num_threads = 3, .tolerance = 4e-6, .low = -9, .high = 9});
        }
      }
    }
  }
}

/// x / sqrt(mean(x x) + 1e-5) times a scale.
Function RowNorm(const Shape& shape, DataType dtype) {
  const Var x = Input("x", shape, dtype);
  const Var scale = Input("scale", {shape.back()}, dtype);
  const Attrs last{{"axis", V{-1}}, {"keepdims", true}};
  const Expr squares = MakeCall("mean", {MakeCall("multiply", {x, x})}, last);
  const Expr root = MakeCall("sqrt", {MakeCall("add", {squares, MakeScalar(1e-5, dtype)})});
  return MakeFunction({x, scale}, MakeCall("multiply", {MakeCall("divide", {x, root}), scale}));
}

TEST(NativeTest, RowsAreDividedByWhatIsMadeOfThem) {
  for (const Shape& shape : {Shape{5, 1024}, {3, 7, 50}, {9, 3}, {1, 2, 3, 200}, {6, 1}}) {
    for (const DataType dtype : {kFloat32, kFloat64, kFloat16}) {
      const Function function = RowNorm(shape, dtype);
      ExpectAgrees(Native(), function, {.num_threads = 2, .tolerance = dtype == kFloat16 ? 1e-2 : 2e-6});
    }
    const Var x = Input("x", shape);
    for (const char* op : {"max", "min", "sum"}) {
      const Expr extreme = MakeCall(op, {MakeCall("abs", {x})}, {{"axis", V{-1}}, {"keepdims", true}});
      const Expr shifted = MakeCall("add", {extreme, MakeScalar(1, kFloat32)});
      ExpectAgrees(Native(), MakeFunction({x}, MakeCall("subtract", {MakeCall("divide", {x, shifted}), extreme})));
      ExpectAgrees(Native(), MakeFunction({x}, MakeTuple({MakeCall("divide", {x, shifted}), extreme})));
    }
  }
  const Function function = RowNorm({64, 1000}, kFloat32);
  InferType(function);
  const Result<CompiledPartition> compiled = Native().RelayToRuntime({function, PlainLayouts(2, 1), 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  EXPECT_EQ(compiled->workspace_bytes, 0U);  // nothing is kept between two walks over the data
}

TEST(NativeTest, GeluWrittenOutAgrees) {
  const Var x = Input("x", {9, 70});
  const Expr erf = MakeCall("erf", {MakeCall("divide", {x, MakeScalar(1.41421356, kFloat32)})});
  const Expr factor = MakeCall("add", {erf, MakeScalar(1, kFloat32)});
  const Expr half = MakeCall("multiply", {MakeCall("multiply", {x, factor}), MakeScalar(0.5, kFloat32)});
  ExpectAgrees(Native(), MakeFunction({x}, half), {.low = -5, .high = 5});
}

TEST(NativeTest, ExponentialsOverflowAndKeepNotANumber) {
  const Var x = Input("x", {40});
  ExpectAgrees(Native(), MakeFunction({x}, MakeCall("exp", {x})), {.tolerance = 1e-6, .low = 80, .high = 100});
  ExpectAgrees(Native(), MakeFunction({x}, MakeCall("exp", {x})), {.low = -200, .high = -50});
  const Expr nan = MakeCall("sqrt", {x});
  for (const char* op : {"exp", "nn.relu", "tanh", "sigmoid", "erf"}) {
    ExpectAgrees(Native(), MakeFunction({x}, MakeCall(op, {nan})));
  }
}

TEST(NativeTest, FunctionsAgreeFarFromZero) {
  const Var x = Input("x", {200});
  for (const char* op : {"sin", "cos"})
    ExpectAgrees(Native(), MakeFunction({x}, MakeCall(op, {x})), {.tolerance = 2e-6, .low = -5000, .high = 5000});
  ExpectAgrees(Native(), MakeFunction({x}, MakeCall("log", {x})), {.tolerance = 1e-6, .low = -1, .high = 1e30});
  const Expr tiny = MakeCall("multiply", {x, MakeScalar(1e-39, kFloat32)});
  ExpectAgrees(Native(), MakeFunction({x}, MakeCall("log", {tiny})), {.tolerance = 1e-4, .low = 0.5, .high = 50});
  for (const char* op : {"tanh", "erf", "sigmoid"})
    ExpectAgrees(Native(), MakeFunction({x}, MakeCall(op, {x})), {.tolerance = 1e-6, .low = -20, .high = 20});
}

/// Bounds of vector_math.h.
void ExpectErrorBounds(const Toolchain& native) {
  const Var x = Input("x", {100, 601});
  for (const char* op : {"tanh", "erf"}) {
    for (const double range : {0.1, 1.0, 5.0, 12.0}) {
      ExpectAgrees(native, MakeFunction({x}, MakeCall(op, {x})), {.tolerance = 1.5e-7, .low = -range, .high = range});
    }
  }
  // Where results are next to 1, errors relative to the largest are relative ones.
  ExpectAgrees(native, MakeFunction({x}, MakeCall("exp", {x})), {.tolerance = 2e-7, .low = -0.4, .high = 0});
  for (const double shift : {-80.0, -20.0, 30.0, 86.0}) {
    const Expr scaled = MakeCall("exp", {MakeCall("subtract", {x, MakeScalar(static_cast<float>(shift), kFloat32)})});
    const Expr back = MakeCall("multiply", {scaled, MakeScalar(static_cast<float>(std::exp(shift)), kFloat32)});
    ExpectAgrees(native, MakeFunction({x}, back), {.tolerance = 4e-7, .low = -0.4, .high = 0.2});
  }
}

TEST(NativeTest, FunctionsKeepTheirErrorBounds) {
  ExpectErrorBounds(Native());
  const auto avx2 = ToolchainConfiguration::Parse("native -mcpu=x86-64-v3", ToolchainRegistry::Global()).Make();
  ExpectErrorBounds(*avx2);
}

TEST(NativeTest, ResultsOfOnePartitionShareWhatTheyNeed) {
  const Var x = Input("x", {5, 24});
  const Expr dense = MakeCall("nn.dense", {x, RandomConstant({33, 24}, 1)});
  const Expr relu = MakeCall("nn.relu", {dense});
  const Expr sum = MakeCall("sum", {relu}, {{"axis", V{1}}});
  ExpectAgrees(Native(), MakeFunction({x}, MakeTuple({relu, dense, sum})));
  const Expr parts = MakeCall("split", {relu}, {{"indices_or_sections", 3}, {"axis", 1}});
  const Expr product = MakeCall("multiply", {MakeTupleGetItem(parts, 0), MakeTupleGetItem(parts, 2)});
  ExpectAgrees(Native(), MakeFunction({x}, MakeTuple({product, MakeTupleGetItem(parts, 1)})));
}

TEST(NativeTest, JoinsTakeEpiloguesAndFeedAnchors) {
  const Var x = Input("x", {2, 5, 20});
  const Var y = Input("y", {2, 3, 20});
  const Expr joined = MakeCall("concatenate", {MakeTuple({MakeCall("nn.relu", {x}), y})}, {{"axis", 1}});
  ExpectAgrees(Native(), MakeFunction({x, y}, MakeCall("tanh", {joined})));
  ExpectAgrees(Native(), MakeFunction({x, y}, MakeCall("nn.softmax", {joined})));
  const Expr turned = MakeCall("transpose", {joined}, {{"axes", V{2, 0, 1}}});
  ExpectAgrees(Native(), MakeFunction({x, y}, MakeCall("reshape", {turned}, {{"newshape", V{20, 16}}})));
}

TEST(NativeTest, AttentionIsOnePartition) {
  const int64_t heads = 3;
  const int64_t size = 16;
  const Var x = Input("x", {1, 10, heads * size});
  const auto split_heads = [&](uint32_t seed) {
    const Expr flat = MakeCall("reshape", {x}, {{"newshape", V{10, heads * size}}});
    const Expr dense = MakeCall("nn.dense", {flat, RandomConstant({heads * size, heads * size}, seed)});
    const Expr apart = MakeCall("reshape", {dense}, {{"newshape", V{10, heads, size}}});
    return MakeCall("transpose", {apart}, {{"axes", V{1, 0, 2}}});
  };
  const Expr scores = MakeCall("nn.batch_matmul", {split_heads(1), split_heads(2)}, {{"transpose_b", true}});
  const Expr weights = MakeCall("nn.softmax", {MakeCall("multiply", {scores, MakeScalar(0.25, kFloat32)})});
  const Expr mixed = MakeCall("nn.batch_matmul", {weights, split_heads(3)});
  const Expr together = MakeCall("transpose", {mixed}, {{"axes", V{1, 0, 2}}});
  ExpectAgrees(Native(), MakeFunction({x}, MakeCall("reshape", {together}, {{"newshape", V{1, 10, heads * size}}})));
}

TEST(NativeTest, DepthwiseAndSmallGroupsAgreeAtEveryEdge) {
  struct Case {
    std::vector<int64_t> size, kernel, stride, dilation, padding;
    int64_t group = 1;
  };
  const Case cases[] = {
      {{7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {{9, 23}, {3, 3}, {2, 2}, {1, 1}, {0, 0, 1, 1}},
      {{9, 23}, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}, 4},
      {{6, 31}, {3, 5}, {1, 1}, {2, 3}, {2, 6, 2, 6}},
      {{11, 40}, {3, 3}, {3, 2}, {3, 2}, {4, 1, 0, 3}, 2},
      {{3, 4}, {7, 7}, {1, 1}, {1, 1}, {3, 3, 3, 3}},  // no tile has all of its taps
      {{2, 2}, {3, 3}, {1, 1}, {1, 1}, {3, 3, 3, 3}},  // results of padding alone
      {{1, 1}, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}},
      {{4, 130}, {3, 3}, {1, 1}, {1, 64}, {1, 64, 1, 64}},  // too many edges to be written out
      {{29}, {4}, {3}, {1}, {2, 1}},
      {{3, 5, 9}, {3, 3, 3}, {1, 2, 1}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}},
  };
  uint32_t seed = 1;
  for (const Case& c : cases) {
    for (const int64_t channels : {16, 20}) {
      Shape data{2, channels};
      data.insert(data.end(), c.size.begin(), c.size.end());
      Shape weight{channels, c.group};
      weight.insert(weight.end(), c.kernel.begin(), c.kernel.end());
      SCOPED_TRACE(testing::PrintToString(data) + " by " + testing::PrintToString(weight));
      const Var x = Input("x", data);
      const std::string name = "nn.conv" + std::to_string(c.size.size()) + "d";
      const Expr conv = MakeCall(
          name, {x, RandomConstant(weight, ++seed)},
          {{"strides", c.stride}, {"dilation", c.dilation}, {"padding", c.padding}, {"groups", channels / c.group}});
      const Function function = MakeFunction({x}, MakeCall("nn.relu", {conv}));
      InferType(function);
      for (const BoundaryLayouts& layouts : OfferedLayouts(function)) {
        ExpectAgrees(Native(), function, {.layouts = layouts, .num_threads = 2});
      }
    }
  }
}

TEST(NativeTest, DepthwiseInBlocksOfChannelsAgrees) {
  for (const int64_t size : {3, 5}) {
    for (const int64_t group : {1, 4}) {
      const Var x = Input("x", {2, 200, 20, 30}), bias = Input("bias", {200});
      const Expr conv = MakeCall("nn.conv2d", {x, RandomConstant({200, group, size, size}, 1)},
                                 {{"padding", V(4, size / 2)}, {"groups", 200 / group}});
      const Function function = MakeFunction({x, bias}, MakeCall("nn.bias_add", {conv, bias}));
      InferType(function);
      for (const int threads : {1, 2}) {
        ExpectAgrees(Native(), function, {.layouts = OfferedLayouts(function).front(), .num_threads = threads});
      }
    }
  }
}

TEST(NativeTest, IntegersTurnToChannelsLast) {
  const Shape shape{4, 17, 13};
  for (const DataType from : {kUInt8, kInt32, kInt64, kBool, kFloat32}) {
    for (const DataType to : {kUInt8, kInt8, DataType::Int(16), kInt32, kFloat32}) {
      for (const bool by_floats : {false, true}) {
        SCOPED_TRACE(from.ToString() + (by_floats ? " by floats" : "") + " to " + to.ToString());
        const Var x = Input("x", shape, from);
        const Expr floats = MakeCall("cast", {x}, {{"dtype", kFloat32}});
        const Expr doubled = MakeCall("multiply", {floats, MakeScalar(2, kFloat32)});
        const Expr result = MakeCall("cast", {by_floats ? Expr(doubled) : Expr(x)}, {{"dtype", to}});
        ExpectAgrees(Native(), MakeFunction({x}, result),
                     {.layouts = {{Layout::kPlain}, {Layout::kChannelsLast}}, .low = 0, .high = 50});
      }
    }
  }
}

TEST(NativeTest, QuantisedConvolutionAgrees) {
  const Var x = Input("x", {1, 8, 9, 7}, kUInt8);
  const auto scalar = [](double value, DataType dtype) { return MakeScalar(value, dtype); };
  const Expr data = MakeCall("qnn.dequantize", {x, scalar(0.02, kFloat32), scalar(3, kUInt8)}, {{"axis", 1}});
  const Constant weight = MakeConstant(conformance::RandomTensor({12, 8, 3, 3}, kInt8, -20, 20, 3));
  const Expr real =
      MakeCall("qnn.dequantize",
               {weight, RandomConstant({12}, 4, 0.01, 0.02), MakeConstant(Tensor::Zeros({12}, kInt8))}, {{"axis", 0}});
  const Expr conv = MakeCall("nn.conv2d", {data, real}, {{"padding", V{1, 1}}});
  const Expr result = MakeCall("qnn.quantize", {MakeCall("nn.relu", {conv}), scalar(0.07, kFloat32), scalar(5, kUInt8)},
                               {{"axis", 1}, {"out_dtype", "uint8"}});
  // Sums in another order may fall on the other side of a tie: one step of 255.
  ExpectAgrees(Native(), MakeFunction({x}, result), {.tolerance = 1.0 / 60, .low = 0, .high = 40});
}

}  // namespace
}  // namespace collage
