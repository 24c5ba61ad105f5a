// quantised_calls.h: functions of 8-bit integers as they are imported: qnn.dequantize, operators of floats,
// qnn.quantize.
#pragma once

#include <string>
#include <vector>

#include "conformance/fused_calls.h"

namespace collage::conformance {

/// A function, and the pattern row that is made for it.
struct RowCall {
  std::string row;
  Function function;
  bool has_channels = false;  ///< its tensors of the result's rank may be channels-last
};

inline Expr Quantize(const Expr& x, double scale, int64_t zero, DataType dtype = kUInt8) {
  return MakeCall("qnn.quantize", {x, Scalar(scale), MakeScalar(static_cast<double>(zero), dtype)},
                  {{"out_dtype", dtype}});
}
inline Expr Dequantize(const Expr& x, double scale, int64_t zero, DataType dtype = kUInt8) {
  return MakeCall("qnn.dequantize", {x, Scalar(scale), MakeScalar(static_cast<double>(zero), dtype)},
                  {{"out_dtype", kFloat32}});
}

/// Random 8-bit weights, dequantised by a scale per index of `axis`. Zero points are those of the dtype's middle.
inline Expr QuantisedWeights(const Shape& shape, int64_t axis, uint32_t seed, DataType dtype = kInt8) {
  const bool is_signed = dtype == kInt8;
  const Tensor values = RandomTensor(shape, dtype, is_signed ? -127 : 0, is_signed ? 127 : 255, seed);
  const int64_t count = shape[static_cast<size_t>(axis)];
  Tensor zeros = Tensor::Zeros({count}, dtype);
  for (int64_t i = 0; i < count; ++i) zeros.Set(i, is_signed ? 0 : 128);
  const Constant scales = MakeConstant(RandomTensor({count}, kFloat32, 0.001, 0.003, seed + 1));
  return MakeCall("qnn.dequantize", {MakeConstant(values), scales, MakeConstant(zeros)},
                  {{"axis", axis}, {"out_dtype", kFloat32}});
}

/// A contraction of bytes: its name in rows, its input, its result in floats of about 1, and a bias that fits.
struct QuantisedAnchor {
  std::string name;
  Var x;
  Expr result;
  Expr bias;
  bool has_channels;

  Expr Biased() const { return Plus(result, bias); }
  Shape shape() const { return AsTensorType(InferType(result))->static_shape(); }
};

inline QuantisedAnchor QuantisedConv(int rank, bool transposed, DataType data = kUInt8, DataType weights = kInt8) {
  const auto dims = static_cast<size_t>(rank);
  Shape x_shape(dims + 2, 7), w_shape(dims + 2, 3), b_shape(dims + 1, 1);
  x_shape[0] = 1;
  x_shape[1] = w_shape[transposed ? 0 : 1] = 16;
  b_shape[0] = w_shape[transposed ? 1 : 0] = 24;
  const Var x = Input("x", x_shape, data);
  const std::string op = "conv" + std::to_string(rank) + "d";
  const Expr result = MakeCall("nn." + op + (transposed ? "_transpose" : ""),
                               {Dequantize(x, 2.0 / 255, data == kUInt8 ? 120 : 0, data),
                                QuantisedWeights(w_shape, transposed ? 1 : 0, 31, weights)},
                               {{"padding", std::vector<int64_t>(dims, 1)}});
  return {(transposed ? "de" : "") + op, x, result, RandomConstant(b_shape, 32), true};
}

inline QuantisedAnchor QuantisedDense() {
  const Var x = Input("x", {17, 24}, kUInt8);
  const Expr result = MakeCall("nn.dense", {Dequantize(x, 2.0 / 255, 120), QuantisedWeights({32, 24}, 0, 33)});
  return {"dense", x, result, RandomConstant({32}, 34), false};
}

inline std::vector<QuantisedAnchor> QuantisedAnchors() {
  std::vector<QuantisedAnchor> anchors;
  for (bool transposed : {false, true}) {
    for (int rank : {1, 2, 3}) anchors.push_back(QuantisedConv(rank, transposed));
  }
  anchors.push_back(QuantisedDense());
  return anchors;
}

// Scales are in no simple ratio to each other: quotients would often be ties, which every order of adding breaks
// otherwise.

/// Every row of `a`, once with its result quantised and once in floats.
inline std::vector<RowCall> QuantisedRows(const QuantisedAnchor& a) {
  std::vector<RowCall> rows;
  const auto relu = [](const Expr& x) { return MakeCall("nn.relu", {x}); };
  const auto add = [&](const std::string& suffix, const std::vector<Var>& params, const Expr& result) {
    rows.push_back({"qnn." + a.name + suffix, MakeFunction(params, Quantize(result, 0.02371, 100)), a.has_channels});
    rows.push_back({"qnn." + a.name + suffix, MakeFunction(params, result), a.has_channels});
  };
  const Var r = Input("r", a.shape(), kUInt8), f = Input("f", a.shape());
  const Expr residual = Dequantize(r, 0.01127, 131);
  add("", {a.x}, a.result);
  add("_bias", {a.x}, a.Biased());
  add("_bias_relu", {a.x}, relu(a.Biased()));
  add("_bias_clip", {a.x}, Clip(a.Biased(), -0.5, 1.5));
  add("_activation", {a.x}, MakeCall("sigmoid", {a.Biased()}));
  add("_activation", {a.x}, Prelu(a.Biased()));
  add("_activation", {a.x}, MakeCall("nn.leaky_relu", {a.result}, {{"alpha", 0.1}}));
  add("_multiply", {a.x, f}, Mul(a.Biased(), f));
  add("_sum", {a.x, r}, Plus(a.Biased(), residual));
  add("_sum", {a.x, f}, Plus(a.result, f));
  add("_sum_relu", {r, a.x}, relu(Plus(residual, a.Biased())));
  const Expr steps = Dequantize(Quantize(a.Biased(), 0.02969, 127), 0.02969, 127);
  add("_requantize_sum", {a.x, r}, Plus(steps, residual));
  add("_requantize_sum_relu", {a.x, f}, relu(Plus(steps, f)));
  return rows;
}

/// Contractions of bytes that are widened to int32, with a zero point known at run time.
inline std::vector<RowCall> IntegerRows() {
  std::vector<RowCall> rows;
  const Var zero = Input("zero", {}, kInt32), scale = Input("scale", {});
  const auto cast = [](const Expr& x, DataType dtype) { return MakeCall("cast", {x}, {{"dtype", dtype}}); };
  const auto add = [&](const std::string& name, const Var& x, const std::string& op, const Shape& weight,
                       const Shape& bias, bool has_channels) {
    const Expr widened = MakeCall("subtract", {cast(x, kInt32), zero});
    const Constant weights = MakeConstant(RandomTensor(weight, kInt32, -120, 120, 41));
    const Expr sum = MakeCall(op, {widened, weights});
    const Expr scaled = Mul(cast(sum, kFloat32), scale);
    const Expr biased = Plus(scaled, RandomConstant(bias, 42));
    rows.push_back({name, MakeFunction({x, zero}, sum), has_channels});
    rows.push_back({name, MakeFunction({x}, MakeCall(op, {cast(x, kInt32), weights})), has_channels});
    rows.push_back({name + "_scale", MakeFunction({x, zero, scale}, scaled), has_channels});
    rows.push_back({name + "_scale_bias", MakeFunction({x, zero, scale}, biased), has_channels});
    rows.push_back(
        {name + "_scale_bias_relu", MakeFunction({x, zero, scale}, MakeCall("nn.relu", {biased})), has_channels});
  };
  add("integer_dense", Input("x", {17, 24}, kUInt8), "nn.dense", {32, 24}, {32}, false);
  add("integer_conv1d", Input("x", {1, 16, 9}, kUInt8), "nn.conv1d", {24, 16, 3}, {24, 1}, true);
  add("integer_conv2d", Input("x", {1, 16, 9, 8}, kUInt8), "nn.conv2d", {24, 16, 3, 3}, {24, 1, 1}, true);
  add("integer_conv3d", Input("x", {1, 16, 5, 6, 7}, kUInt8), "nn.conv3d", {24, 16, 3, 3, 3}, {24, 1, 1, 1}, true);
  return rows;
}

/// Products of two tensors of bytes, pools, binary operators, concatenation, and conversions.
inline std::vector<RowCall> QuantisedOthers() {
  std::vector<RowCall> rows;
  const auto add = [&](const std::string& row, const std::vector<Var>& params, const Expr& result,
                       bool has_channels = false) {
    rows.push_back({row, MakeFunction(params, result), has_channels});
  };
  const Var a = Input("a", {6, 8, 16}, kUInt8), b = Input("b", {6, 16, 24}, kInt8);
  const Expr product = MakeCall("nn.batch_matmul", {Dequantize(a, 0.01, 117), Dequantize(b, 0.01, 0, kInt8)});
  add("qnn.batch_matmul", {a, b}, Quantize(product, 0.05, 100));
  add("qnn.batch_matmul_scale", {a, b}, Quantize(Div(product, Scalar(4)), 0.0125, 100));
  const Var m = Input("m", {17, 16}, kUInt8), n = Input("n", {16, 24}, kInt8);
  const Expr matmul = MakeCall("nn.matmul", {Dequantize(m, 0.01, 117), Dequantize(n, 0.01, 0, kInt8)});
  add("qnn.matmul", {m, n}, matmul);
  add("qnn.matmul_scale", {m, n}, Mul(matmul, Scalar(0.25)));
  for (int rank : {1, 2, 3}) {
    const auto dims = static_cast<size_t>(rank);
    Shape shape(dims + 2, 6);
    shape[1] = 16;
    const Var x = Input("x", shape, kUInt8);
    const std::string suffix = std::to_string(rank) + "d";
    const Attrs window{{"pool_size", std::vector<int64_t>(dims, 2)}, {"strides", std::vector<int64_t>(dims, 2)}};
    for (const std::string kind : {"max_pool", "avg_pool", "global_max_pool", "global_avg_pool"}) {
      const bool global = kind.starts_with("global");
      const bool is_max = kind.ends_with("max_pool");
      const Expr pool = MakeCall("nn." + kind + suffix, {Dequantize(x, 0.02, 3)}, global ? Attrs{} : window);
      add("qnn." + kind + suffix, {x}, Quantize(pool, is_max ? 0.02 : 0.01573, 3), true);
    }
  }
  const Var p = Input("p", {1, 16, 5, 7}, kUInt8), q = Input("q", {1, 16, 5, 7}, kUInt8);
  const Expr u = Dequantize(p, 0.02, 3), v = Dequantize(q, 0.03, 130);
  add("qnn.add", {p, q}, Quantize(Plus(u, v), 0.05, 120), true);
  add("qnn.add", {p, q}, Quantize(MakeCall("nn.relu", {Plus(u, v)}), 0.05, 0), true);
  add("qnn.subtract", {p, q}, Quantize(MakeCall("subtract", {u, v}), 0.05, 120), true);
  add("qnn.multiply", {p, q}, Quantize(Mul(Dequantize(p, 0.01, 0), Dequantize(q, 0.02, 0)), 0.05, 0), true);
  std::vector<Expr> fields{u, Dequantize(q, 0.02, 3)};
  for (int i = 2; i <= 5; ++i) {
    add("qnn.concatenate", {p, q}, Quantize(MakeCall("concatenate", {MakeTuple(fields)}, {{"axis", 1}}), 0.02, 3),
        true);
    fields.push_back(Dequantize(i % 2 == 0 ? p : q, 0.02, 3));
  }
  const Var f = Input("f", {1, 16, 5, 7});
  add("quantize", {f}, Quantize(f, 0.01, 120), true);
  add("dequantize", {p}, u, true);
  add("requantize", {p}, Quantize(u, 0.013, 60), true);
  return rows;
}

}  // namespace collage::conformance
