// primitive_calls.h: calls of operators that kernel libraries have as primitives of their own.
#pragma once

#include <string>
#include <vector>

#include "conformance/quantised_calls.h"

namespace collage::conformance {

/// One operator on `x`, or on `x` and another tensor.
inline std::vector<RowCall> ElementwiseRows(const Shape& shape, DataType dtype = kFloat32) {
  std::vector<RowCall> rows;
  const Var x = Input("x", shape, dtype);
  const auto add = [&](const std::string& row, const std::vector<Var>& params, const Expr& result) {
    rows.push_back({row, MakeFunction(params, result), shape.size() >= 3});
  };
  if (dtype == kFloat32) {
    for (const Activation& activation : Activations()) add(activation.suffix + 1, {x}, activation.apply(x));
  }
  for (const std::string op : {"abs", "exp", "round"}) add(op, {x}, MakeCall(op, {x}));
  Shape per_channel(shape.size(), 1);
  per_channel[1] = shape[1];
  for (const Shape& other : {shape, per_channel, Shape(shape.size(), 1)}) {
    const Var y = Input("y", other, dtype);
    for (const std::string op : {"add", "subtract", "multiply", "maximum", "minimum"}) {
      add(op, {x, y}, MakeCall(op, {x, y}));
      add(op + "_activation", {x, y}, MakeCall("nn.relu", {MakeCall(op, {x, y})}));
    }
    for (const std::string op : {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
      add(op, {x, y}, MakeCall(op, {x, y}));
    }
  }
  return rows;
}

/// Functions of positive numbers.
inline std::vector<RowCall> PositiveRows() {
  const Var x = Input("x", {3, 40}), y = Input("y", {3, 40});
  const Expr quotient = Div(x, y);
  return {{"log", MakeFunction({x}, MakeCall("log", {x}))},
          {"sqrt", MakeFunction({x}, MakeCall("sqrt", {x}))},
          {"power", MakeFunction({x}, MakeCall("power", {x, Scalar(1.5)}))},
          {"power", MakeFunction({x}, MakeCall("power", {x, Scalar(2)}))},
          {"divide", MakeFunction({x, y}, quotient)},
          {"divide_activation", MakeFunction({x, y}, MakeCall("tanh", {quotient}))}};
}

inline std::vector<RowCall> ReductionRows(DataType dtype = kFloat32) {
  std::vector<RowCall> rows;
  using V = std::vector<int64_t>;
  const Var x = Input("x", {3, 16, 5, 9}, dtype);
  for (const std::string op : {"sum", "mean", "max", "min", "prod"}) {
    for (const V& axes : {V{-1}, V{1}, V{2, 3}, V{0, 1, 2, 3}}) {
      for (bool keepdims : {false, true}) {
        rows.push_back({op, MakeFunction({x}, MakeCall(op, {x}, {{"axis", axes}, {"keepdims", keepdims}}))});
      }
    }
    rows.push_back({op, MakeFunction({x}, MakeCall(op, {x}, {{"axis", V{1}}, {"exclude", true}}))});
  }
  return rows;
}

inline std::vector<RowCall> ResizeRows() {
  std::vector<RowCall> rows;
  using V = std::vector<int64_t>;
  for (int rank : {1, 2, 3}) {
    const auto dims = static_cast<size_t>(rank);
    Shape shape(dims + 2, 5);
    shape[1] = 16;
    const Var x = Input("x", shape);
    const std::string op = "resize" + std::to_string(rank) + "d";
    const auto add = [&](const Attrs& attrs) {
      rows.push_back({op, MakeFunction({x}, MakeCall("image." + op, {x}, attrs)), true});
    };
    add({{"size", V(dims, 10)}, {"method", "linear"}});
    add({{"size", V(dims, 3)}, {"method", "linear"}, {"coordinate_transformation_mode", "pytorch_half_pixel"}});
    add({{"size", V(dims, 15)}, {"method", "nearest_neighbor"}});
    add({{"size", V(dims, 10)},
         {"method", "nearest_neighbor"},
         {"coordinate_transformation_mode", "asymmetric"},
         {"rounding_method", "floor"}});
  }
  return rows;
}

/// Norms, pools that adapt, LRN, concatenation, permutations and casts; products with what may follow.
inline std::vector<RowCall> OtherPrimitiveRows() {
  std::vector<RowCall> rows;
  using V = std::vector<int64_t>;
  const auto add = [&](const std::string& row, const std::vector<Var>& params, const Expr& result,
                       bool has_channels = false) {
    rows.push_back({row, MakeFunction(params, result), has_channels});
  };
  const Var x = Input("x", {1, 16, 12, 9}), two = Input("two", {2, 16, 12, 9});
  const Constant gamma = RandomConstant({16}, 51), beta = RandomConstant({16}, 52);
  Tensor ones = Tensor::Zeros({16}, kFloat32);
  for (int64_t i = 0; i < 16; ++i) ones.Set(i, 1);
  const Constant zeros = MakeConstant(Tensor::Zeros({16}, kFloat32));
  add("instance_norm", {x}, MakeCall("nn.instance_norm", {x, gamma, beta}));
  add("instance_norm", {two}, MakeCall("nn.instance_norm", {two, MakeConstant(ones), zeros}));
  add("group_norm", {x}, MakeCall("nn.group_norm", {x, gamma, beta}, {{"num_groups", 16}}));
  for (int size : {3, 5}) {
    add("lrn", {x}, MakeCall("nn.lrn", {x}, {{"size", size}, {"alpha", 0.1}, {"beta", 0.75}, {"bias", 1.5}}), true);
  }
  for (const V& size : {V{1, 1}, V{4, 3}}) {
    add("adaptive_avg_pool2d", {x}, MakeCall("nn.adaptive_avg_pool2d", {x}, {{"output_size", size}}), true);
    add("adaptive_max_pool2d", {x}, MakeCall("nn.adaptive_max_pool2d", {x}, {{"output_size", size}}), true);
  }
  const Var y = Input("y", {1, 32, 12, 9}), rows_of = Input("rows", {5, 9}), more = Input("more", {3, 9});
  add("concatenate", {x, y}, MakeCall("concatenate", {MakeTuple({x, y, x})}, {{"axis", 1}}), true);
  add("concatenate", {rows_of, more}, MakeCall("concatenate", {MakeTuple({rows_of, more})}, {{"axis", 0}}));
  add("transpose", {x}, MakeCall("transpose", {x}, {{"axes", V{0, 2, 3, 1}}}));
  add("transpose", {rows_of}, MakeCall("transpose", {rows_of}));
  add("layout_transform", {x}, MakeCall("layout_transform", {x}, {{"src_layout", "NCHW"}, {"dst_layout", "NHWC"}}));
  add("cast", {x}, MakeCall("cast", {x}, {{"dtype", kBFloat16}}), true);
  const Var a = Input("a", {17, 9}), b = Input("b", {9, 21}), v = Input("v", {21});
  const Expr product = MakeCall("nn.matmul", {a, b});
  add("matmul_add", {a, b, v}, Plus(product, v));
  add("matmul_activation", {a, b}, MakeCall("nn.relu", {product}));
  const Var p = Input("p", {6, 8, 4}), q = Input("q", {1, 4, 5}), mask = Input("mask", {6, 8, 5});
  add("batch_matmul_scale_add", {p, q, mask}, Plus(Div(MakeCall("nn.batch_matmul", {p, q}), Scalar(2)), mask));
  return rows;
}

inline std::vector<RowCall> PrimitiveRows() {
  std::vector<RowCall> rows;
  for (const auto& part :
       {ElementwiseRows({1, 16, 5, 7}), PositiveRows(), ReductionRows(), ResizeRows(), OtherPrimitiveRows()}) {
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return rows;
}

}  // namespace collage::conformance
