// cudnn_cases.cc: each anchor alone, with a bias, a tensor and each function behind it; windows and products of odd
// sizes.
#include "conformance/gpu/cudnn_cases.h"

#include <string>
#include <utility>

#include "collage/ir/infer_type.h"
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

/// Functions that follow images only where these lie channels-last, and no volumes.
bool IsFurther(const std::string& suffix) {
  return suffix == "_leaky_relu" || suffix == "_swish" || suffix.starts_with("_gelu");
}

/// Cases of one type.
class Cases {
 public:
  explicit Cases(DataType dtype) : dtype_(dtype) {}

  std::vector<PatternCase> All() {
    AddConvolutions();
    AddTransposedConvolutions();
    AddPools();
    AddProducts();
    AddAttention();
    const Var x = Tensor("x", {3, 4, 9});
    Add("layer_norm", {x},
        MakeCall("nn.layer_norm", {x, Constants({9}, 3, 1), Constants({9}, 4, 1)}, {{"epsilon", 1e-3}}));
    for (const Shape& shape : {Shape{2, 4, 9}, Shape{2, 3, 5, 7}, Shape{1, 8, 3, 4, 5}}) {
      const Var data = Tensor("data", shape);
      const Expr scale = Constants({shape[1]}, 3, 1), shift = Constants({shape[1]}, 4, 1);
      Add("instance_norm", {data}, MakeCall("nn.instance_norm", {data, scale, shift}, {{"epsilon", 1e-3}}));
    }
    return std::move(cases_);
  }

 private:
  Var Tensor(const std::string& name, const Shape& shape) const { return Input(name, shape, dtype_); }
  Expr Constants(const Shape& shape, uint32_t seed, double range) const {
    return MakeConstant(RandomTensor(shape, dtype_, -range, range, seed));
  }
  Expr Number(double value) const { return MakeScalar(value, dtype_); }
  void Add(const std::string& pattern, std::vector<Var> params, Expr body) {
    cases_.push_back({pattern, std::move(params), std::move(body)});
  }

  /// All that the table has behind an anchor; the bias is of that shape. There is no leaky ReLU and no product behind
  /// volumes.
  void AddAnchor(const std::string& name, const std::vector<Var>& params, const Expr& anchor, const Shape& bias,
                 bool takes_sums) {
    const bool is_volume = ShapeOf(anchor).size() == 5;
    const Var other = Tensor("other", ShapeOf(anchor));
    std::vector<Var> more = params;
    more.push_back(other);
    for (const auto& [prefix, inner] :
         {std::pair{name, anchor}, std::pair{name + "_bias", Plus(anchor, Constants(bias, 5, 1))}}) {
      Add(prefix, params, inner);
      if (takes_sums) Add(prefix + "_sum", more, Plus(inner, other));
      for (const NamedFunction& function : FunctionsBehind(dtype_)) {
        const std::string suffix = function.suffix;
        if (suffix == "_hardswish" || (is_volume && IsFurther(suffix))) continue;
        Add(prefix + function.suffix, params, function.apply(inner));
        if (takes_sums) Add(prefix + "_sum" + function.suffix, more, function.apply(Plus(inner, other)));
      }
    }
  }

  Expr Convolution(int rank, const Var& x, const Shape& weights, const Ints& padding, const Ints& strides,
                   const Ints& dilation, int64_t groups = 1) const {
    return MakeCall("nn.conv" + std::to_string(rank) + "d", {x, Constants(weights, 3, 0.4)},
                    {{"padding", padding}, {"strides", strides}, {"dilation", dilation}, {"groups", groups}});
  }

  void AddConvolutions() {
    const Var image = Tensor("x", {1, 4, 6, 5}), row = Tensor("x", {2, 4, 9}), volume = Tensor("x", {1, 4, 4, 3, 5});
    AddAnchor("conv2d", {image}, Convolution(2, image, {8, 4, 3, 3}, {1, 1}, {1, 1}, {1, 1}), {8, 1, 1}, true);
    AddAnchor("conv1d", {row}, Convolution(1, row, {8, 4, 3}, {1}, {2}, {1}), {8, 1}, true);
    AddAnchor("conv3d", {volume}, Convolution(3, volume, {8, 4, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}),
              {8, 1, 1, 1}, true);
    const auto add = [&](const Shape& data, const Shape& weights, const Ints& padding, const Ints& strides,
                         const Ints& dilation, int64_t groups) {
      const Var x = Tensor("x", data);
      const Expr alone = Convolution(2, x, weights, padding, strides, dilation, groups);
      const Expr biased = MakeCall("nn.bias_add", {alone, Constants({weights[0]}, 5, 1)}, {{"axis", int64_t{1}}});
      Add("conv2d", {x}, alone);
      Add("conv2d_bias", {x}, biased);
      Add("conv2d_bias_relu", {x}, MakeCall("nn.relu", {biased}));
      const Var other = Tensor("other", ShapeOf(alone));
      Add("conv2d_bias_sum_relu", {x, other}, MakeCall("nn.relu", {Plus(other, biased)}));
    };
    add({2, 3, 11, 7}, {5, 3, 5, 3}, {2, 0}, {3, 2}, {1, 1}, 1);  // odd sizes
    add({1, 2, 9, 9}, {4, 2, 3, 3}, {2, 2}, {1, 1}, {2, 2}, 1);   // dilated
    add({1, 6, 5, 5}, {4, 3, 1, 1}, {0, 0}, {1, 1}, {1, 1}, 2);   // in groups
    add({1, 5, 6, 6}, {5, 1, 3, 3}, {1, 1}, {2, 2}, {1, 1}, 5);   // depthwise
    // Padding that differs at both ends.
    add({1, 4, 8, 8}, {8, 4, 3, 3}, {0, 0, 1, 1}, {2, 2}, {1, 1}, 1);
    add({1, 4, 9, 7}, {6, 2, 3, 2}, {0, 2, 3, 1}, {1, 2}, {2, 1}, 2);
    add({1, 5, 6, 6}, {5, 1, 3, 3}, {1, 0, 0, 1}, {2, 1}, {1, 1}, 5);
    Add("conv1d", {row}, Convolution(1, row, {8, 4, 4}, {1, 2}, {2}, {1}));
    Add("conv3d", {volume}, Convolution(3, volume, {8, 4, 3, 3, 3}, {0, 1, 0, 1, 0, 1}, {2, 1, 2}, {1, 1, 1}));
  }

  void AddTransposedConvolutions() {
    for (int rank = 1; rank <= 3; ++rank) {
      const auto size = static_cast<size_t>(rank);
      Shape data{1, 4}, weights{4, 8}, bias{8};
      data.insert(data.end(), size, 5);
      weights.insert(weights.end(), size, 3);
      bias.insert(bias.end(), size, 1);
      const Var x = Tensor("x", data);
      const std::string name = std::to_string(rank) + "d";
      const Expr alone = MakeCall("nn.conv" + name + "_transpose", {x, Constants(weights, 3, 0.4)},
                                  {{"strides", Ints(size, 2)}, {"padding", Ints(size, 1)}});
      if (rank < 3) AddAnchor("deconv" + name, {x}, alone, bias, /*takes_sums=*/false);
      if (rank == 3) Add("deconv3d", {x}, alone);
    }
    const Var x = Tensor("x", {1, 4, 5, 4});
    Add("deconv2d", {x},
        MakeCall("nn.conv2d_transpose", {x, Constants({4, 3, 3, 4}, 3, 0.4)},
                 {{"strides", Ints{2, 3}},
                  {"padding", Ints{1, 1}},
                  {"output_padding", Ints{1, 2}},
                  {"groups", int64_t{2}}}));
    Add("deconv2d", {x},
        MakeCall("nn.conv2d_transpose", {x, Constants({4, 3, 3, 4}, 3, 0.4)},
                 {{"strides", Ints{2, 2}}, {"padding", Ints{0, 1, 1, 2}}}));
  }

  void AddPools() {
    for (int rank = 1; rank <= 3; ++rank) {
      const auto size = static_cast<size_t>(rank);
      Shape data{2, 4};
      data.insert(data.end(), size, 6);
      const Var x = Tensor("x", data);
      for (const char* kind : {"max_pool", "avg_pool"}) {
        const std::string name = kind + std::to_string(rank) + "d";
        Add(name, {x}, MakeCall("nn." + name, {x}, {{"pool_size", Ints(size, 2)}, {"strides", Ints(size, 2)}}));
        Add("global_" + name, {x}, MakeCall("nn.global_" + name, {x}));
      }
    }
    const Var x = Tensor("x", {2, 3, 9, 8});
    for (const char* kind : {"max_pool2d", "avg_pool2d"}) {
      for (const bool ceil_mode : {false, true}) {
        Add(kind, {x},
            MakeCall(std::string("nn.") + kind, {x},
                     {{"pool_size", Ints{3, 2}},
                      {"strides", Ints{2, 3}},
                      {"padding", Ints{1, 0, 1, 1}},
                      {"ceil_mode", ceil_mode}}));
      }
    }
    Add("avg_pool2d", {x},
        MakeCall("nn.avg_pool2d", {x},
                 {{"pool_size", Ints{3, 3}}, {"padding", Ints{1, 1}}, {"count_include_pad", true}}));
  }

  void AddProducts() {
    const Var x = Tensor("x", {5, 8}), odd = Tensor("x", {5, 7});
    AddAnchor("dense", {x}, MakeCall("nn.dense", {x, Constants({16, 8}, 3, 0.5)}), {16}, /*takes_sums=*/true);
    const Expr product = MakeCall("nn.dense", {odd, Constants({3, 7}, 3, 0.5)});
    const Expr sequences = MakeCall("reshape", {product}, {{"newshape", Ints{1, 5, 3}}});
    Add("dense_bias", {odd}, Plus(sequences, Constants({3}, 5, 1)));
    Add("dense_bias_relu", {odd}, MakeCall("nn.relu", {Plus(product, Constants({3}, 5, 1))}));
    const Var w = Tensor("w", {6, 7});
    Add("dense", {odd, w}, MakeCall("nn.dense", {odd, w}));
    if (dtype_ == kFloat32) return;  // matrices of two inputs are multiplied as TF32 only
    const Var left = Tensor("left", {8, 5}), right = Tensor("right", {8, 16});
    AddAnchor("matmul", {left, right}, MakeCall("nn.matmul", {left, right}, {{"transpose_a", true}}), {16},
              /*takes_sums=*/false);
    const Var a = Tensor("a", {2, 5, 4}), b = Tensor("b", {2, 6, 4}), one = Tensor("one", {1, 4, 3});
    Add("batch_matmul", {a, b}, MakeCall("nn.batch_matmul", {a, b}, {{"transpose_b", true}}));
    Add("batch_matmul", {a, one}, MakeCall("nn.batch_matmul", {a, one}, {{"transpose_b", false}}));
  }

  void AddAttention() {
    if (dtype_ == kFloat32) return;
    const Var q = Tensor("q", {6, 16, 64}), k = Tensor("k", {6, 24, 64}), v = Tensor("v", {6, 24, 64});
    const Expr scores = MakeCall("nn.batch_matmul", {q, k}, {{"transpose_b", true}});
    const auto weigh = [&](const Expr& weights) {
      return MakeCall("nn.batch_matmul", {weights, v}, {{"transpose_b", false}});
    };
    Add("attention", {q, k, v}, weigh(MakeCall("nn.softmax", {scores})));
    const Expr heads = MakeCall("reshape", {scores}, {{"newshape", Ints{2, 3, 16, 24}}});
    const Expr weights = MakeCall("nn.softmax", {MakeCall("divide", {heads, Number(8)})});
    Add("attention_scale", {q, k, v}, weigh(MakeCall("reshape", {weights}, {{"newshape", Ints{6, 16, 24}}})));
    const Expr scaled = MakeCall("multiply", {heads, Number(0.125)});
    const auto add_masked = [&](const Shape& shape, const char* pattern, const Expr& inner) {
      const Var mask = Tensor("mask", shape);
      const Expr softmax = MakeCall("nn.softmax", {Plus(inner, mask)});
      const bool are_heads = ShapeOf(inner).size() == 4;
      Add(pattern, {q, k, v, mask},
          weigh(are_heads ? MakeCall("reshape", {softmax}, {{"newshape", Ints{6, 16, 24}}}) : softmax));
    };
    for (const Shape& shape :
         {Shape{2, 1, 1, 24}, Shape{1, 1, 16, 24}, Shape{2, 3, 16, 24}, Shape{3, 1, 24}, Shape{24}}) {
      add_masked(shape, "attention_scale_mask", scaled);
    }
    add_masked({6, 16, 24}, "attention_mask", scores);
    add_masked({1, 16, 24}, "attention_mask", scores);
  }

  DataType dtype_;
  std::vector<PatternCase> cases_;
};

}  // namespace

std::vector<PatternCase> CudnnCases(DataType dtype) { return Cases(dtype).All(); }

}  // namespace collage
