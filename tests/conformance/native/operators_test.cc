// native_operators_test.cc: native lowerings at the edges of their operators: dtypes, sizes 0 and 1, odd sizes,
// attributes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/ir/infer_type.h"
#include "conformance/conformance.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

struct Case {
  const char* op;
  std::vector<Type> args;
  Attrs attrs;
  double low = -1;
  double high = 1;
};

Type T(Shape shape, DataType dtype = kFloat32) { return TensorType(std::move(shape), dtype); }

AttrValue Widths(const std::vector<V>& pairs) { return AttrValue::List(pairs.begin(), pairs.end()); }

void Try(const Case& test, int num_threads = 1) {
  const Toolchain& native = conformance::BuiltinToolchain("native");
  const Function function =
      conformance::ExampleFunction(GetOp(test.op)->def(), {test.args, test.attrs, test.low, test.high});
  const Type result = InferType(function->body());
  InferType(function);
  SCOPED_TRACE(fmt::format("{} gives {}", test.op, ToString(result)));
  const Result<void> answer = native.SupportsCall(*As<CallNode>(function->body()));
  ASSERT_TRUE(answer.ok()) << answer.reason().text;
  // 16-bit floats are rounded once here, after each operation by the reference.
  bool is_half = false;
  for (const Type& leaf : FlattenTensorTypes(result))
    is_half = is_half || (AsTensorType(leaf)->dtype().is_floating() && AsTensorType(leaf)->dtype().bits == 16);
  conformance::ExpectAgrees(
      native, function,
      {.num_threads = num_threads, .tolerance = is_half ? 1e-2 : 1e-4, .low = test.low, .high = test.high});
}

void TryAll(const std::vector<Case>& cases) {
  for (const Case& test : cases) Try(test);
}

// Its last vector holds one element, of which more bytes are computed than stored.
TEST(NativeOperatorsTest, OneElementBehindWholeVectorsLeavesWhatLiesBehind) {
  for (DataType dtype : {kInt8, DataType::Int(16), kInt32}) {
    const Function function = conformance::ExampleFunction(
        GetOp("divide")->def(), {{T({1, 13, 1, 17}, dtype), T({1, 1, 1, 1}, dtype)}, {}, 5, 9}, /*constant_from=*/1);
    for (const char* schedule : {"", "lanes=8"}) {
      conformance::Options options{.schedule = schedule, .low = -90, .high = 90};
      options.layouts = {{Layout::kChannelsLast}, {Layout::kPlain}};
      conformance::ExpectAgrees(conformance::BuiltinToolchain("native"), function, options);
    }
  }
}

TEST(NativeOperatorsTest, ElementsOfAllTypes) {
  const std::vector<DataType> dtypes{
      kFloat16,           kBFloat16, kFloat64,           kInt8, kUInt8, DataType::Int(16),
      DataType::UInt(16), kInt32,    DataType::UInt(32), kInt64};
  for (DataType dtype : dtypes) {
    TryAll({{"add", {T({3, 17}, dtype), T({17}, dtype)}, {}, 0, 9},
            {"multiply", {T({5, 1, 3}, dtype), T({2, 1}, dtype)}, {}, 0, 9},
            {"maximum", {T({33}, dtype), T({}, dtype)}, {}, 0, 9},
            {"divide", {T({19}, dtype), T({19}, dtype)}, {}, 1, 9},
            {"less", {T({19}, dtype), T({19}, dtype)}, {}, 0, 9},
            {"where", {T({19}, kBool), T({19}, dtype), T({1}, dtype)}, {}, 0, 9},
            {"nn.relu", {T({2, 19}, dtype)}, {}, 0, 9},
            {"clip", {T({2, 19}, dtype)}, {{"a_min", 2.0}, {"a_max", 5.0}}, 0, 9},
            {"transpose", {T({7, 21}, dtype)}, {}, 0, 9},
            {"sum", {T({4, 37}, dtype)}, {{"axis", V{1}}}, 0, 3},
            {"max", {T({4, 37}, dtype)}, {{"axis", V{0}}}, 0, 9}});
    for (DataType to : dtypes) Try({"cast", {T({2, 19}, dtype)}, {{"dtype", to}}, 0, 100});
    Try({"cast", {T({19}, dtype)}, {{"dtype", "bool"}}, 0, 2});
    Try({"cast", {T({19}, kBool)}, {{"dtype", dtype}}});
  }
}

TEST(NativeOperatorsTest, CastsSaturateAndWrap) {
  TryAll({{"cast", {T({50})}, {{"dtype", "int8"}}, -300, 300},
          {"cast", {T({50})}, {{"dtype", "uint8"}}, -300, 300},
          {"cast", {T({50})}, {{"dtype", "int32"}}, -5e9, 5e9},
          {"cast", {T({50})}, {{"dtype", "int64"}}, -2e19, 2e19},
          {"cast", {T({50}, kInt32)}, {{"dtype", "int8"}}, -1000, 1000},
          {"cast", {T({50}, kInt64)}, {{"dtype", "uint8"}}, -1000, 1000},
          {"add", {T({50}, kInt8), T({50}, kInt8)}, {}, -120, 120},
          {"left_shift", {T({50}, kInt32), T({50}, kInt32)}, {}, 0, 20}});
}

TEST(NativeOperatorsTest, IntegerArithmetic) {
  for (const char* op :
       {"divide", "mod", "floor_mod", "floor_divide", "subtract", "minimum", "equal", "not_equal", "greater",
        "greater_equal", "less_equal", "bitwise_and", "bitwise_or", "bitwise_xor", "power"}) {
    for (DataType dtype : {kInt32, kInt64}) Try({op, {T({3, 21}, dtype), T({21}, dtype)}, {}, -6, 6});
  }
  TryAll({{"power", {T({30}, kInt64), T({30}, kInt64)}, {}, -3, 12},
          {"right_shift", {T({30}, kInt64), T({30}, kInt64)}, {}, 0, 20},
          {"abs", {T({30}, kInt64)}, {}, -9, 9},
          {"sign", {T({30}, kInt32)}, {}, -9, 9},
          {"negative", {T({30}, kInt32)}, {}, -9, 9},
          {"logical_xor", {T({30}, kBool), T({30}, kBool)}, {}},
          {"isinf", {T({30}, kInt32)}, {}}});
}

TEST(NativeOperatorsTest, RemaindersOfEqualFloats) {
  // Of so few different numbers that many are equal to the divisor.
  const Var x = conformance::Input("x", {3000}, kBFloat16);
  for (int i = 1; i < 128; i += 9) {
    const Tensor divisor = Tensor::Empty({}, kBFloat16);
    divisor.Set(0, 1 + i / 128.0);
    for (const char* op : {"floor_mod", "floor_divide"}) {
      SCOPED_TRACE(fmt::format("{} by {}", op, divisor.At(0)));
      const Function function = MakeFunction({x}, MakeCall(op, {x, MakeConstant(divisor)}));
      conformance::ExpectAgrees(conformance::BuiltinToolchain("native"), function,
                                {.tolerance = 1e-2, .low = 0.5, .high = 2});
    }
  }
}

TEST(NativeOperatorsTest, ComparisonsOfBFloat16AsIntegers) {
  // Processors have masks for vectors of some types only: integers of 16 bits are as wide as what is compared.
  const Var x = conformance::Input("x", {200}, kBFloat16);
  const Var y = conformance::Input("y", {200}, kBFloat16);
  const Var wide = conformance::Input("x", {200});
  const Expr rounded = MakeCall("cast", {wide}, {{"dtype", kBFloat16}});
  const auto compare = [](const char* op, const Expr& a, const Expr& b, DataType to) {
    return MakeCall("cast", {MakeCall(op, {a, b})}, {{"dtype", to}});
  };
  for (const char* op : {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
    for (const DataType to : {DataType::UInt(16), DataType::Int(16), kInt8, kInt32, kBFloat16, kFloat16}) {
      SCOPED_TRACE(fmt::format("{} as {}", op, to.ToString()));
      const Expr half = MakeScalar(0.5, kBFloat16);
      for (const Function& function :
           {MakeFunction({x}, compare(op, x, x, to)), MakeFunction({x, y}, compare(op, x, y, to)),
            MakeFunction({x}, compare(op, x, half, to)), MakeFunction({wide}, compare(op, rounded, rounded, to)),
            MakeFunction({wide}, compare(op, rounded, half, to))}) {
        InferType(function);
        conformance::ExpectAgrees(conformance::BuiltinToolchain("native"), function, {.tolerance = 0});
      }
    }
  }
}

TEST(NativeOperatorsTest, EmptyAndSingleElements) {
  TryAll({{"add", {T({0, 5}), T({5})}, {}},
          {"add", {T({}), T({})}, {}},
          {"add", {T({1, 1}), T({1})}, {}},
          {"sum", {T({0, 5})}, {{"axis", V{0}}}},
          {"sum", {T({3, 0})}, {{"axis", V{1}}}},
          {"sum", {T({})}, {}},
          {"sum", {T({1})}, {}},
          {"nn.softmax", {T({3, 1})}, {}},
          {"nn.softmax", {T({1, 1, 1})}, {}},
          {"nn.dense", {T({0, 4}), T({3, 4})}, {}},
          {"nn.dense", {T({2, 0}), T({3, 0})}, {}},
          {"nn.dense", {T({1, 1}), T({1, 1})}, {}},
          {"nn.batch_matmul", {T({0, 4, 3}), T({0, 3, 2})}, {}},
          {"concatenate", {TupleType({T({2, 0}), T({2, 3})})}, {{"axis", 1}}},
          {"transpose", {T({0, 3})}, {}},
          {"strided_slice", {T({4, 5})}, {{"begin", V{3}}, {"end", V{2}}, {"axes", V{0}}}},
          {"nn.conv2d", {T({0, 3, 5, 5}), T({4, 3, 3, 3})}, {}},
          {"nn.pad", {T({0, 2}), T({})}, {{"pad_width", Widths({{1, 1}, {0, 1}})}}},
          {"nn.max_pool2d", {T({1, 1, 1, 1})}, {{"pool_size", V{1, 1}}}}});
}

TEST(NativeOperatorsTest, Reductions) {
  for (const char* op : {"sum", "mean", "prod", "max", "min"}) {
    TryAll({{op, {T({2, 3, 5, 70})}, {{"axis", V{-1}}}, 0.5, 1.2},
            {op, {T({2, 3, 5, 7})}, {{"axis", V{0, 2}}, {"keepdims", true}}, 0.5, 1.2},
            {op, {T({2, 3, 5, 7})}, {{"axis", V{1}}, {"exclude", true}}, 0.5, 1.2},
            {op, {T({20, 35})}, {{"axis", V{0}}}, 0.5, 1.2},
            {op, {T({4, 9})}, {}, 0.5, 1.2},
            {op, {T({4, 9}, kFloat64)}, {{"axis", V{1}}}, 0.5, 1.2}});
  }
  for (const char* op : {"argmax", "argmin"}) {
    for (const bool last : {false, true}) {
      TryAll({{op, {T({5, 33})}, {{"axis", V{1}}, {"select_last_index", last}}},
              {op, {T({5, 33})}, {{"axis", V{0}}, {"keepdims", true}, {"select_last_index", last}}},
              {op, {T({3, 70}, kInt64)}, {{"axis", V{1}}, {"select_last_index", last}}, -3, 3},
              {op, {T({3, 70}, kInt64)}, {{"axis", V{0}}, {"select_last_index", last}}, -1, 1},
              {op, {T({2, 3, 4})}, {{"select_last_index", last}}}});
    }
  }
  for (int64_t axis : {0, 1, -1}) {
    for (const bool exclusive : {false, true}) {
      Try({"cumsum", {T({3, 4, 21})}, {{"axis", axis}, {"exclusive", exclusive}}});
      Try({"cumsum", {T({3, 4, 5}, kInt64)}, {{"axis", axis}, {"exclusive", exclusive}}, -5, 5});
      Try({"cumprod", {T({3, 4, 21})}, {{"axis", axis}, {"exclusive", exclusive}}, 0.7, 1.3});
      Try({"cumprod", {T({3, 4, 5}, kInt32)}, {{"axis", axis}, {"exclusive", exclusive}}, -5, 5});
    }
  }
}

// Memory has the elements in another order than positions are counted in.
TEST(NativeOperatorsTest, TheFirstAndTheLastOfEqualElementsInAnyLayout) {
  for (const char* op : {"argmax", "argmin"}) {
    for (const bool last : {false, true}) {
      for (const DataType dtype : {kInt64, kInt32}) {
        const Function function =
            conformance::ExampleFunction(GetOp(op)->def(), {{T({2, 17, 5, 7}, dtype)}, {{"select_last_index", last}}});
        conformance::Options options{.low = -3, .high = 3};
        options.layouts = {{Layout::kChannelsLast}, {Layout::kPlain}};
        conformance::ExpectAgrees(conformance::BuiltinToolchain("native"), function, options);
      }
    }
  }
}

TEST(NativeOperatorsTest, PlanesAreReducedAsOneRow) {
  const Attrs planes{{"axis", V{2, 3}}, {"keepdims", true}};
  const Toolchain& native = conformance::BuiltinToolchain("native");
  const Var x = conformance::Input("x", {2, 5, 28, 28});
  const auto rows = [&](const Expr& data) {
    const Function function = MakeFunction({x}, MakeCall("mean", {data}, planes));
    conformance::ExpectAgrees(native, function, {});
    return native.RelayToTIR({function, PlainLayouts(1, 1), 1})->mlir;
  };
  // 28 elements leave lanes of vectors of 8 and 16 empty, 784 do not.
  EXPECT_THAT(rows(x), testing::Not(testing::HasSubstr("masked.load")));
  const auto numbers = [](const Shape& shape) {
    Tensor tensor = Tensor::Zeros(shape, kFloat32);
    for (int64_t i = 0; i < NumElements(shape); ++i) tensor.data<float>()[i] = static_cast<float>(i % 7) - 2;
    return MakeConstant(tensor);
  };
  // Read along with a number for each channel, a plane, and numbers for columns or rows alone.
  for (const Shape& shape : {Shape{5, 1, 1}, Shape{28, 28}, Shape{28}, Shape{28, 1}}) {
    rows(MakeCall("multiply", {x, numbers(shape)}));
  }
  rows(MakeCall("transpose", {x}, {{"axes", V{0, 1, 3, 2}}}));
  TryAll({{"sum", {T({2, 3, 5, 7}, kInt32)}, {{"axis", V{1, 2, 3}}}, -9, 9},
          {"max", {T({3, 4, 9})}, {}},
          {"variance", {T({3, 4, 9})}, {{"axis", V{1, 2}}}},
          {"nn.global_avg_pool2d", {T({2, 3, 7, 7})}, {}},
          {"nn.global_max_pool2d", {T({2, 3, 7, 5}, kInt8)}, {}, -9, 9},
          {"nn.global_avg_pool3d", {T({2, 3, 3, 7, 5}, kFloat16)}, {}},
          {"nn.global_max_pool3d", {T({1, 2, 2, 13, 1})}, {}},
          {"sum", {T({3, 9, 1})}, {{"axis", V{1, 2}}}}});
}

TEST(NativeOperatorsTest, RunningSumsOfOtherTypesThanTheData) {
  for (const char* op : {"cumsum", "cumprod"}) {
    TryAll({{op, {T({3, 4}, kInt8)}, {{"axis", 1}, {"dtype", "int32"}}, 50, 120},
            {op, {T({4, 30}, kUInt8)}, {{"axis", 0}, {"dtype", "float32"}}, 0, 255},
            {op, {T({3, 9})}, {{"axis", 1}, {"dtype", "int64"}}, 0.5, 2.5},
            {op, {T({3, 9})}, {{"axis", 0}, {"dtype", "float64"}}, 0.5, 2.5},
            {op, {T({3, 9}, kFloat16)}, {{"axis", 1}, {"dtype", "float32"}}, 0.5, 1.5}});
  }
}

TEST(NativeOperatorsTest, Normalisations) {
  for (int64_t axis : {0, 1, 2, -1}) {
    TryAll({{"nn.softmax", {T({3, 5, 37})}, {{"axis", axis}}, -4, 4},
            {"nn.log_softmax", {T({3, 5, 37})}, {{"axis", axis}}, -4, 4}});
  }
  TryAll({{"nn.layer_norm", {T({4, 6, 9}), T({6}), T({6})}, {{"axis", 1}}},
          {"nn.layer_norm", {T({4, 100}), T({100}), T({100})}, {{"scale", false}, {"center", false}}},
          {"nn.layer_norm", {T({4, 65}, kFloat16), T({65}, kFloat16), T({65}, kFloat16)}, {}},
          {"nn.softmax", {T({4, 65}, kFloat16)}, {}},
          {"nn.softmax", {T({4, 9}, kFloat64)}, {}},
          {"nn.instance_norm", {T({2, 5, 7, 9}), T({5}), T({5})}, {{"epsilon", 1e-3}}},
          {"nn.instance_norm", {T({2, 5, 40}), T({5}), T({5})}, {}},
          {"nn.prelu", {T({2, 5, 7}), T({5})}, {}},
          {"nn.bias_add", {T({2, 5, 7}), T({7})}, {{"axis", -1}}}});
}

TEST(NativeOperatorsTest, Convolutions) {
  TryAll({{"nn.conv1d", {T({2, 5, 30}), T({7, 5, 4})}, {{"padding", V{1, 2}}, {"dilation", V{2}}}},
          {"nn.conv1d", {T({2, 8, 30}), T({8, 1, 5})}, {{"groups", 8}, {"padding", V{2}}, {"strides", V{2}}}},
          {"nn.conv2d", {T({2, 12, 9, 10}), T({21, 4, 3, 3})}, {{"groups", 3}, {"padding", V{1, 1}}}},
          {"nn.conv2d",
           {T({1, 32, 9, 10}), T({32, 4, 3, 3})},
           {{"groups", 8}, {"padding", V{1, 1}}, {"strides", V{2, 2}}}},
          {"nn.conv2d", {T({1, 24, 6, 5}), T({24, 8, 1, 3})}, {{"groups", 3}}},
          {"nn.conv2d", {T({1, 40, 7, 7}), T({40, 1, 3, 3})}, {{"groups", 40}, {"padding", V{0, 1, 2, 1}}}},
          {"nn.conv2d", {T({1, 6, 7, 7}), T({12, 1, 3, 3})}, {{"groups", 6}}},
          {"nn.conv2d", {T({3, 16, 4, 4}), T({33, 16, 1, 1})}, {}},
          {"nn.conv2d", {T({1, 16, 5, 5}), T({8, 16, 1, 1})}, {{"strides", V{2, 2}}}},
          {"nn.conv2d", {T({1, 4, 5, 5}), T({4, 4, 3, 3})}, {{"padding", V{3, 3}}}},
          {"nn.conv2d", {T({1, 8, 6, 6}, kInt32), T({5, 8, 3, 3}, kInt32)}, {{"padding", V{1, 1}}}, -9, 9},
          {"nn.conv2d", {T({1, 8, 6, 6}, kFloat16), T({5, 8, 3, 3}, kFloat16)}, {}},
          // Several rows of an image in a register tile: as many as divide them, and with some left.
          {"nn.conv2d", {T({2, 6, 4, 4}), T({35, 6, 3, 3})}, {{"padding", V{1, 1}}}},
          {"nn.conv2d", {T({1, 6, 13, 1}), T({20, 6, 3, 1})}, {}},
          {"nn.conv2d",
           {T({2, 12, 15, 3}), T({18, 6, 3, 2})},
           {{"groups", 2}, {"padding", V{1, 1}}, {"strides", V{2, 1}}}},
          {"nn.conv3d", {T({1, 4, 3, 8, 2}), T({5, 4, 2, 2, 2})}, {{"dilation", V{1, 2, 1}}}},
          {"nn.conv3d", {T({1, 4, 5, 6, 7}), T({6, 2, 2, 3, 3})}, {{"groups", 2}, {"padding", V{0, 1, 1}}}},
          {"nn.conv3d", {T({1, 8, 4, 4, 4}), T({8, 1, 3, 3, 3})}, {{"groups", 8}, {"padding", V{1, 1, 1}}}}});
}

TEST(NativeOperatorsTest, TransposedConvolutions) {
  TryAll(
      {{"nn.conv1d_transpose", {T({2, 5, 9}), T({5, 7, 4})}, {{"strides", V{3}}, {"padding", V{1, 2}}}},
       {"nn.conv1d_transpose", {T({1, 5, 9}), T({5, 7, 2})}, {{"strides", V{3}}, {"output_padding", V{2}}}},
       {"nn.conv1d_transpose", {T({1, 5, 9}), T({5, 7, 3})}, {{"strides", V{2}}, {"dilation", V{2}}}},
       {"nn.conv1d_transpose",
        {T({1, 5, 9}), T({5, 7, 3})},
        {{"strides", V{2}}, {"dilation", V{3}}, {"padding", V{2}}}},
       {"nn.conv2d_transpose",
        {T({1, 6, 5, 4}), T({6, 3, 3, 3})},
        {{"groups", 2}, {"strides", V{2, 1}}, {"padding", V{1, 0}}}},
       {"nn.conv2d_transpose", {T({1, 20, 5, 4}), T({20, 33, 4, 4})}, {{"strides", V{2, 2}}, {"padding", V{1, 1}}}},
       {"nn.conv2d_transpose", {T({1, 4, 3, 3}), T({4, 4, 3, 3})}, {{"padding", V{2, 2}}}},
       // Images of one pixel.
       {"nn.conv2d_transpose", {T({3, 6, 1, 1}), T({6, 35, 4, 3})}, {{"strides", V{2, 2}}, {"padding", V{1, 0}}}},
       {"nn.conv2d_transpose", {T({1, 6, 1, 1}), T({6, 5, 2, 3})}, {{"groups", 2}, {"dilation", V{2, 1}}}},
       {"nn.conv2d_transpose", {T({2, 6, 1, 1}), T({6, 5, 3, 3})}, {{"groups", 3}}},
       {"nn.conv2d_transpose", {T({1, 6, 1, 1}), T({6, 5, 3, 3})}, {{"strides", V{2, 2}}, {"output_padding", V{1, 1}}}},
       {"nn.conv1d_transpose", {T({2, 8, 1}, kFloat64), T({8, 3, 5}, kFloat64)}, {}},
       {"nn.conv3d_transpose",
        {T({1, 3, 3, 4, 3}), T({3, 5, 2, 3, 2})},
        {{"strides", V{1, 2, 2}}, {"output_padding", V{0, 1, 0}}}}});
}

TEST(NativeOperatorsTest, MatrixProducts) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      const Attrs attrs{{"transpose_a", a}, {"transpose_b", b}};
      const auto shape = [](bool swap, int64_t rows, int64_t columns, Shape batch = {}) {
        batch.push_back(swap ? columns : rows);
        batch.push_back(swap ? rows : columns);
        return batch;
      };
      TryAll({{"nn.matmul", {T(shape(a, 13, 21)), T(shape(b, 21, 37))}, attrs},
              {"nn.matmul", {T(shape(a, 1, 64)), T(shape(b, 64, 32))}, attrs},
              {"nn.batch_matmul", {T(shape(a, 7, 16, {3})), T(shape(b, 16, 33, {3}))}, attrs},
              {"nn.batch_matmul", {T(shape(a, 7, 16, {3})), T(shape(b, 16, 33, {1}))}, attrs},
              {"nn.batch_matmul", {T(shape(a, 7, 16, {1})), T(shape(b, 16, 33, {3}))}, attrs}});
    }
  }
  TryAll({{"nn.matmul", {T({5, 9}, kInt32), T({9, 20}, kInt32)}, {}, -9, 9},
          {"nn.matmul", {T({5, 9}, kInt64), T({9, 20}, kInt64)}, {}, -9, 9},
          {"nn.matmul", {T({5, 9}, kFloat64), T({9, 20}, kFloat64)}, {}},
          {"nn.matmul", {T({5, 9}, kBFloat16), T({9, 20}, kBFloat16)}, {}},
          {"nn.dense", {T({5, 9}, kFloat16), T({20, 9}, kFloat16)}, {}}});
}

// So many that panels are fetched ahead: rows in whole tiles and with some left, of one group and of several.
TEST(NativeOperatorsTest, ManyWeights) {
  const Attrs groups{{"groups", 2}, {"padding", V{1, 1}}};
  TryAll({{"nn.dense", {T({30, 300}), T({330, 300})}, {}, -0.1, 0.1},
          {"nn.dense", {T({37, 300}), T({330, 300})}, {}, -0.1, 0.1},
          {"nn.conv2d", {T({1, 64, 13, 13}), T({128, 64, 3, 3})}, {{"padding", V{1, 1}}}, -0.1, 0.1},
          {"nn.conv2d", {T({1, 128, 7, 7}), T({128, 64, 3, 3})}, groups, -0.1, 0.1}});
}

// Groups of fewer channels than a vector: rows of more and fewer pixels than a tile, windows that reach over the edges
// or past the data, some taps apart.
TEST(NativeOperatorsTest, SmallGroups) {
  for (const int64_t group : {1, 2, 4, 8}) {
    for (const int64_t channels : {16, 40}) {
      const auto conv = [&](const Shape& data, const Shape& taps, Attrs attrs) {
        Shape x{2, channels};
        Shape w{channels, group};
        x.insert(x.end(), data.begin(), data.end());
        w.insert(w.end(), taps.begin(), taps.end());
        attrs.Set("groups", channels / group);
        Try({fmt::format("nn.conv{}d", data.size()).c_str(), {T(x), T(w)}, attrs}, 2);
      };
      conv({9, 29}, {3, 3}, {{"padding", V{1, 1}}});
      conv({5, 7}, {5, 5}, {{"padding", V{2, 2}}});
      conv({8, 19}, {3, 3}, {{"padding", V{1, 1}}, {"strides", V{2, 2}}});
      conv({10, 20}, {3, 2}, {{"padding", V{0, 3, 2, 4}}, {"strides", V{1, 3}}, {"dilation", V{2, 3}}});
      conv({2, 2}, {5, 7}, {{"padding", V{2, 3}}});
      conv({1, 1}, {3, 3}, {{"padding", V{3, 3}}});
      conv({33}, {5}, {{"padding", V{2}}});
      conv({3, 4, 17}, {3, 3, 3}, {{"padding", V{1, 1, 1}}});
    }
  }
}

TEST(NativeOperatorsTest, RowsInRegistersAndInMemory) {
  for (const int64_t length : {1, 15, 16, 17, 96, 128, 197, 255, 256, 257, 300, 768}) {
    // Four at a time, and what is left.
    for (const int64_t rows : {1, 2, 5}) {
      Try({"nn.softmax", {T({rows, length})}, {}, -30, 30});
      Try({"nn.layer_norm", {T({rows, length}), T({length}), T({length})}, {}, 3, 9});
    }
    for (const char* op : {"nn.softmax", "nn.log_softmax"}) Try({op, {T({3, 5, length})}, {}, -30, 30});
    Try({"nn.layer_norm", {T({7, length}), T({length}), T({length})}, {{"axis", -1}}, 3, 9});
    Try({"nn.softmax", {T({4, length}, kFloat64)}, {}});
    Try({"nn.softmax", {T({4, length}, kFloat16)}, {}});
    Try({"nn.instance_norm", {T({2, 3, length}), T({3}), T({3})}, {}});
  }
}

TEST(NativeOperatorsTest, Pools) {
  for (const char* kind : {"max", "avg"}) {
    const std::string pool1 = fmt::format("nn.{}_pool1d", kind);
    const std::string pool2 = fmt::format("nn.{}_pool2d", kind);
    const std::string pool3 = fmt::format("nn.{}_pool3d", kind);
    TryAll({{pool1.c_str(), {T({2, 3, 40})}, {{"pool_size", V{3}}, {"strides", V{2}}, {"padding", V{1}}}},
            {pool2.c_str(),
             {T({1, 3, 11, 40})},
             {{"pool_size", V{2, 3}}, {"strides", V{2, 1}}, {"padding", V{1, 0, 0, 2}}}},
            {pool2.c_str(), {T({1, 3, 11, 12})}, {{"pool_size", V{3, 3}}, {"strides", V{2, 2}}, {"ceil_mode", true}}},
            {pool2.c_str(), {T({1, 3, 11, 12})}, {{"pool_size", V{2, 2}}, {"dilation", V{2, 3}}, {"padding", V{1, 1}}}},
            {pool2.c_str(), {T({1, 3, 9, 9}, kFloat16)}, {{"pool_size", V{2, 2}}}},
            {pool3.c_str(),
             {T({1, 2, 5, 6, 20})},
             {{"pool_size", V{2, 2, 2}}, {"strides", V{1, 2, 2}}, {"padding", V{1, 0, 1}}}}});
    for (int rank = 1; rank <= 3; ++rank) {
      Shape shape{2, 3};
      for (int d = 0; d < rank; ++d) shape.push_back(5 + d);
      Try({fmt::format("nn.global_{}_pool{}d", kind, rank).c_str(), {T(shape)}, {}});
    }
  }
  TryAll({{"nn.avg_pool2d",
           {T({1, 3, 11, 12})},
           {{"pool_size", V{3, 3}},
            {"strides", V{2, 2}},
            {"padding", V{1, 1}},
            {"count_include_pad", true},
            {"ceil_mode", true}}},
          {"nn.avg_pool1d", {T({1, 3, 11})}, {{"pool_size", V{3}}, {"padding", V{2, 1}}, {"count_include_pad", true}}},
          {"nn.max_pool2d", {T({1, 3, 8, 20}, kInt8)}, {{"pool_size", V{2, 2}}, {"strides", V{2, 2}}}, -100, 100}});
}

TEST(NativeOperatorsTest, WhereTheLargestElementsOfWindowsAre) {
  for (const bool column_major : {false, true}) {
    const auto indices = [&](const char* op, const Type& data, Attrs attrs) {
      attrs.Set("column_major", column_major);
      Try({op, {data}, attrs, -100, 100});
    };
    indices("nn.max_pool1d_indices", T({2, 3, 40}), {{"pool_size", V{3}}, {"strides", V{2}}, {"padding", V{1}}});
    indices("nn.max_pool2d_indices", T({2, 3, 8, 20}), {{"pool_size", V{2, 2}}, {"strides", V{2, 2}}});
    indices("nn.max_pool2d_indices", T({1, 3, 11, 17}),
            {{"pool_size", V{3, 2}}, {"strides", V{2, 1}}, {"padding", V{1, 0, 2, 1}}, {"dilation", V{2, 3}}});
    indices("nn.max_pool2d_indices", T({1, 3, 11, 12}),
            {{"pool_size", V{3, 3}}, {"strides", V{2, 2}}, {"ceil_mode", true}});
    indices("nn.max_pool2d_indices", T({1, 2, 9, 9}, kInt8), {{"pool_size", V{4, 4}}, {"strides", V{3, 3}}});
    indices("nn.max_pool3d_indices", T({1, 2, 5, 6, 20}),
            {{"pool_size", V{2, 2, 2}}, {"strides", V{1, 2, 2}}, {"padding", V{1, 0, 1}}});
  }
  // Of equal elements the first one.
  Try({"nn.max_pool2d_indices", {T({1, 2, 8, 20}, kInt32)}, {{"pool_size", V{3, 3}}, {"padding", V{1, 1}}}, 0, 2});
  const Toolchain& native = conformance::BuiltinToolchain("native");
  const Function large =
      conformance::ExampleFunction(GetOp("nn.max_pool2d_indices")->def(),
                                   {{T({1, 1, 20, 20})}, {{"pool_size", V{9, 9}}, {"strides", V{1, 1}}}, 0, 1});
  InferType(large);
  EXPECT_EQ(native.SupportsCall(*As<CallNode>(large->body())).reason().text,
            "'nn.max_pool2d_indices' of windows of 81 elements");
}

TEST(NativeOperatorsTest, Movement) {
  for (const char* mode : {"constant", "edge", "reflect"}) {
    TryAll({{"nn.pad", {T({4, 9}), T({})}, {{"pad_width", Widths({{2, 1}, {3, 7}})}, {"pad_mode", mode}}},
            {"nn.pad", {T({3, 4, 40}), T({})}, {{"pad_width", Widths({{0, 0}, {1, 1}, {0, 0}})}, {"pad_mode", mode}}},
            {"nn.pad",
             {T({5, 7}, kInt64), T({}, kInt64)},
             {{"pad_width", Widths({{0, 1}, {2, 0}})}, {"pad_mode", mode}},
             0,
             9}});
  }
  TryAll({{"nn.pad", {T({4, 9}), T({})}, {{"pad_width", Widths({{-1, 0}, {2, -3}})}}},
          {"strided_slice", {T({9, 20})}, {{"begin", V{-1, 19}}, {"end", V{-100, 2}}, {"strides", V{-2, -3}}}},
          {"strided_slice", {T({9, 20})}, {{"begin", V{8}}, {"end", V{0}}, {"strides", V{-1}}, {"axes", V{0}}}},
          {"transpose", {T({3, 17, 18})}, {{"axes", V{2, 1, 0}}}},
          {"transpose", {T({2, 50, 33, 4})}, {{"axes", V{0, 3, 1, 2}}}},
          {"transpose", {T({2, 3, 35, 34})}, {{"axes", V{0, 2, 3, 1}}}},
          {"layout_transform", {T({2, 17, 3, 18})}, {{"src_layout", "NCHW"}, {"dst_layout", "NHWC"}}},
          {"layout_transform", {T({6, 5, 2, 3})}, {{"src_layout", "OIHW"}, {"dst_layout", "HWIO"}}},
          {"reshape", {T({6, 35})}, {{"newshape", V{5, 2, 21}}}},
          {"tile", {T({2, 3, 5})}, {{"reps", V{2, 1, 4}}}},
          {"broadcast_to", {T({3, 1})}, {{"shape", V{2, 3, 20}}}},
          {"split", {T({2, 20})}, {{"indices_or_sections", V{3, 4, 17}}, {"axis", 1}}},
          {"split", {T({6, 5})}, {{"indices_or_sections", 3}, {"axis", 0}}},
          {"concatenate", {TupleType({T({2, 3, 4}), T({2, 1, 4}), T({2, 5, 4})})}, {{"axis", -2}}},
          {"take", {T({9, 40}), T({2, 3}, kInt64)}, {{"axis", 0}}, -9, 8},
          {"take", {T({4, 30}), T({7}, kInt32)}, {{"axis", 1}}, -40, 40},
          {"take", {T({20}, kInt64), T({33}, kInt64)}, {{"axis", 0}}, 0, 19},
          {"gather", {T({4, 30}), T({4, 7}, kInt64)}, {{"axis", 1}}, -4, 29},
          {"gather", {T({9, 30}), T({3, 30}, kInt64)}, {{"axis", 0}}, -9, 8}});
}

TEST(NativeOperatorsTest, FusedBehindMovement) {
  // Each reader is fused in front of a function that is computed at its indices.
  const Toolchain& native = conformance::BuiltinToolchain("native");
  const Var x = conformance::Input("x", {4, 6, 20});
  const Expr tanh = MakeCall("tanh", {x});
  const auto check = [&](const Expr& body) {
    conformance::ExpectAgrees(native, MakeFunction({x}, MakeCall("exp", {body})));
  };
  check(MakeCall("reshape", {tanh}, {{"newshape", V{12, 40}}}));
  check(MakeCall("reshape", {tanh}, {{"newshape", V{5, 96}}}));
  check(MakeCall("reshape", {MakeCall("transpose", {tanh}, {{"axes", V{0, 2, 1}}})}, {{"newshape", V{80, 6}}}));
  check(MakeCall("nn.pad", {tanh, MakeScalar(0.5, kFloat32)}, {{"pad_width", Widths({{0, 1}, {2, 0}, {1, 1}})}}));
  check(MakeCall("strided_slice", {tanh}, {{"begin", V{19}}, {"end", V{-100}}, {"strides", V{-1}}, {"axes", V{2}}}));
  check(MakeCall("sum", {MakeCall("transpose", {tanh})}, {{"axis", V{1}}}));
}

TEST(NativeOperatorsTest, IndicesReadWhereOnlySomeLanesAre) {
  const Toolchain& native = conformance::BuiltinToolchain("native");
  const Var x = conformance::Input("x", {3, 8, 2});
  const Expr tuples = MakeConstant(conformance::RandomTensor({2, 5}, kInt32, 0, 2, 3));
  const Expr rows = MakeConstant(conformance::RandomTensor({5}, kInt64, 0, 2, 4));
  const Expr filling = MakeScalar(0.5, kFloat32);
  for (const Expr& read : {MakeCall("gather_nd", {x, tuples}), MakeCall("take", {x, rows}, {{"axis", 0}})}) {
    const bool is_matrix = AsTensorType(InferType(read))->rank() == 2;
    const Attrs widths{{"pad_width", is_matrix ? Widths({{0, 0}, {3, 1}}) : Widths({{1, 0}, {2, 0}, {3, 1}})}};
    conformance::ExpectAgrees(native, MakeFunction({x}, MakeCall("nn.pad", {read, filling}, widths)));
  }
}

TEST(NativeOperatorsTest, Resizing) {
  for (const char* method : {"nearest_neighbor", "linear", "cubic"}) {
    for (const char* mode : {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"}) {
      const Attrs common{{"method", method}, {"coordinate_transformation_mode", mode}};
      Attrs attrs = common;
      attrs.Set("size", V{13, 21});
      Try({"image.resize2d", {T({1, 3, 6, 20})}, attrs});
      attrs.Set("size", V{3, 40});
      Try({"image.resize2d", {T({1, 2, 7, 20})}, attrs});
    }
    Try({"image.resize1d", {T({2, 3, 9})}, {{"size", V{31}}, {"method", method}}});
    Try({"image.resize1d", {T({1, 2, 150})}, {{"size", V{220}}, {"method", method}}});
    Try({"image.resize3d", {T({1, 2, 3, 4, 5})}, {{"size", V{5, 4, 9}}, {"method", method}}});
  }
  Try({"image.resize2d", {T({1, 3, 6, 20}, kUInt8)}, {{"size", V{13, 21}}, {"method", "nearest_neighbor"}}, 0, 9});
}

TEST(NativeOperatorsTest, ResizesNoIntegersBetweenPixels) {
  const Var x = conformance::Input("x", {1, 3, 6, 20}, kUInt8);
  const Function function = MakeFunction({x}, MakeCall("image.resize2d", {x}, {{"size", V{13, 21}}}));
  InferType(function);
  const Result<void> answer = conformance::BuiltinToolchain("native").SupportsCall(*As<CallNode>(function->body()));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.reason().text, "'image.resize2d' of uint8 between pixels");
}

TEST(NativeOperatorsTest, Quantisation) {
  TryAll({{"qnn.quantize", {T({3, 40}), T({}), T({}, kInt8)}, {}, 0.01, 3},
          {"qnn.quantize", {T({3, 40}), T({40}), T({40}, kUInt8)}, {{"axis", 1}, {"out_dtype", "uint8"}}, 0.1, 3},
          {"qnn.quantize", {T({3, 40}), T({}), T({}, kInt32)}, {{"out_dtype", "int32"}}, 0.01, 3},
          {"qnn.dequantize", {T({3, 40}, kInt8), T({3}), T({3}, kInt8)}, {{"axis", 0}}, -100, 100},
          {"qnn.dequantize", {T({3, 40}, kInt32), T({}), T({}, kInt32)}, {}, -1000, 1000}});
}

/// Arguments of a layer with `gates` gates; data [S, N, I] or [N, S, I].
std::vector<Type> LayerArgs(int64_t gates, int64_t directions, const std::vector<int64_t>& sizes, bool batch_first) {
  const auto [steps, batch, features, hidden] = std::tuple{sizes[0], sizes[1], sizes[2], sizes[3]};
  const Shape state = batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  std::vector<Type> args{T(batch_first ? Shape{batch, steps, features} : Shape{steps, batch, features}),
                         T({directions, gates * hidden, features}), T({directions, gates * hidden, hidden}),
                         T({directions, 2 * gates * hidden}), T(state)};
  if (gates == 4) args.push_back(T(state));
  return args;
}

TEST(NativeOperatorsTest, RecurrentLayers) {
  for (const auto& [op, gates] : {std::pair{"nn.lstm", 4}, {"nn.gru", 3}, {"nn.rnn", 1}}) {
    for (const V& sizes : {V{5, 1, 7, 16}, V{4, 3, 5, 21}, V{1, 2, 3, 1}, V{3, 30, 4, 33}}) {
      Try({op, LayerArgs(gates, 1, sizes, false), {{"hidden_size", sizes[3]}}});
    }
    const V sizes{4, 3, 5, 21};
    Try({op, LayerArgs(gates, 1, sizes, true), {{"hidden_size", 21}, {"layout", 1}, {"direction", "reverse"}}});
    Try({op, LayerArgs(gates, 2, sizes, true), {{"hidden_size", 21}, {"layout", 1}, {"direction", "bidirectional"}}});
    Try({op, LayerArgs(gates, 2, sizes, false), {{"hidden_size", 21}, {"direction", "bidirectional"}}});
    const V large{3, 2, 8, 256};
    Try({op, LayerArgs(gates, 2, large, false), {{"hidden_size", 256}, {"direction", "bidirectional"}}, -0.1, 0.1}, 2);
  }
  for (const V& sizes : {V{5, 1, 7, 16}, V{4, 3, 5, 21}}) {
    Try({"nn.gru",
         LayerArgs(3, 2, sizes, false),
         {{"hidden_size", sizes[3]}, {"direction", "bidirectional"}, {"linear_before_reset", true}}});
  }
}

TEST(NativeOperatorsTest, RecurrentOptions) {
  const int64_t h = 18;
  const std::vector<Type> lstm{T({4, 3, 5}), T({1, 4 * h, 5}), T({1, 4 * h, h}), T({1, 8 * h}),
                               T({1, 3, h}), T({1, 3, h}),     T({1, 3 * h}),    T({3}, kInt64)};
  Try({"nn.lstm", lstm, {{"hidden_size", h}}, 0, 4});
  Try({"nn.lstm", lstm, {{"hidden_size", h}, {"direction", "reverse"}, {"input_forget", true}}, 0, 4});
  const std::vector<Type> gru{T({4, 3, 5}),  T({2, 3 * h, 5}), T({2, 3 * h, h}),
                              T({2, 6 * h}), T({2, 3, h}),     T({3}, kInt64)};
  Try({"nn.gru", gru, {{"hidden_size", h}, {"direction", "bidirectional"}}, 0, 1});
  Try({"nn.gru",
       gru,
       {{"hidden_size", h},
        {"direction", "bidirectional"},
        {"clip", 0.5},
        {"activations", AttrValue::List{"HardSigmoid", "Softsign", "Sigmoid", "Relu"}}},
       0,
       1});
}

}  // namespace
}  // namespace collage
