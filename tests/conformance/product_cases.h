// product_cases.h: products of matrices as toolchains for nothing else are tried on them.
#pragma once

#include <algorithm>
#include <random>
#include <string>

#include "collage/ir/infer_type.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"
#include "conformance/pattern_text.h"

namespace collage::conformance {

/// Random products in every form of ProductPatterns (target/read_product.h), columns and depth up to `most`.
inline void ExpectProducts(const Toolchain& toolchain, int64_t most, int trials) {
  using V = std::vector<int64_t>;
  const std::string prefix = toolchain.name() + ".";
  std::mt19937 random(17);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < trials; ++trial) {
    const int64_t m = trial % 4 == 0 ? 1 : draw(1, 150), n = draw(1, most), k = draw(1, most), batch = draw(1, 5);
    const bool ta = trial % 2 == 1, tb = trial % 3 == 1;
    const DataType dtype = trial % 5 == 4 ? kFloat64 : kFloat32;
    const int threads = 1 + trial % 3;
    SCOPED_TRACE(ToString({batch, m, n, k}) + dtype.ToString() + (ta ? " transposed" : "") +
                 (tb ? " by transposed" : ""));
    const auto constant = [&](const Shape& shape, uint32_t seed) {
      return MakeConstant(RandomTensor(shape, dtype, -0.3, 0.3, seed));
    };
    const Options options{.num_threads = threads};
    const Attrs transposes{{"transpose_a", ta}, {"transpose_b", tb}};
    const Shape a_shape = ta ? Shape{k, m} : Shape{m, k}, b_shape = tb ? Shape{n, k} : Shape{k, n};
    const auto batched = [](Shape shape, int64_t count) {
      shape.insert(shape.begin(), count);
      return shape;
    };
    const Var a = Input("a", a_shape, dtype), b = Input("b", b_shape, dtype), rows = Input("rows", {m, k}, dtype);
    const Expr bias = constant({n}, 9);
    ExpectRow(toolchain, prefix + "matmul", MakeFunction({a, b}, MakeCall("nn.matmul", {a, b}, transposes)), options);
    ExpectRow(toolchain, prefix + "matmul_bias",
              MakeFunction({a}, Plus(MakeCall("nn.matmul", {a, constant(b_shape, 3)}, transposes), bias)), options);
    const Expr dense = MakeCall("nn.dense", {rows, constant({n, k}, 4)});
    ExpectRow(toolchain, prefix + "dense", MakeFunction({rows}, dense), options);
    ExpectRow(toolchain, prefix + "dense_bias",
              MakeFunction({rows}, Plus(bias, MakeCall("reshape", {dense}, {{"newshape", V{1, m, n}}}))), options);
    for (const int64_t b_batch : {batch, int64_t{1}}) {
      const Var x = Input("x", batched(a_shape, batch), dtype), y = Input("y", batched(b_shape, b_batch), dtype);
      const Expr product = MakeCall("nn.batch_matmul", {x, y}, transposes);
      ExpectRow(toolchain, prefix + "batch_matmul", MakeFunction({x, y}, product), options);
      ExpectRow(toolchain, prefix + "batch_matmul_scale",
                MakeFunction({x, y}, MakeCall("divide", {product, MakeScalar(2.5, dtype)})), options);
    }
    const Var x = Input("x", batched(a_shape, 1), dtype), y = Input("y", batched(b_shape, batch), dtype);
    ExpectRow(toolchain, prefix + "batch_matmul", MakeFunction({x, y}, MakeCall("nn.batch_matmul", {x, y}, transposes)),
              options);
  }
}

/// Expects the refusals of such toolchains, with reasons.
inline void ExpectProductRefusals(const Toolchain& toolchain) {
  const std::string prefix = toolchain.name() + ".";
  const Var d = Input("d", {4, 6}, kFloat16), e = Input("e", {5, 6}, kFloat16);
  EXPECT_EQ(RefusalOf(toolchain, prefix + "dense", MakeFunction({d, e}, MakeCall("nn.dense", {d, e}))),
            "computes float32 and float64 only, got float16");
  const Var a = Input("a", {4, 6}), b = Input("b", {5, 6});
  const Expr dense = MakeCall("nn.dense", {a, b});
  EXPECT_EQ(RefusalOf(toolchain, prefix + "dense_bias", MakeFunction({a, b}, Plus(dense, RandomConstant({4, 5}, 1)))),
            "adds one value per column only, got (4, 5)");
  EXPECT_EQ(RefusalOf(toolchain, prefix + "dense_bias", MakeFunction({a, b}, Plus(dense, RandomConstant({4, 1}, 1)))),
            "adds one value per column only, got (4, 1)");
  const Expr added = MakeCall("nn.bias_add", {dense, RandomConstant({4}, 1)}, {{"axis", 0}});
  EXPECT_EQ(RefusalOf(toolchain, prefix + "dense_bias", MakeFunction({a, b}, added)),
            "adds one value per column only, got (4)");
  EXPECT_EQ(RefusalOf(toolchain, prefix + "dense", MakeFunction({a}, MakeCall("nn.relu", {a}))),
            "has no operator but products of matrices");
}

}  // namespace collage::conformance
