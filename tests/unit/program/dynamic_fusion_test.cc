// Programs whose shapes a run knows: by native kernels what the reference evaluation computes, at many sizes.
#include "program/dynamic_fusion.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "backends/builtin_toolchains.h"
#include "bytecode/bytecode.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/runtime/thread_pool.h"
#include "collage/transform/passes.h"
#include "collage/vm/vm.h"
#include "ir/eval/interpreter.h"
#include "program/regions.h"
#include "runtime/random_inputs.h"
#include "unit/program/dynamic_kernels.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

TEST_F(DynamicKernelsTest, ElementsOfAnyNumberOfRows) {
  Check(R"(def @main(%x: Tensor[(?, 5), float32], %b: Tensor[(5), float32]) {
             nn.relu(multiply(add(%x, %b), tanh(%x))) })",
        ForEach({1, 0, 3, 17, 1000, 2}, [](int64_t n) {
          return std::vector<Shape>{{n, 5}, {5}};
        }));
}

TEST_F(DynamicKernelsTest, RowsOfAnyLength) {
  Check(R"(def @main(%x: Tensor[(?, ?), float32], %y: Tensor[(?, 1), float32]) {
             where(greater(%x, %y), sqrt(abs(%x)), cast(cast(%x, dtype="int32"), dtype="float32")) })",
        {{{3, 7}, {3, 1}},
         {{1, 1}, {1, 1}},
         {{5, 64}, {5, 1}},
         {{2, 0}, {2, 1}},
         {{4, 33}, {4, 1}},
         {{2, 9000}, {2, 1}}});
}

// A field of a tuple is made by no operator of its own.
TEST_F(DynamicKernelsTest, FieldsOfASplitAreJoinedAndReduced) {
  Check(R"(def @main(%x: Tensor[(?, 4, ?), float32]) {
             %0 = split(%x, indices_or_sections=2, axis=1);
             %1 = %0.0;
             %2 = (%1, nn.relu(%x), %0.1);
             %3 = concatenate(%2, axis=1);
             (%3, sum(%0.1, axis=[2])) })",
        {{{1, 4, 3}}, {{2, 4, 17}}, {{3, 4, 1}}}, 3);
}

// One field is read by the operator behind, the other by what that operator reads.
TEST_F(DynamicKernelsTest, FieldsThatComeBackMakeNoCircle) {
  Check(R"(def @main(%x: Tensor[(?, 4, ?), float32], %w: Tensor[(2, 2, 3), float32]) {
             %0 = split(nn.relu(%x), indices_or_sections=2, axis=1);
             %1 = nn.conv1d(%0.0, %w, padding=[1, 1], channels=2, kernel_size=[3]);
             add(%0.1, %1) })",
        {{{1, 4, 3}, {2, 2, 3}}, {{2, 4, 17}, {2, 2, 3}}}, 3);
}

TEST_F(DynamicKernelsTest, OperandsThatMayBeStretchedAreWhatTheyTurnOutToBe) {
  Check(R"(def @main(%x: Tensor[(?, ?), float32], %y: Tensor[(?, ?), float32]) { maximum(multiply(%x, 0.5f), %y) })",
        {{{3, 7}, {3, 7}}, {{3, 7}, {1, 7}}, {{1, 7}, {3, 7}}, {{3, 1}, {3, 20}}, {{2, 1}, {1, 2}}, {{1, 1}, {1, 1}}});
  Check(R"(def @main(%x: Tensor[(?), int64], %y: Tensor[(4), int64]) { add(%x, %y) })", {{{4}, {4}}, {{1}, {4}}});
}

TEST_F(DynamicKernelsTest, ShapesThatDoNotFitAreRefused) {
  const IRModule module = ParseModule(R"(#[version = "0.0.5"]
    def @main(%x: Tensor[(?, ?), float32], %y: Tensor[(?, ?), float32]) { add(%x, %y) })",
                                      "t.relay");
  vm::Machine machine(Compiled(module));
  ExpectError([&] { machine.Invoke("main", Arguments(module, {{2, 3}, {2, 4}}, 1)); }, ErrorCategory::kInput, "add");
}

TEST_F(DynamicKernelsTest, ElementsOfOtherTypes) {
  Check(
      R"(def @main(%x: Tensor[(?), int8], %y: Tensor[(?), int8]) { cast(subtract(multiply(%x, %y), %y), dtype="uint8") })",
      {{{3}, {3}}, {{100}, {100}}, {{1}, {1}}, {{0}, {0}}});
  Check(R"(def @main(%x: Tensor[(2, ?), float64]) { exp(%x) })", {{{2, 3}}, {{2, 0}}, {{2, 40}}});
  Check(R"(def @main(%x: Tensor[(2, ?), float16]) { multiply(%x, %x) })", {{{2, 3}}, {{2, 1}}, {{2, 40}}});
  Check(R"(def @main(%x: Tensor[(?, 2), bool], %y: Tensor[(?, 2), bool]) { logical_and(%x, logical_not(%y)) })",
        {{{3, 2}, {3, 2}}, {{30, 2}, {30, 2}}});
}

TEST_F(DynamicKernelsTest, Transposed) {
  Check(R"(def @main(%x: Tensor[(2, ?, 3, 8), float32]) { transpose(nn.relu(%x), axes=[0, 2, 1, 3]) })",
        ForEach({1, 5, 64}, [](int64_t n) {
          return std::vector<Shape>{{2, n, 3, 8}};
        }));
  Check(R"(def @main(%x: Tensor[(?, ?), float32]) { transpose(%x, axes=[1, 0]) })",
        {{{3, 5}}, {{1, 40}}, {{40, 1}}, {{33, 65}}, {{0, 2}}});
}

TEST_F(DynamicKernelsTest, SlicedTakenAndSplit) {
  Check(R"(def @main(%x: Tensor[(?, 10), float32]) { strided_slice(%x, begin=[1, 2], end=[1000, 9], strides=[2, 3]) })",
        {{{2, 10}}, {{3, 10}}, {{20, 10}}});
  Check(R"(def @main(%table: Tensor[(?, 20), float32], %at: Tensor[(2, ?), int64]) { take(%table, %at, axis=0) })",
        {{{7, 20}, {2, 5}}, {{1, 20}, {2, 9}}, {{300, 20}, {2, 1}}, {{0, 20}, {2, 0}}});
  Check(R"(def @main(%table: Tensor[(7, 20), float32], %at: Tensor[(2, ?), int64]) { take(%table, %at, axis=0) })",
        ForEach({1, 5, 0, 33}, [](int64_t n) {
          return std::vector<Shape>{{7, 20}, {2, n}};
        }));
  // Positions that are computed, of a rank that the result keeps.
  Check(R"(def @main(%x: Tensor[(?), float32], %b: Tensor[(?, 1, 1, 1), int64], %t: Tensor[(?, 1), int64]) {
             take(%x, add(%b, %t), axis=0) })",
        {{{40}, {3, 1, 1, 1}, {7, 1}}, {{9}, {1, 1, 1, 1}, {20, 1}}, {{5}, {4, 1, 1, 1}, {1, 1}}});
  Check(R"(def @main(%x: Tensor[(?, 12), float32]) {
             let %parts = split(%x, indices_or_sections=3, axis=1);
             add(%parts.0, multiply(%parts.1, %parts.2)) })",
        {{{1, 12}}, {{5, 12}}, {{0, 12}}, {{33, 12}}});
}

TEST_F(DynamicKernelsTest, Joined) {
  Check(R"(def @main(%x: Tensor[(2, ?), float32], %y: Tensor[(2, ?), float32], %z: Tensor[(2, 3), float32]) {
             nn.relu(concatenate((sqrt(abs(%x)), %y, tanh(%z)), axis=1)) })",
        {{{2, 3}, {2, 5}, {2, 3}}, {{2, 0}, {2, 40}, {2, 3}}, {{2, 1}, {2, 1}, {2, 3}}}, /*kernels=*/1, {"tanh"});
  Check(R"(def @main(%x: Tensor[(?, 1), float32], %y: Tensor[(?, 1), float32], %z: Tensor[(?, 2), float32]) {
             nn.relu(concatenate((sqrt(%x), %y, %z), axis=1)) })",
        {{{1, 1}, {1, 1}, {1, 2}}, {{33, 1}, {33, 1}, {33, 2}}, {{0, 1}, {0, 1}, {0, 2}}});
}

TEST_F(DynamicKernelsTest, Reduced) {
  for (const char* name : {"sum", "mean", "max", "min", "prod", "variance"}) {
    Check(fmt::format(R"(def @main(%x: Tensor[(?, ?), float32]) {{ {}(nn.relu(%x), axis=[1], keepdims=True) }})", name),
          {{{3, 7}}, {{1, 1}}, {{5, 64}}, {{4, 200}}, {{0, 3}}});
    Check(fmt::format(R"(def @main(%x: Tensor[(?, 4, ?), float32]) {{ {}(%x, axis=[0, 1]) }})", name),
          {{{3, 4, 7}}, {{1, 4, 1}}, {{5, 4, 64}}});
  }
  Check(R"(def @main(%x: Tensor[(?, ?), float32]) { sum(%x) })", {{{3, 7}}, {{100, 90}}, {{0, 3}}});
  Check(R"(def @main(%x: Tensor[(?, ?), int32]) { mean(%x, axis=[1]) })", {{{3, 7}}, {{2, 90}}});
  Check(R"(def @main(%x: Tensor[(?, ?), float32]) { argmax(%x, axis=[1]) })", {{{3, 7}}, {{5, 1}}, {{4, 100}}});
  Check(R"(def @main(%x: Tensor[(3, ?), bool]) { any(%x, axis=[1]) })", {{{3, 7}}, {{3, 40}}});
}

TEST_F(DynamicKernelsTest, Normalised) {
  const auto sizes = std::vector<std::vector<Shape>>{{{2, 7}}, {{1, 1}}, {{3, 64}}, {{4, 201}}, {{0, 3}}};
  for (const char* name : {"nn.softmax", "nn.log_softmax"}) {
    Check(fmt::format("def @main(%x: Tensor[(?, ?), float32]) {{ {}(multiply(%x, 3f)) }}", name), sizes);
    Check(fmt::format("def @main(%x: Tensor[(?, ?), float32]) {{ {}(%x, axis=0) }}", name),
          {{{2, 7}}, {{1, 1}}, {{30, 64}}});
  }
  // Values that are kept between passes do not fit into the result.
  Check(R"(def @main(%x: Tensor[(?, ?), float32]) {
             cast(nn.softmax(cast(%x, dtype="float64")), dtype="float32") })",
        sizes);
  Check(R"(def @main(%x: Tensor[(?, ?, 24), float32], %g: Tensor[(24), float32], %b: Tensor[(24), float32]) {
             multiply(nn.layer_norm(%x, %g, %b), 3f) })",
        ForEach({1, 5, 0, 33}, [](int64_t n) {
          return std::vector<Shape>{{2, n, 24}, {24}, {24}};
        }));
}

TEST_F(DynamicKernelsTest, ProductsOfAnyNumberOfRows) {
  Check(R"(def @main(%x: Tensor[(?, 20), float32], %w: Tensor[(70, 20), float32], %b: Tensor[(70), float32]) {
             nn.relu(add(nn.dense(%x, %w), %b)) })",
        ForEach({1, 2, 3, 5, 11, 12, 13, 0, 100, 129}, [](int64_t n) {
          return std::vector<Shape>{{n, 20}, {70, 20}, {70}};
        }));
}

TEST_F(DynamicKernelsTest, ProductsOfUnknownSizes) {
  const auto shapes = [](int64_t m, int64_t k, int64_t n) { return std::vector<Shape>{{2, m, k}, {2, n, k}}; };
  Check(R"(def @main(%x: Tensor[(2, ?, ?), float32], %y: Tensor[(2, ?, ?), float32]) {
             multiply(nn.batch_matmul(%x, %y, transpose_b=True), 0.1f) })",
        {shapes(3, 4, 5), shapes(1, 1, 1), shapes(33, 17, 65), shapes(12, 64, 32), shapes(7, 5, 0), shapes(0, 5, 7)});
  Check(R"(def @main(%x: Tensor[(?, 3, ?), float64], %y: Tensor[(1, ?, 6), float64]) {
             nn.batch_matmul(%x, %y, transpose_b=False) })",
        {{{2, 3, 4}, {1, 4, 6}}, {{1, 3, 1}, {1, 1, 6}}, {{20, 3, 9}, {1, 9, 6}}});
}

TEST_F(DynamicKernelsTest, ConstantMatricesArePackedAhead) {
  const auto random = [](const Shape& shape, DataType dtype, double low, double high) {
    const Tensor tensor = Tensor::Empty(shape, dtype);
    FillRandom(tensor, 3, low, high);
    return MakeConstant(tensor);
  };
  const Var x = MakeVar("x", TensorType(std::vector<Dim>{Dim::Any(), Dim(64)}, kFloat32));
  std::vector<Expr> products{MakeCall("nn.dense", {x, random({70, 64}, kFloat32, -1, 1)})};
  for (const int64_t bits : {2, 4, 8}) {
    const Expr bytes = random({70, 2, 4 * bits}, kUInt8, 0, 256), scales = random({70, 2}, kFloat32, 0.01, 0.1);
    products.push_back(MakeCall("qnn.matmul_nbits", {x, bytes, scales}, {{"bits", bits}}));
  }
  for (const Expr& product : products) {
    const IRModule module = InferTypes(IRModule::FromFunction(MakeFunction({x}, MakeCall("nn.relu", {product}))));
    const vm::Executable executable = Compiled(module);
    EXPECT_EQ(Count(executable.Disassemble(), "dynamic_kernel"), 1) << executable.Disassemble();
    vm::Machine machine(executable);
    for (const int64_t rows : {1, 3, 4, 0, 50}) {
      const std::vector<Value> args = Arguments(module, {{rows, 64}}, 5);
      EXPECT_TRUE(ValuesEqual(Interpret(module, "main", args), machine.Invoke("main", args), kTolerance)) << rows;
    }
  }
}

TEST_F(DynamicKernelsTest, PartitionsOfKnownShapesAreNotAmongThem) {
  Check(R"(def @main(%x: Tensor[(?, 8), float32], %y: Tensor[(5, 8), float32]) { (tanh(%x), tanh(%y)) })",
        {{{3, 8}, {5, 8}}}, /*kernels=*/1, {"tanh"});
}

TEST_F(DynamicKernelsTest, DamagedKernelsAreRefused) {
  const IRModule module = ParseModule(R"(#[version = "0.0.5"]
    def @main(%x: Tensor[(?, 6), float32]) { nn.relu(tanh(%x)) })",
                                      "t.relay");
  const vm::Executable whole = Compiled(module);
  const auto load = [&](const std::function<void(vm::DynamicKernel & kernel)>& damage) {
    vm::Program program = whole.program();
    damage(program.dynamic_kernels[0]);
    return vm::Executable::Deserialize(vm::Executable(std::make_shared<const vm::Program>(program)).Serialize());
  };
  EXPECT_EQ(load([](vm::DynamicKernel&) {}).Disassemble(), whole.Disassemble());
  const auto expect_refused = [&](const std::function<void(vm::DynamicKernel & kernel)>& damage) {
    ExpectError([&] { load(damage); }, ErrorCategory::kCorrupt, "");
  };
  expect_refused([](vm::DynamicKernel& kernel) { kernel.sizes.steps[1].args = {5}; });
  expect_refused(
      [](vm::DynamicKernel& kernel) { kernel.sizes.steps.insert(kernel.sizes.steps.begin(), kernel.sizes.steps[0]); });
  expect_refused([](vm::DynamicKernel& kernel) { kernel.sizes.result = 9; });
  expect_refused([](vm::DynamicKernel& kernel) { kernel.sizes.variables[0].places[0].value = -1; });
  expect_refused([](vm::DynamicKernel& kernel) { kernel.codes.clear(); });
  expect_refused([](vm::DynamicKernel& kernel) { kernel.codes[0].constants = {3}; });
  // What only a run can tell.
  vm::Machine machine(load([](vm::DynamicKernel& kernel) { kernel.sizes.variables[0].places[0].dim = 4; }));
  ExpectError([&] { machine.Invoke("main", Arguments(module, {{2, 6}}, 1)); }, ErrorCategory::kCorrupt, "damaged");
}

TEST_F(DynamicKernelsTest, WhatIsFusedReadsAsText) {
  const IRModule module = ParseModule(R"(#[version = "0.0.5"]
    def @main(%x: Tensor[(?, 6), float32], %y: Tensor[(?, 8), float32], %w: Tensor[(8, 6), float32]) {
      let %a = nn.relu(nn.dense(tanh(%x), %w));
      (nn.softmax(multiply(add(%a, %y), 2f)), mean(%a, axis=[1])) })",
                                      "t.relay");
  EXPECT_EQ(Compiled(module).Disassemble(), R"(@main(%0, %1, %2) registers 8
   0: %3 = dynamic_kernel collage_shaped0(%0)
   1: %4 = dynamic_kernel collage_shaped1(%3, %2)
   2: %5 = dynamic_kernel collage_shaped2(%4, %1)
   3: %6 = dynamic_kernel collage_shaped3(%4)
   4: %7 = tuple(%5, %6)
   5: return(%7)
)");
}

// One block of a transformer, its heads split off and joined again, at several lengths.
TEST_F(DynamicKernelsTest, ATransformerOfAnyLength) {
  Check(R"(def @main(%x: Tensor[(?, 32), float32], %mask: Tensor[(1, ?), float32], %wq: Tensor[(32, 32), float32],
                     %wk: Tensor[(32, 32), float32], %wv: Tensor[(32, 32), float32], %wo: Tensor[(32, 32), float32],
                     %w1: Tensor[(64, 32), float32], %w2: Tensor[(32, 64), float32], %g: Tensor[(32), float32],
                     %b: Tensor[(32), float32]) {
             let %h = nn.layer_norm(%x, %g, %b);
             let %q = transpose(reshape(nn.dense(%h, %wq), newshape=[-1, 4, 8]), axes=[1, 0, 2]);
             let %k = transpose(reshape(nn.dense(%h, %wk), newshape=[-1, 4, 8]), axes=[1, 0, 2]);
             let %v = transpose(reshape(nn.dense(%h, %wv), newshape=[-1, 4, 8]), axes=[1, 0, 2]);
             let %s = add(multiply(nn.batch_matmul(%q, %k, transpose_b=True), 0.35f), %mask);
             let %c = nn.batch_matmul(nn.softmax(%s), %v, transpose_b=False);
             let %o = reshape(transpose(%c, axes=[1, 0, 2]), newshape=[-1, 32]);
             let %y = add(%x, nn.dense(%o, %wo));
             add(%y, nn.dense(nn.relu(nn.dense(nn.layer_norm(%y, %g, %b), %w1)), %w2)) })",
        ForEach({1, 2, 7, 16, 33, 100, 7},
                [](int64_t n) {
                  return std::vector<Shape>{{n, 32},  {1, n},   {32, 32}, {32, 32}, {32, 32},
                                            {32, 32}, {64, 32}, {32, 64}, {32},     {32}};
                }),
        /*kernels=*/17, {"reshape", "reshape", "reshape", "reshape"});
}

TEST_F(DynamicKernelsTest, ConvolutionsOfImagesOfAnySize) {
  const auto images = [](int64_t channels, const Shape& weight) {
    return [=](const std::vector<int64_t>& size) {
      return std::vector<Shape>{{size[0], channels, size[1], size[2]}, weight, {weight[0], 1, 1}};
    };
  };
  const std::vector<std::vector<int64_t>> sizes{{1, 9, 9}, {2, 5, 40}, {1, 64, 33}, {0, 9, 9}, {1, 7, 6}, {3, 12, 70}};
  const auto check = [&](const std::string& call, int64_t channels, const Shape& weight) {
    std::vector<std::vector<Shape>> shapes;
    for (const std::vector<int64_t>& size : sizes) shapes.push_back(images(channels, weight)(size));
    Check(fmt::format("def @main(%x: Tensor[(?, {}, ?, ?), float32], %w: Tensor[({}), float32], "
                      "%b: Tensor[({}, 1, 1), float32]) {{ nn.relu(add({}, %b)) }}",
                      channels, fmt::join(weight, ", "), weight[0], call),
          shapes);
  };
  check("nn.conv2d(%x, %w, padding=[1, 1, 1, 1])", 3, {8, 3, 3, 3});
  check("nn.conv2d(%x, %w)", 5, {33, 5, 1, 1});
  check("nn.conv2d(%x, %w, strides=[2, 2], padding=[0, 2, 3, 1])", 4, {7, 4, 5, 3});
  check("nn.conv2d(%x, %w, dilation=[2, 3], padding=[3, 3, 3, 3])", 2, {14, 2, 3, 2});
  check("nn.conv2d(%x, %w, groups=6, strides=[1, 2], padding=[1, 1, 1, 1])", 6, {6, 1, 3, 3});
  check("nn.conv2d(%x, %w, groups=2, padding=[2, 2, 2, 2])", 6, {10, 3, 5, 5});
}

TEST_F(DynamicKernelsTest, ConvolutionsOfOtherRanksAndTypes) {
  Check(R"(def @main(%x: Tensor[(2, 3, ?), float64], %w: Tensor[(5, 3, 4), float64]) {
             nn.conv1d(%x, %w, strides=[3], padding=[2, 1]) })",
        ForEach({1, 2, 17, 300}, [](int64_t n) {
          return std::vector<Shape>{{2, 3, n}, {5, 3, 4}};
        }));
  Check(R"(def @main(%x: Tensor[(1, 2, ?, 5, ?), float32], %w: Tensor[(4, 2, 3, 2, 3), float32]) {
             nn.conv3d(%x, %w, padding=[1, 0, 1, 1, 1, 1]) })",
        ForEach({1, 2, 19}, [](int64_t n) {
          return std::vector<Shape>{{1, 2, n, 5, 2 * n}, {4, 2, 3, 2, 3}};
        }));
}

TEST_F(DynamicKernelsTest, AConstantWindowIsPackedAhead) {
  const Var x = MakeVar("x", TensorType(std::vector<Dim>{Dim(1), Dim(6), Dim::Any(), Dim::Any()}, kFloat32));
  const Tensor weights = Tensor::Empty({34, 3, 3, 3}, kFloat32);
  FillRandom(weights, 3, -1, 1);
  const Expr conv =
      MakeCall("nn.conv2d", {x, MakeConstant(weights)}, {{"groups", 2}, {"padding", std::vector<int64_t>{1, 1, 1, 1}}});
  const IRModule module = InferTypes(IRModule::FromFunction(MakeFunction({x}, MakeCall("nn.relu", {conv}))));
  vm::Machine machine(Compiled(module));
  for (const int64_t size : {1, 4, 21, 50}) {
    const std::vector<Value> args = Arguments(module, {{1, 6, size, size + 1}}, 5);
    EXPECT_TRUE(ValuesEqual(Interpret(module, "main", args), machine.Invoke("main", args), kTolerance)) << size;
  }
}

TEST_F(DynamicKernelsTest, PoolsOfImagesOfAnySize) {
  const std::vector<std::vector<Shape>> shapes{{{1, 3, 9, 9}}, {{2, 3, 5, 40}}, {{1, 3, 64, 33}}, {{1, 3, 6, 7}}};
  for (const std::string call :
       {"nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])",
        "nn.max_pool2d(%x, pool_size=[2, 3], dilation=[2, 1], ceil_mode=True)",
        "nn.avg_pool2d(%x, pool_size=[3, 3], padding=[1, 1, 1, 1])",
        "nn.avg_pool2d(%x, pool_size=[3, 2], strides=[2, 3], padding=[1, 0, 2, 1], count_include_pad=True)",
        "nn.avg_pool2d(%x, pool_size=[4, 4], strides=[3, 3], padding=[1, 1, 1, 1], ceil_mode=True)",
        "nn.avg_pool2d(%x, pool_size=[3, 3], strides=[2, 2], ceil_mode=True, count_include_pad=True)",
        "nn.global_avg_pool2d(%x)", "nn.global_max_pool2d(%x)"}) {
    Check(fmt::format("def @main(%x: Tensor[(?, 3, ?, ?), float32]) {{ tanh({}) }}", call), shapes);
  }
  Check("def @main(%x: Tensor[(2, ?, ?), float16]) { nn.max_pool1d(%x, pool_size=[3], padding=[1, 1]) }",
        {{{2, 3, 5}}, {{2, 1, 33}}});
  Check("def @main(%x: Tensor[(2, 3, ?, 4, ?), float64]) { nn.avg_pool3d(%x, pool_size=[2, 2, 2], strides=[2, 1, 2]) }",
        {{{2, 3, 5, 4, 2}}, {{2, 3, 2, 4, 33}}});
}

TEST_F(DynamicKernelsTest, ANetworkOfImagesOfAnySize) {
  Check(R"(def @main(%x: Tensor[(1, 3, ?, ?), float32], %a: Tensor[(16, 3, 3, 3), float32],
                     %b: Tensor[(16, 16, 3, 3), float32], %d: Tensor[(16, 1, 3, 3), float32],
                     %o: Tensor[(5, 16), float32]) {
             let %s = nn.max_pool2d(nn.relu(nn.conv2d(%x, %a, strides=[2, 2], padding=[1, 1, 1, 1])), pool_size=[2, 2],
                                    strides=[2, 2]);
             let %r = nn.relu(add(nn.conv2d(%s, %b, padding=[1, 1, 1, 1]), %s));
             let %e = multiply(%r, sigmoid(nn.conv2d(%r, %d, groups=16, padding=[1, 1, 1, 1])));
             nn.softmax(nn.dense(reshape(nn.global_avg_pool2d(%e), newshape=[1, 16]), %o)) })",
        ForEach({8, 31, 64},
                [](int64_t n) {
                  return std::vector<Shape>{{1, 3, n, n + 9}, {16, 3, 3, 3}, {16, 16, 3, 3}, {16, 1, 3, 3}, {5, 16}};
                }),
        /*kernels=*/7, {"reshape", "nn.dense", "nn.softmax"});
}

TEST_F(DynamicKernelsTest, ImagesOfTwoBatchesApart) {
  Check(R"(def @main(%x: Tensor[(?, 3, 9, 9), float32], %y: Tensor[(?, 3, 9, 9), float32],
                     %w: Tensor[(8, 3, 3, 3), float32]) {
             (nn.relu(nn.conv2d(%x, %w)), tanh(nn.conv2d(%y, %w))) })",
        {{{2, 3, 9, 9}, {5, 3, 9, 9}, {8, 3, 3, 3}}, {{9, 3, 9, 9}, {1, 3, 9, 9}, {8, 3, 3, 3}}}, /*kernels=*/2);
}

TEST_F(DynamicKernelsTest, ImagesOfABatchOneByOne) {
  Check(R"(def @main(%x: Tensor[(?, 3, 9, 9), float32], %w: Tensor[(8, 3, 3, 3), float32],
                     %b: Tensor[(8, 1, 1), float32], %d: Tensor[(5, 128), float32]) {
             let %c = nn.relu(add(nn.conv2d(%x, %w, padding=[1, 1, 1, 1]), %b));
             let %p = nn.max_pool2d(%c, pool_size=[2, 2], strides=[2, 2]);
             (nn.softmax(nn.dense(reshape(%p, newshape=[0, -1]), %d)), nn.global_avg_pool2d(add(%c, %c))) })",
        ForEach({1, 3, 8, 0, 19}, [](int64_t n) {
          return std::vector<Shape>{{n, 3, 9, 9}, {8, 3, 3, 3}, {8, 1, 1}, {5, 128}};
        }));
}

// The state grows by a row each time around.
TEST_F(DynamicKernelsTest, ShapesThatGrowInALoop) {
  Check(R"(def @main(%x: Tensor[(1, 8), float32]) { @loop(4, %x) }
           def @loop(%i: int32, %x: Tensor[(?, 8), float32]) -> Tensor[(?, 8), float32] {
             if (equal(%i, 0)) { %x } else { @loop(subtract(%i, 1), concatenate((nn.softmax(%x), tanh(%x)), axis=0)) } })",
        {{{1, 8}}}, /*kernels=*/2, {"equal", "subtract"});
}

/// A function of random operators on tensors whose dimensions are `a`, `b` (both `?`) or numbers.
class RandomFunction {
 public:
  explicit RandomFunction(uint64_t seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) {
      std::vector<int64_t> dims;
      for (int rank = 1 + Below(3); rank > 0; --rank) dims.push_back(kDims[static_cast<size_t>(Below(4))]);
      params_.push_back(MakeVar(fmt::format("p{}", i), TypeOf(dims)));
      param_dims_.push_back(dims);
      Add(params_.back(), dims);
    }
    for (int i = 3 + Below(8); i > 0; --i) Grow();
  }

  IRModule Module() const {
    const Expr body = MakeTuple({pool_.back().expr, pool_[pool_.size() / 2].expr});
    return InferTypes(IRModule::FromFunction(MakeFunction(params_, body)));
  }

  std::vector<Shape> Shapes(int64_t a, int64_t b) const {
    std::vector<Shape> shapes;
    for (const std::vector<int64_t>& dims : param_dims_) {
      Shape& shape = shapes.emplace_back();
      for (const int64_t dim : dims) shape.push_back(dim == kA ? a : dim == kB ? b : dim);
    }
    return shapes;
  }

 private:
  static constexpr int64_t kA = -1, kB = -2;
  static constexpr int64_t kDims[] = {kA, kB, 4, 1};
  struct Made {
    Expr expr;
    std::vector<int64_t> dims;
  };

  int Below(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }
  static Type TypeOf(const std::vector<int64_t>& dims) {
    std::vector<Dim> shape;
    for (const int64_t dim : dims) shape.push_back(dim < 0 ? Dim::Any() : Dim(dim));
    return TensorType(shape, kFloat32);
  }
  void Add(Expr expr, std::vector<int64_t> dims) { pool_.push_back({std::move(expr), std::move(dims)}); }
  const Made& Any() {
    return pool_[pool_.size() - 1 - static_cast<size_t>(Below(std::min<int>(4, static_cast<int>(pool_.size()))))];
  }

  void Grow() {
    const Made x = Any();
    const auto rank = static_cast<int>(x.dims.size());
    switch (Below(8)) {
      case 0: return Add(MakeCall("tanh", {x.expr}), x.dims);
      case 1: return Add(MakeCall("nn.relu", {x.expr}), x.dims);
      case 2:
      case 3: {
        const Made y = Any();
        std::vector<int64_t> dims;
        for (size_t i = 1; i <= std::max(x.dims.size(), y.dims.size()); ++i) {
          const int64_t p = i > x.dims.size() ? 1 : x.dims[x.dims.size() - i];
          const int64_t q = i > y.dims.size() ? 1 : y.dims[y.dims.size() - i];
          if (p != q && p != 1 && q != 1) return;
          dims.insert(dims.begin(), p == 1 ? q : p);
        }
        return Add(MakeCall(Below(2) == 0 ? "add" : "multiply", {x.expr, y.expr}), dims);
      }
      case 4: {
        const int axis = Below(std::max(rank, 1));
        if (rank == 0) return;
        return Add(MakeCall("nn.softmax", {x.expr}, Attrs{{"axis", axis}}), x.dims);
      }
      case 5: {
        if (rank == 0) return;
        const int axis = Below(rank);
        std::vector<int64_t> dims = x.dims;
        dims[static_cast<size_t>(axis)] = 1;
        const char* names[] = {"sum", "max", "mean"};
        return Add(MakeCall(names[Below(3)], {x.expr}, Attrs{{"axis", AttrValue::List{axis}}, {"keepdims", true}}),
                   dims);
      }
      case 6: {
        std::vector<int64_t> axes;
        std::vector<int64_t> dims(x.dims.rbegin(), x.dims.rend());
        for (int i = rank; i-- > 0;) axes.push_back(i);
        if (rank < 2) return;
        return Add(MakeCall("transpose", {x.expr}, Attrs{{"axes", axes}}), dims);
      }
      default: {
        if (rank != 2 || x.dims[1] != 4) return;
        const Tensor weights = Tensor::Empty({4, 4}, kFloat32);
        FillRandom(weights, random_(), -1, 1);
        return Add(MakeCall("nn.dense", {x.expr, MakeConstant(weights)}), x.dims);
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<Var> params_;
  std::vector<std::vector<int64_t>> param_dims_;
  std::vector<Made> pool_;
};

TEST_F(DynamicKernelsTest, RandomFunctions) {
  const char* seed = std::getenv("COLLAGE_PROPERTY_SEED");
  const char* modules = std::getenv("COLLAGE_PROPERTY_MODULES");
  const uint64_t first = seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10);
  const uint64_t count = modules == nullptr ? 12 : std::strtoull(modules, nullptr, 10);
  for (uint64_t number = first; number < first + count; ++number) {
    const RandomFunction random(number);
    const IRModule module = random.Module();
    vm::Machine machine(Compiled(module));
    for (const auto& [a, b] : std::vector<std::pair<int64_t, int64_t>>{{2, 3}, {1, 17}, {5, 1}, {1, 1}, {33, 16}}) {
      const std::vector<Value> args = Arguments(module, random.Shapes(a, b), number);
      const Value expected = Interpret(module, "main", args);
      EXPECT_TRUE(ValuesEqual(expected, machine.Invoke("main", args), kTolerance))
          << fmt::format("seed {}, sizes {} and {}\n", number, a, b) << PrintModule(module);
    }
  }
}

}  // namespace
}  // namespace collage
