// cutlass_cases.cc: each anchor alone, with a bias, another tensor and each function behind it; windows, batches and
// products of odd sizes.
#include "conformance/gpu/cutlass_cases.h"

#include <string>
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

/// Cases of one floating type.
class Cases {
 public:
  explicit Cases(DataType dtype) : dtype_(dtype) {}

  std::vector<PatternCase> All() {
    AddConvolutions();
    AddProducts();
    return std::move(cases_);
  }

 private:
  Var Tensor(const std::string& name, const Shape& shape) const { return Input(name, shape, dtype_); }
  Expr Constants(const Shape& shape, uint32_t seed, double range) const {
    return MakeConstant(RandomTensor(shape, dtype_, -range, range, seed));
  }
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

  /// All that the table has behind an anchor; the bias is of that shape. `is_image`: another tensor may follow
  /// functions.
  void AddAnchor(const std::string& name, const std::vector<Var>& params, const Expr& anchor, const Shape& bias,
                 bool is_image) {
    for (const auto& [prefix, inner] :
         {std::pair{name, anchor}, std::pair{name + "_bias", Plus(anchor, Constants(bias, 5, 1))}}) {
      Add(prefix, params, inner);
      AddResiduals(prefix, params, inner);
      for (const NamedFunction& function : FunctionsBehind(dtype_)) {
        const std::string suffix = function.suffix;
        if (suffix == "_leaky_relu" || suffix == "_elu") continue;
        const Expr active = function.apply(inner);
        Add(prefix + suffix, params, active);
        const bool is_followed =
            suffix == "_hardswish" || suffix == "_swish" || suffix == "_relu" || suffix == "_sigmoid";
        if (is_image && is_followed && prefix != name) AddResiduals(prefix + suffix, params, active);
      }
    }
  }

  Expr Convolution(int rank, const Var& x, const Shape& weights, const Ints& padding, const Ints& strides,
                   const Ints& dilation) const {
    return MakeCall("nn.conv" + std::to_string(rank) + "d", {x, Constants(weights, 3, 0.4)},
                    {{"padding", padding}, {"strides", strides}, {"dilation", dilation}});
  }

  void AddConvolutions() {
    const Var image = Tensor("x", {1, 8, 6, 5}), row = Tensor("x", {2, 4, 9});
    AddAnchor("conv2d", {image}, Convolution(2, image, {8, 8, 3, 3}, {1, 1}, {1, 1}, {1, 1}), {8, 1, 1}, true);
    AddAnchor("conv1d", {row}, Convolution(1, row, {6, 4, 3}, {1}, {2}, {1}), {6, 1}, true);
    const auto add = [&](const Shape& data, const Shape& weights, const Ints& padding, const Ints& strides,
                         const Ints& dilation) {
      const Var x = Tensor("x", data);
      const Expr alone = Convolution(2, x, weights, padding, strides, dilation);
      const Expr biased = MakeCall("nn.bias_add", {alone, Constants({weights[0]}, 5, 1)}, {{"axis", int64_t{1}}});
      Add("conv2d", {x}, alone);
      Add("conv2d_bias_relu", {x}, Relu(biased));
    };
    add({2, 6, 11, 7}, {5, 6, 5, 3}, {2, 0}, {3, 2}, {1, 1});        // odd sizes
    add({1, 2, 9, 9}, {4, 2, 3, 3}, {2, 2}, {1, 1}, {2, 2});         // dilated
    add({1, 4, 7, 6}, {70, 4, 2, 2}, {0, 1, 1, 0}, {2, 1}, {1, 1});  // padding that differs at both ends
    add({3, 16, 13, 13}, {72, 16, 1, 1}, {0, 0}, {1, 1}, {1, 1});    // several tiles
    if (dtype_ == kFloat32) add({1, 3, 9, 9}, {4, 3, 3, 3}, {1, 1}, {2, 2}, {1, 1});  // images
  }

  void AddProducts() {
    const Var x = Tensor("x", {5, 8}), odd = Tensor("x", {5, 6}), w = Tensor("w", {7, 6});
    AddAnchor("dense", {x}, MakeCall("nn.dense", {x, Constants({16, 8}, 3, 0.5)}), {16}, false);
    const Expr product = MakeCall("nn.dense", {odd, Constants({3, 6}, 3, 0.5)});
    const Expr sequences = MakeCall("reshape", {product}, {{"newshape", Ints{1, 5, 3}}});
    Add("dense_bias", {odd}, Plus(sequences, Constants({3}, 5, 1)));
    Add("dense_bias_relu", {odd}, Relu(MakeCall("nn.bias_add", {product, Constants({3}, 5, 1)})));
    Add("dense", {odd, w}, MakeCall("nn.dense", {odd, w}));
    const Var left = Tensor("left", {8, 6}), right = Tensor("right", {8, 16});
    AddAnchor("matmul", {left, right}, MakeCall("nn.matmul", {left, right}, {{"transpose_a", true}}), {16}, false);
    const Var plain = Tensor("left", {140, 12}), both = Tensor("right", {132, 12});
    Add("matmul", {plain, both}, MakeCall("nn.matmul", {plain, both}, {{"transpose_b", true}}));
    const Var a = Tensor("a", {2, 5, 4}), b = Tensor("b", {2, 6, 4}), one = Tensor("one", {1, 4, 8});
    AddAnchor("batch_matmul", {a, b}, MakeCall("nn.batch_matmul", {a, b}, {{"transpose_b", true}}), {6}, false);
    Add("batch_matmul", {a, one}, MakeCall("nn.batch_matmul", {a, one}, {{"transpose_b", false}}));
    const Var first = Tensor("first", {1, 4, 6}), many = Tensor("many", {3, 4, 8});
    Add("batch_matmul", {first, many},
        MakeCall("nn.batch_matmul", {first, many}, {{"transpose_a", true}, {"transpose_b", false}}));
  }

  DataType dtype_;
  std::vector<PatternCase> cases_;
};

/// Products and convolutions of integers, whose sums are results.
std::vector<PatternCase> IntegerCases() {
  const auto constants = [](const Shape& shape, DataType dtype) {
    return MakeConstant(RandomTensor(shape, dtype, -100, 100, 3));
  };
  const Attrs wide{{"out_dtype", kInt32}};
  const Var x = Input("x", {5, 16}, kInt8), image = Input("x", {1, 8, 6, 5}, kInt8);
  const Expr product = MakeCall("nn.dense", {x, constants({12, 16}, kInt8)}, wide);
  const Var a = Input("a", {2, 5, 4}, kInt8), b = Input("b", {2, 6, 4}, kInt8);
  const Expr convolved =
      MakeCall("nn.conv2d", {image, constants({8, 8, 3, 3}, kInt8)}, {{"out_dtype", kInt32}, {"padding", Ints{1, 1}}});
  const Var other = Input("other", {1, 8, 6, 5}, kInt32);
  return {{"dense", {x}, product},
          {"dense_bias", {x}, Plus(product, constants({12}, kInt32))},
          {"dense_bias_relu", {x}, Relu(Plus(product, constants({12}, kInt32)))},
          {"batch_matmul", {a, b}, MakeCall("nn.batch_matmul", {a, b}, {{"transpose_b", true}, {"out_dtype", kInt32}})},
          {"conv2d", {image}, convolved},
          {"conv2d_residual_add_relu", {image, other}, Relu(Plus(convolved, other))}};
}

}  // namespace

std::vector<PatternCase> CutlassCases(DataType dtype) { return dtype == kInt8 ? IntegerCases() : Cases(dtype).All(); }

}  // namespace collage
