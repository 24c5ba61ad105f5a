// triton_cases.cc: products alone, with a bias, another tensor and each function behind; attention with and without a
// mask; rows and elements of odd sizes, with all ways of broadcasting.
#include "conformance/gpu/triton_cases.h"

#include <string>
#include <string_view>
#include <utility>

#include "collage/ir/op.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"

namespace collage {
namespace {

using conformance::Input;
using conformance::Mul;
using conformance::Plus;
using conformance::RandomTensor;
using Ints = std::vector<int64_t>;

Expr Relu(const Expr& x) { return MakeCall("nn.relu", {x}); }
Expr Reshape(const Expr& x, const Ints& shape) { return MakeCall("reshape", {x}, {{"newshape", shape}}); }
Expr Reduce(const char* name, const Expr& x, bool keeps = true) {
  return MakeCall(name, {x}, {{"axis", Ints{-1}}, {"keepdims", keeps}});
}

/// Cases of one floating type.
class Cases {
 public:
  explicit Cases(DataType dtype) : dtype_(dtype) {}

  std::vector<PatternCase> All() {
    AddProducts();
    AddChainsBehindProducts();
    AddAttention();
    AddRows();
    AddElements();
    return std::move(cases_);
  }

 private:
  Var Tensor(const std::string& name, const Shape& shape) const { return Input(name, shape, dtype_); }
  Expr Constants(const Shape& shape, uint32_t seed, double range = 1) const {
    return MakeConstant(RandomTensor(shape, dtype_, -range, range, seed));
  }
  Expr Number(double value) const { return MakeScalar(value, dtype_); }
  void Add(const std::string& pattern, std::vector<Var> params, Expr body) {
    cases_.push_back({pattern, std::move(params), std::move(body)});
  }

  void AddResiduals(const std::string& name, const std::vector<Var>& params, const Expr& inner) {
    const Var other = Tensor("other", ShapeOf(inner));
    std::vector<Var> more = params;
    more.push_back(other);
    Add(name + "_residual_add", more, Plus(inner, other));
    Add(name + "_residual_add_relu", more, Relu(Plus(other, inner)));
    Add(name + "_residual_multiply", more, Mul(inner, other));
    Add(name + "_residual_multiply_relu", more, Relu(Mul(other, inner)));
  }

  /// All that the table has behind a product; the bias is of that size.
  void AddProduct(const std::string& name, const std::vector<Var>& params, const Expr& product, int64_t columns) {
    for (const auto& [prefix, inner] :
         {std::pair{name, product}, std::pair{name + "_bias", Plus(product, Constants({columns}, 5))}}) {
      Add(prefix, params, inner);
      AddResiduals(prefix, params, inner);
      for (const NamedFunction& function : FunctionsBehind(dtype_)) {
        Add(prefix + function.suffix, params, function.apply(inner));
      }
    }
  }

  void AddProducts() {
    const Var x = Tensor("x", {5, 8}), odd = Tensor("x", {37, 19}), w = Tensor("w", {7, 19});
    AddProduct("dense", {x}, MakeCall("nn.dense", {x, Constants({16, 8}, 3, 0.5)}), 16);
    const Expr product = MakeCall("nn.dense", {odd, Constants({3, 19}, 3, 0.5)});
    Add("dense_bias", {odd}, Plus(Reshape(product, {1, 37, 3}), Constants({3}, 5)));
    Add("dense_bias_relu", {odd}, Relu(MakeCall("nn.bias_add", {product, Constants({3}, 5)})));
    Add("dense", {odd, w}, MakeCall("nn.dense", {odd, w}));
    const Var left = Tensor("left", {8, 6}), right = Tensor("right", {8, 16});
    AddProduct("matmul", {left, right}, MakeCall("nn.matmul", {left, right}, {{"transpose_a", true}}), 16);
    const Var plain = Tensor("left", {140, 33}), both = Tensor("right", {132, 33});
    Add("matmul", {plain, both}, MakeCall("nn.matmul", {plain, both}, {{"transpose_b", true}}));
    const Var a = Tensor("a", {2, 5, 4}), b = Tensor("b", {2, 6, 4}), one = Tensor("one", {1, 4, 8});
    AddProduct("batch_matmul", {a, b}, MakeCall("nn.batch_matmul", {a, b}, {{"transpose_b", true}}), 6);
    Add("batch_matmul", {a, one}, MakeCall("nn.batch_matmul", {a, one}, {{"transpose_b", false}}));
    const Var first = Tensor("first", {1, 4, 6}), many = Tensor("many", {3, 4, 8});
    Add("batch_matmul", {first, many},
        MakeCall("nn.batch_matmul", {first, many}, {{"transpose_a", true}, {"transpose_b", false}}));
    const Var turned = Tensor("turned", {3, 4, 6});
    Add("batch_matmul", {turned, one},
        MakeCall("nn.batch_matmul", {turned, one}, {{"transpose_a", true}, {"transpose_b", false}}));
  }

  /// Chains that no row has by name.
  void AddChainsBehindProducts() {
    const Var x = Tensor("x", {6, 8}), scale = Tensor("scale", {6, 1}), other = Tensor("other", {2, 3, 12});
    const Expr product = MakeCall("nn.dense", {x, Constants({12, 8}, 3, 0.5)});
    const Expr scaled = MakeCall("tanh", {Plus(Mul(product, scale), Constants({12}, 5))});
    Add("dense_chain", {x, scale, other}, MakeCall("subtract", {Reshape(scaled, {2, 3, 12}), other}));
    const Var a = Tensor("a", {4, 5, 8}), b = Tensor("b", {4, 7, 8}), mask = Tensor("mask", {2, 1, 1, 7});
    const Expr scores = MakeCall("nn.batch_matmul", {a, b}, {{"transpose_b", true}});
    Add("batch_matmul_chain", {a, b, mask},
        MakeCall("exp", {Plus(Reshape(Mul(scores, Number(0.125)), {2, 2, 5, 7}), mask)}));
    const Var left = Tensor("left", {9, 4}), right = Tensor("right", {4, 5});
    const Expr matrix = MakeCall("nn.matmul", {left, right});
    Add("matmul_chain", {left, right}, MakeCall("maximum", {Mul(matrix, matrix), MakeCall("negative", {matrix})}));
  }

  void AddAttention() {
    const Var q = Tensor("q", {4, 70, 24}), k = Tensor("k", {4, 45, 24}), v = Tensor("v", {4, 45, 20});
    const Expr scores = MakeCall("nn.batch_matmul", {q, k}, {{"transpose_b", true}});
    const auto attend = [](const Expr& logits, const Expr& values, bool is_transposed = false) {
      return MakeCall("nn.batch_matmul", {MakeCall("nn.softmax", {logits}), values}, {{"transpose_b", is_transposed}});
    };
    Add("attention", {q, k, v}, attend(scores, v));
    const Var keys = Tensor("k", {4, 24, 45}), values = Tensor("v", {1, 20, 45});
    const Expr others = MakeCall("nn.batch_matmul", {q, keys}, {{"transpose_b", false}});
    Add("attention", {q, keys, values}, attend(MakeCall("divide", {others, Number(4.9)}), values, true));
    // With heads, of which all have the mask of their sample.
    const Var mask = Tensor("mask", {2, 1, 1, 45});
    const Expr in_place = Plus(Reshape(Mul(scores, Number(0.2)), {2, 2, 70, 45}), mask);
    Add("attention", {q, k, v, mask},
        MakeCall("nn.batch_matmul", {Reshape(MakeCall("nn.softmax", {in_place}), {4, 70, 45}), v},
                 {{"transpose_b", false}}));
    // A mask of bools, which some rows have few of.
    const Expr chosen = MakeCall("where", {Input("sees", {70, 45}, kBool), scores, Number(-30000)});
    const Var sees = AsShared<VarNode>(As<CallNode>(chosen)->args()[0]);
    Add("attention", {q, k, v, sees}, attend(chosen, v));
  }

  void AddRows() {
    const Var x = Tensor("x", {3, 5, 33}), one = Tensor("x", {1, 1000}), few = Tensor("x", {70, 4});
    for (const Var& data : {x, one, few}) {
      Add("softmax", {data}, MakeCall("nn.softmax", {data}));
      Add("log_softmax", {data}, MakeCall("nn.log_softmax", {data}));
    }
    const Var gamma = Tensor("gamma", {33});
    const Expr normal = MakeCall("nn.layer_norm", {x, gamma, Constants({33}, 2)});
    Add("layer_norm", {x, gamma}, normal);
    Add("chain", {x, gamma}, MakeCall("tanh", {Plus(normal, x)}));
    for (const bool by_power : {false, true}) {
      const Expr square = by_power ? MakeCall("power", {x, Number(2)}) : Mul(x, x);
      const Expr root = MakeCall("sqrt", {Plus(Reduce("mean", square), Number(1e-2))});
      Add("rms_norm", {x}, MakeCall("divide", {x, root}));
      Add("rms_norm_scale", {x}, Mul(Mul(x, MakeCall("divide", {Number(1), root})), Constants({33}, 4)));
    }
    for (const char* name : {"sum", "mean", "max", "min"}) {
      Add("single", {x}, Reduce(name, x, /*keeps=*/false));
      Add("single", {few}, Reduce(name, few));
    }
    const Expr centred = MakeCall("subtract", {x, Reduce("mean", x)});
    Add("chain", {x}, Mul(MakeCall("exp", {Reduce("max", x)}), Reduce("sum", centred)));
    const Var bias = Tensor("bias", {5, 1});
    Add("chain", {x, bias}, MakeCall("nn.softmax", {Plus(Mul(x, Number(0.5)), bias)}));
  }

  void AddElements() {
    const Var x = Tensor("x", {2, 5, 6, 7}), y = Tensor("y", {5, 1, 7}), z = Tensor("z", {2, 1, 6, 1});
    const Expr sum = Plus(Mul(x, y), z);
    Add("chain", {x, y, z}, MakeCall("minimum", {MakeCall("sin", {sum}), MakeCall("cos", {sum})}));
    const Expr biased = MakeCall("nn.bias_add", {MakeCall("abs", {x}), Constants({5}, 3)}, {{"axis", int64_t{1}}});
    Add("chain", {x}, MakeCall("sqrt", {MakeCall("clip", {biased}, {{"a_min", 0.1}, {"a_max", 2.0}})}));
    Add("chain", {x, z},
        MakeCall("where", {MakeCall("greater", {x, z}), Mul(x, Number(3)), MakeCall("negative", {x})}));
    const Expr larger = MakeCall("less_equal", {x, Number(0.25)});
    Add("chain", {x, y}, MakeCall("logical_and", {larger, MakeCall("not_equal", {x, y})}));
    Add("chain", {x},
        Plus(MakeCall("cast", {larger}, {{"dtype", dtype_}}), MakeCall("nn.leaky_relu", {x}, {{"alpha", 0.1}})));
    for (const char* name : {"erf", "sigmoid", "floor", "ceil", "round", "trunc", "exp"}) {
      Add("single", {x}, MakeCall(name, {x}));
    }
    const Var scalar = Tensor("scalar", {});
    Add("single", {x, scalar}, MakeCall("multiply", {x, scalar}));
    for (const NamedFunction& function : FunctionsBehind(dtype_)) {
      const std::string suffix = function.suffix;
      const bool is_one = suffix == "_relu" || suffix == "_clip" || suffix == "_sigmoid" || suffix == "_tanh" ||
                          suffix == "_leaky_relu";
      Add(is_one ? "single" : "chain", {x}, function.apply(x));
    }
  }

  DataType dtype_;
  std::vector<PatternCase> cases_;
};

/// Products of integers, whose sums are results.
std::vector<PatternCase> IntegerCases() {
  const auto constants = [](const Shape& shape, DataType dtype) {
    return MakeConstant(RandomTensor(shape, dtype, -100, 100, 3));
  };
  const Attrs wide{{"out_dtype", kInt32}};
  const Var x = Input("x", {5, 19}, kInt8), a = Input("a", {2, 5, 4}, kInt8), b = Input("b", {2, 6, 4}, kInt8);
  const Expr product = MakeCall("nn.dense", {x, constants({12, 19}, kInt8)}, wide);
  const Expr biased = Plus(product, constants({12}, kInt32));
  return {
      {"dense", {x}, product},
      {"dense_bias", {x}, biased},
      {"dense_bias_relu", {x}, Relu(biased)},
      {"dense_chain", {x}, MakeCall("maximum", {MakeCall("negative", {biased}), constants({5, 1}, kInt32)})},
      {"batch_matmul", {a, b}, MakeCall("nn.batch_matmul", {a, b}, {{"transpose_b", true}, {"out_dtype", kInt32}})}};
}

}  // namespace

std::vector<PatternCase> TritonCases(DataType dtype) { return dtype == kInt8 ? IntegerCases() : Cases(dtype).All(); }

std::vector<PatternCase> TritonCasesInShort(DataType dtype) {
  std::vector<PatternCase> cases;
  for (PatternCase& one : TritonCases(dtype)) {
    const std::string_view pattern = one.pattern;
    const bool is_dense = pattern.starts_with("dense_");
    const bool is_matrix = pattern.starts_with("matmul_") || pattern.starts_with("batch_matmul_");
    const bool is_kept = pattern.ends_with("_bias") || pattern.ends_with("_chain");
    // Functions are the same text behind all products, and in all types.
    const bool is_one = is_dense && (dtype == kFloat32 || pattern.ends_with("_gelu") || pattern.ends_with("_relu"));
    if ((!is_matrix && !is_dense) || is_kept || is_one) cases.push_back(std::move(one));
  }
  return cases;
}

}  // namespace collage
