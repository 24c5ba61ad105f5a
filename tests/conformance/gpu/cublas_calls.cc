// cublas_calls.cc: products with every order of their factors, and what follows them, broadcast in every way.
#include "conformance/gpu/cublas_calls.h"

#include <cmath>
#include <string>
#include <utility>

#include "collage/ir/op.h"

namespace collage::conformance {
namespace {

using Ints = std::vector<int64_t>;

Expr Reshape(const Expr& x, const Ints& shape) { return MakeCall("reshape", {x}, {{"newshape", shape}}); }
Expr Widened(const Expr& x) { return MakeCall("cast", {x}, {{"dtype", kInt32}}); }
Expr Product(const char* op, const Expr& a, const Expr& b, bool transpose_a, bool transpose_b) {
  return MakeCall(op, {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

/// Calls of floats of one type.
class Calls {
 public:
  explicit Calls(DataType dtype) : dtype_(dtype) {}

  std::vector<RowCall> All() {
    AddOrders();
    AddBatches();
    AddConstants();
    AddEnds("dense", {x_}, MakeCall("nn.dense", {x_, Constants({16, 8}, 0.5)}));
    AddScaled("matmul", {x_, w_}, Product("nn.matmul", x_, w_, false, true));
    AddScaled("batch_matmul", {q_, k_}, Product("nn.batch_matmul", q_, k_, false, true));
    AddReshaped();
    AddBroadcastSums();
    AddBiases();
    return std::move(calls_);
  }

 private:
  Var Tensor(const std::string& name, const Shape& shape) const { return Input(name, shape, dtype_); }
  Expr Constants(const Shape& shape, double range = 1) {
    return MakeConstant(RandomTensor(shape, dtype_, -range, range, ++seed_));
  }
  Expr Number(double value) const { return MakeScalar(value, dtype_); }
  void Add(const std::string& row, const std::vector<Var>& params, const Expr& body) {
    calls_.push_back({row, MakeFunction(params, body)});
  }

  Expr GeluTanh(const Expr& x) const {
    const Expr cube = Mul(MakeCall("power", {x, Number(3)}), Number(0.044715));
    const Expr tanh = MakeCall("tanh", {Mul(Plus(x, cube), Number(std::sqrt(2 / M_PI)))});
    return Mul(Mul(x, Number(0.5)), Plus(tanh, Number(1)));
  }

  void AddOrders() {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const Var a = Tensor("a", ta ? Shape{4, 7} : Shape{7, 4}), b = Tensor("b", tb ? Shape{9, 4} : Shape{4, 9});
        Add("matmul", {a, b}, Product("nn.matmul", a, b, ta, tb));
        const Var c = Tensor("c", ta ? Shape{3, 4, 7} : Shape{3, 7, 4});
        const Var d = Tensor("d", tb ? Shape{3, 9, 4} : Shape{3, 4, 9});
        Add("batch_matmul", {c, d}, Product("nn.batch_matmul", c, d, ta, tb));
      }
    }
    const Var x = Tensor("x", {5, 7}), w = Tensor("w", {3, 7}), row = Tensor("row", {1, 130});
    Add("dense", {x, w}, MakeCall("nn.dense", {x, w}));
    Add("dense", {row}, MakeCall("nn.dense", {row, Constants({33, 130}, 0.2)}));
  }

  void AddBatches() {
    const Var a = Tensor("a", {3, 5, 4}), one_a = Tensor("one_a", {1, 5, 4});
    const Var b = Tensor("b", {3, 4, 6}), one_b = Tensor("one_b", {1, 4, 6});
    Add("batch_matmul", {a, one_b}, Product("nn.batch_matmul", a, one_b, false, false));
    Add("batch_matmul", {one_a, b}, Product("nn.batch_matmul", one_a, b, false, false));
    const Var turned = Tensor("turned", {3, 4, 5});  // its rows cannot be those of one matrix
    Add("batch_matmul", {turned, one_b}, Product("nn.batch_matmul", turned, one_b, true, false));
    const Expr folded = Product("nn.batch_matmul", a, one_b, false, false);
    const Var other = Tensor("other", {3, 5, 6}), shared = Tensor("shared", {1, 5, 6}), rows = Tensor("rows", {1, 6});
    Add("batch_matmul_sum", {a, one_b, other}, Plus(folded, other));
    Add("batch_matmul_sum", {a, one_b, shared}, Plus(folded, shared));
    Add("batch_matmul_bias_sum", {a, one_b, rows}, Plus(Plus(folded, Constants({6})), rows));
    Add("batch_matmul_bias", {a, one_b}, Plus(folded, Constants({3, 1, 6})));
  }

  /// Constants that lie as they are best, and those that are better transposed.
  void AddConstants() {
    const Var a = Tensor("a", {7, 16}), b = Tensor("b", {16, 5}), c = Tensor("c", {3, 7, 16});
    Add("matmul", {a}, Product("nn.matmul", a, Constants({16, 5}), false, false));
    Add("matmul", {b}, Product("nn.matmul", Constants({16, 7}), b, true, false));
    Add("batch_matmul", {c}, Product("nn.batch_matmul", c, Constants({3, 16, 5}), false, false));
    Add("matmul_sum", {a}, Plus(Product("nn.matmul", a, Constants({16, 16}), false, false), Constants({7, 16})));
  }

  /// All that the table has behind a product.
  void AddEnds(const std::string& name, const std::vector<Var>& params, const Expr& product) {
    const Shape shape = AsTensorType(InferType(product))->static_shape();
    const Var other = Tensor("other", shape);
    std::vector<Var> more = params;
    more.push_back(other);
    const std::pair<std::string, Expr> inner[] = {{name, product},
                                                  {name + "_bias", Plus(product, Constants({shape.back()}))}};
    for (const auto& [prefix, expr] : inner) {
      for (const bool sums : {false, true}) {
        const Expr end = sums ? Plus(expr, other) : expr;
        const std::string row = prefix + (sums ? "_sum" : "");
        Add(row, sums ? more : params, end);
        Add(row + "_relu", sums ? more : params, MakeCall("nn.relu", {end}));
        Add(row + "_gelu_tanh", sums ? more : params, GeluTanh(end));
      }
    }
  }

  void AddScaled(const std::string& name, const std::vector<Var>& params, const Expr& product) {
    AddEnds(name, params, product);
    AddEnds(name + "_scale", params, Mul(product, Number(0.125)));
    Add(name + "_scale", params, Div(product, Number(8)));
  }

  /// Sequences, and heads of attention with a mask.
  void AddReshaped() {
    const Expr product = MakeCall("nn.dense", {x_, Constants({12, 8}, 0.5)});
    const Expr sequences = Reshape(product, {1, 5, 12});
    const Var other = Tensor("other", {1, 5, 12});
    Add("dense_bias", {x_}, Plus(sequences, Constants({12})));
    Add("dense_bias_sum", {x_, other}, Plus(Plus(sequences, Constants({12})), other));
    Add("dense_sum_relu", {x_, other}, MakeCall("nn.relu", {Plus(other, sequences)}));
    const Expr scores = Div(Reshape(Product("nn.batch_matmul", q_, k_, false, true), {1, 4, 5, 6}), Number(8));
    const Var mask = Tensor("mask", {1, 1, 1, 6}), masks = Tensor("masks", {1, 1, 5, 6});
    Add("batch_matmul_scale_sum", {q_, k_, mask}, Plus(scores, mask));
    Add("batch_matmul_scale_sum", {q_, k_, masks}, Plus(scores, masks));
  }

  void AddBroadcastSums() {
    const Expr product = Product("nn.matmul", x_, w_, false, true);
    for (const Shape& shape : {Shape{16}, Shape{1, 16}, Shape{5, 16}}) {
      const Var other = Tensor("other", shape);
      Add("matmul_sum", {x_, w_, other}, Plus(product, other));
    }
    const Expr batch = Product("nn.batch_matmul", q_, k_, false, true);
    for (const Shape& shape : {Shape{6}, Shape{5, 6}, Shape{4, 1, 6}, Shape{1, 5, 6}}) {
      const Var other = Tensor("other", shape);
      Add("batch_matmul_sum", {q_, k_, other}, Plus(batch, other));
    }
  }

  void AddBiases() {
    const Expr product = Product("nn.matmul", x_, w_, false, true);
    const Expr batch = Product("nn.batch_matmul", q_, k_, false, true);
    Add("matmul_bias", {x_, w_}, MakeCall("nn.bias_add", {product, Constants({16})}, {{"axis", int64_t{1}}}));
    for (const Shape& shape : {Shape{1, 6}, Shape{4, 1, 6}}) {
      Add("batch_matmul_bias_relu", {q_, k_}, MakeCall("nn.relu", {Plus(batch, Constants(shape))}));
    }
    // One for each row: the library computes it in row-major order.
    Add("matmul_bias", {x_, w_}, MakeCall("nn.bias_add", {product, Constants({5})}, {{"axis", int64_t{0}}}));
    Add("matmul_bias", {x_, w_}, Plus(product, Constants({5, 1})));
    const Var turned = Tensor("turned", {8, 5}), other = Tensor("other", {5, 16});
    Add("matmul_bias_sum", {turned, w_, other},
        Plus(Plus(Product("nn.matmul", turned, w_, true, true), Constants({5, 1})), other));
    for (const Shape& shape : {Shape{5, 1}, Shape{4, 5, 1}}) {
      Add("batch_matmul_bias", {q_, k_}, Plus(batch, Constants(shape)));
    }
  }

  DataType dtype_;
  uint32_t seed_ = 0;
  Var x_ = Tensor("x", {5, 8}), w_ = Tensor("w", {16, 8});
  Var q_ = Tensor("q", {4, 5, 8}), k_ = Tensor("k", {4, 6, 8});
  std::vector<RowCall> calls_;
};

}  // namespace

std::vector<RowCall> CublasCalls(DataType dtype) { return Calls(dtype).All(); }

std::vector<RowCall> CublasIntegerCalls() {
  std::vector<RowCall> calls;
  const auto add = [&](const std::string& row, const std::vector<Var>& params, const Expr& body) {
    calls.push_back({row, MakeFunction(params, body)});
  };
  const Var x = Input("x", {7, 24}, kInt8), w = Input("w", {20, 24}, kInt8);
  const Var q = Input("q", {3, 5, 24}, kInt8), k = Input("k", {3, 8, 24}, kInt8), one = Input("one", {1, 8, 24}, kInt8);
  const auto bytes = [](const Shape& shape, DataType dtype) {
    return MakeConstant(RandomTensor(shape, dtype, -128, 127, 7));
  };
  add("dense", {x, w}, MakeCall("nn.dense", {x, w}, {{"out_dtype", kInt32}}));
  add("batch_matmul", {q, k}, MakeCall("nn.batch_matmul", {q, k}, {{"transpose_b", true}, {"out_dtype", kInt32}}));
  add("integer_dense", {x}, MakeCall("nn.dense", {Widened(x), bytes({20, 24}, kInt32)}));
  add("integer_dense", {x, w}, MakeCall("nn.dense", {Widened(x), Widened(w)}));
  add("integer_matmul", {x}, MakeCall("nn.matmul", {Widened(x), bytes({24, 20}, kInt32)}));
  add("integer_matmul", {x, w}, Product("nn.matmul", Widened(x), Widened(w), false, true));
  add("integer_batch_matmul", {q, k}, Product("nn.batch_matmul", Widened(q), Widened(k), false, true));
  add("integer_batch_matmul", {q, one}, Product("nn.batch_matmul", Widened(q), Widened(one), false, true));

  const auto floats = [](const Expr& expr) { return Dequantize(expr, 0.01173, 0, kInt8); };
  const Expr dense = MakeCall("nn.dense", {floats(x), QuantisedWeights({20, 24}, 0, 9)});
  const Expr plain = MakeCall("nn.dense", {floats(x), floats(bytes({20, 24}, kInt8))});
  const Expr matmul = MakeCall("nn.matmul", {floats(x), QuantisedWeights({24, 20}, 1, 9)});
  const Expr batch = Product("nn.batch_matmul", floats(q), floats(k), false, true);
  const auto quantised = [](const Expr& expr) { return Quantize(expr, 0.01731, 0, kInt8); };
  for (const Expr& one_dense : {dense, plain}) {
    add("qnn.dense", {x}, one_dense);
    add("qnn.dense", {x}, quantised(one_dense));
  }
  add("qnn.matmul", {x}, matmul);
  add("qnn.matmul", {x}, quantised(Reshape(matmul, {1, 7, 20})));
  add("qnn.matmul_scale", {x}, Mul(matmul, Scalar(0.25)));
  add("qnn.batch_matmul", {q, k}, batch);
  add("qnn.batch_matmul", {q, k}, quantised(batch));
  add("qnn.batch_matmul_scale", {q, k}, quantised(Div(batch, Scalar(4))));
  return calls;
}

}  // namespace collage::conformance
