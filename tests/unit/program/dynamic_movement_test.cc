// dynamic_movement_test.cc: kernels of any size that move elements: by native kernels what the reference evaluation
// computes, at many sizes.
#include <fmt/format.h>

#include "unit/program/dynamic_kernels.h"

namespace collage {
namespace {

TEST_F(DynamicKernelsTest, SlicedFromTheEnd) {
  Check(R"(def @main(%x: Tensor[(?, ?), float32]) {
             nn.relu(strided_slice(%x, begin=[-3, 2], end=[1000, -1], strides=[1, 1])) })",
        {{{2, 10}}, {{3, 3}}, {{20, 40}}, {{0, 5}}, {{7, 1}}});
  Check(R"(def @main(%x: Tensor[(?, ?), float32]) {
             strided_slice(%x, begin=[-1, 4], end=[-1000, 0], strides=[-1, -2]) })",
        {{{2, 10}}, {{3, 3}}, {{20, 40}}, {{1, 1}}, {{0, 2}}});
}

TEST_F(DynamicKernelsTest, GatheredAndRepeated) {
  Check(R"(def @main(%x: Tensor[(?, 6), float32], %at: Tensor[(?, 6), int64]) { nn.relu(gather(%x, %at, axis=0)) })",
        {{{5, 6}, {7, 6}}, {{1, 6}, {2, 6}}, {{40, 6}, {0, 6}}, {{0, 6}, {0, 6}}});
  Check(R"(def @main(%x: Tensor[(?, ?, 5), float32], %at: Tensor[(2, ?), int32]) { gather_nd(%x, %at) })",
        {{{5, 6, 5}, {2, 7}}, {{8, 5, 5}, {2, 1}}, {{9, 9, 5}, {2, 40}}, {{2, 2, 5}, {2, 0}}});
  Check(
      R"(def @main(%x: Tensor[(2, ?, ?), float32]) { nn.relu(repeat(repeat(%x, repeats=2, axis=1), repeats=3, axis=2)) })",
      {{{2, 3, 5}}, {{2, 1, 1}}, {{2, 20, 33}}, {{2, 0, 4}}});
  Check(R"(def @main(%x: Tensor[(?, ?), float32]) { tile(%x, reps=[2, 3]) })",
        {{{3, 5}}, {{1, 1}}, {{17, 40}}, {{0, 4}}});
  Check(R"(def @main(%x: Tensor[(?, ?), float32]) { add(reverse(%x, axis=1), reverse(%x, axis=0)) })",
        {{{3, 5}}, {{1, 1}}, {{17, 40}}, {{0, 4}}});
  Check(R"(def @main(%x: Tensor[(?, ?), float32]) { trilu(%x, -1, upper=False) })", {{{3, 5}}, {{1, 1}}, {{40, 40}}});
  Check(R"(def @main(%x: Tensor[(?, ?), int64]) { one_hot(%x, 2f, -1f, depth=5, axis=1) })",
        {{{3, 5}}, {{1, 1}}, {{40, 40}}, {{0, 3}}});
  Check(R"(def @main(%x: Tensor[(?, ?), float32], %y: Tensor[(?, ?), float32]) {
             stack((sqrt(abs(%x)), %y), axis=1) })",
        {{{3, 5}, {3, 5}}, {{1, 1}, {1, 1}}, {{17, 40}, {17, 40}}, {{0, 4}, {0, 4}}}, /*kernels=*/1);
  Check(R"(def @main(%x: Tensor[(?, 1, ?), float32]) { broadcast_to(%x, shape=[4, 3, 5]) })",
        {{{4, 1, 5}}, {{1, 1, 5}}, {{4, 1, 1}}});
}

TEST_F(DynamicKernelsTest, Padded) {
  for (const char* mode : {"constant", "edge", "reflect"}) {
    Check(fmt::format(R"(def @main(%x: Tensor[(2, ?, ?), float32]) {{
                           nn.relu(nn.pad(%x, 3f, pad_width=[[0, 0], [1, 2], [3, 0]], pad_mode="{}")) }})",
                      mode),
          {{{2, 4, 5}}, {{2, 9, 40}}, {{2, 3, 4}}, {{2, 1, 1}}});
  }
  Check(R"(def @main(%x: Tensor[(2, ?), float32]) { nn.pad(%x, 3f, pad_width=[[0, 0], [-1, 2]]) })",
        {{{2, 4}}, {{2, 1}}, {{2, 33}}});
  Check(R"(def @main(%x: Tensor[(2, ?), float32]) { nn.pad(%x, 3f, pad_width=[[0, 0], [1, 2]]) })",
        {{{2, 0}}, {{2, 7}}});
}

TEST_F(DynamicKernelsTest, ScatteredAndSummedUp) {
  for (const char* how : {"update", "add", "max"}) {
    Check(fmt::format(
              R"(def @main(%x: Tensor[(?, 5), float32], %at: Tensor[(?, 5), int64], %y: Tensor[(?, 5), float32]) {{
                           scatter_elements(%x, %at, %y, axis=0, reduction="{}") }})",
              how),
          {{{5, 5}, {4, 5}, {4, 5}}, {{9, 5}, {3, 5}, {3, 5}}, {{7, 5}, {0, 5}, {0, 5}}, {{40, 5}, {30, 5}, {30, 5}}});
    Check(fmt::format(
              R"(def @main(%x: Tensor[(?, ?, ?), float32], %at: Tensor[(2, ?), int32], %y: Tensor[(?, ?), float32]) {{
                           scatter_nd(%x, %at, %y, mode="{}") }})",
              how),
          {{{5, 5, 6}, {2, 3}, {3, 6}}, {{7, 9, 40}, {2, 5}, {5, 40}}, {{6, 6, 1}, {2, 0}, {0, 1}}});
  }
  // Operators behind it are a kernel of their own.
  Check(R"(def @main(%x: Tensor[(?, ?), float32]) { nn.relu(cumsum(%x, axis=1)) })",
        {{{3, 5}}, {{1, 1}}, {{0, 3}}, {{40, 33}}},
        /*kernels=*/2);
  Check(R"(def @main(%x: Tensor[(?, ?, 7), int64]) { cumsum(%x, axis=1, exclusive=True) })",
        {{{3, 5, 7}}, {{1, 1, 7}}, {{2, 0, 7}}, {{9, 33, 7}}});
}

TEST_F(DynamicKernelsTest, BytesAndNumbers) {
  Check(R"(def @main(%x: Tensor[(?, ?), float32]) {
             let %zero = cast(3, dtype="int8");
             qnn.dequantize(qnn.quantize(%x, 0.02f, %zero), 0.02f, %zero) })",
        {{{3, 5}}, {{1, 1}}, {{0, 3}}, {{40, 33}}});
}

TEST_F(DynamicKernelsTest, OneScaleOrOneForEachChannelIsNotGuessed) {
  Check(R"(def @main(%x: Tensor[(?, 8), float32], %scale: Tensor[(?), float32], %zero: Tensor[(?), uint8]) {
             qnn.quantize(%x, %scale, %zero, axis=1, out_dtype="uint8") })",
        {{{3, 8}, {1}, {1}}, {{3, 8}, {8}, {8}}}, /*kernels=*/0, {"qnn.quantize"});
}

TEST_F(DynamicKernelsTest, SizesThatAreArguments) {
  const std::vector<std::vector<Shape>> shapes{{{1, 5}, {3, 5}}, {{1, 1}, {4, 7}}, {{2, 1}, {2, 33}}, {{1, 4}, {0, 4}}};
  Check(R"(def @main(%x: Tensor[(?, ?), float32], %y: Tensor[(?, ?), float32]) {
             nn.relu(dyn.broadcast_to(%x, shape_of(%y, dtype="int64"))) })",
        shapes, /*kernels=*/1, {"shape_of"});
  Check(R"(def @main(%x: Tensor[(?, ?), float32], %y: Tensor[(?, ?), float32]) {
             add(dyn.full(2f, shape_of(%y, dtype="int64")), dyn.zeros(shape_of(%y, dtype="int64"), dtype="float32")) })",
        shapes, /*kernels=*/1, {"shape_of"});
  Check(R"(def @main(%x: Tensor[(?), float32]) {
             let %n = take(shape_of(%x, dtype="int64"), 0, axis=0);
             (arange(cast(0, dtype="int64"), %n, cast(1, dtype="int64")), arange(cast(%n, dtype="float32"), -3f, -0.7f)) })",
        {{{5}}, {{0}}, {{1}}, {{40}}}, /*kernels=*/2, {"shape_of", "take", "cast"});
  Check(R"(def @main(%x: Tensor[(?, ?), float32], %y: Tensor[(?, ?), float32]) {
             dyn.tile(%x, shape_of(%y, dtype="int64")) })",
        {{{3, 5}, {2, 3}}, {{1, 1}, {1, 40}}, {{2, 3}, {1, 1}}}, /*kernels=*/1, {"shape_of"});
  for (const char* mode : {"constant", "edge", "reflect"}) {
    Check(fmt::format(R"(def @main(%x: Tensor[(?, ?), float32], %y: Tensor[(?, ?, ?, ?), float32]) {{
                           let %w = reshape(shape_of(%y, dtype="int64"), newshape=[2, 2]);
                           nn.relu(dyn.nn.pad(%x, %w, 3f, pad_mode="{}")) }})",
                      mode),
          {{{4, 5}, {1, 2, 3, 0}}, {{9, 40}, {0, 0, 0, 1}}, {{3, 4}, {2, 1, 1, 3}}}, /*kernels=*/1,
          {"shape_of", "reshape"});
  }
}

TEST_F(DynamicKernelsTest, EndsThatAreArguments) {
  const Type any = TensorType(std::vector<Dim>{Dim::Any(), Dim::Any()}, kFloat32);
  const auto numbers = [](int64_t a, int64_t b) {
    return MakeConstant(Tensor::Of<int64_t>({2}, kInt64, std::vector<int64_t>{a, b}));
  };
  const std::vector<std::vector<Shape>> shapes{{{9, 40}, {3, 5}}, {{4, 5}, {7, 1}}, {{1, 1}, {1, 1}}, {{0, 7}, {2, 2}}};
  for (const auto& [down, right] : {std::pair<int64_t, int64_t>{1, 1}, {1, 3}, {-1, 2}, {-2, -1}}) {
    const Var x = MakeVar("x", any), y = MakeVar("y", any);
    const Expr size = MakeCall("shape_of", {y}, {{"dtype", kInt64}});
    const Expr begin = MakeCall("multiply", {size, numbers(down < 0 ? 1 : -1, right < 0 ? 1 : -1)});
    const Expr end = MakeCall("subtract", {numbers(down < 0 ? -9 : 90, right < 0 ? 1 : 99), size});
    const Expr slice = MakeCall("dyn.strided_slice", {x, begin, end, numbers(down, right)});
    const Function function = MakeFunction({x, y}, MakeCall("nn.relu", {slice}));
    Check(InferTypes(IRModule::FromFunction(function)), shapes, /*kernels=*/1, {"shape_of", "multiply", "subtract"});
  }
}

TEST_F(DynamicKernelsTest, RowsOfPackedTables) {
  Check(R"(def @main(%table: Tensor[(9, 24), uint8], %at: Tensor[(?, ?), int64], %scales: Tensor[(9, 3), float32],
                     %zeros: Tensor[(9, 3), uint8]) {
             nn.relu(qnn.take_nbits(%table, %at, %scales, %zeros, bits=4, block_size=16)) })",
        {{{9, 24}, {2, 5}, {9, 3}, {9, 3}}, {{9, 24}, {1, 1}, {9, 3}, {9, 3}}, {{9, 24}, {0, 3}, {9, 3}, {9, 3}}});
}

}  // namespace
}  // namespace collage
