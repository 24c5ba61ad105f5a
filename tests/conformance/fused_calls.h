// fused_calls.h: what kernel libraries fuse: anchors, and activations as exporters write them out.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "collage/ir/infer_type.h"
#include "conformance/conformance.h"

namespace collage::conformance {

inline Expr Scalar(double value) { return MakeScalar(value, kFloat32); }
inline Expr Mul(const Expr& a, const Expr& b) { return MakeCall("multiply", {a, b}); }
inline Expr Plus(const Expr& a, const Expr& b) { return MakeCall("add", {a, b}); }
inline Expr Div(const Expr& a, const Expr& b) { return MakeCall("divide", {a, b}); }
inline Expr Clip(const Expr& x, double low, double high) {
  return MakeCall("clip", {x}, {{"a_min", low}, {"a_max", high}});
}

/// A slope for each channel, the operator's own or as it is imported: relu(x) + slope * min(x, 0).
inline Expr Prelu(const Expr& x, bool is_written = false) {
  const Shape shape = AsTensorType(InferType(x))->static_shape();
  if (!is_written) return MakeCall("nn.prelu", {x, RandomConstant({shape[1]}, 17, -0.5, 0.5)}, {{"axis", 1}});
  Shape spread(shape.size() - 1, 1);
  spread[0] = shape[1];
  const Expr below = MakeCall("minimum", {x, Scalar(0)});
  return Plus(MakeCall("nn.relu", {x}), Mul(below, RandomConstant(spread, 17, -0.5, 0.5)));
}

/// An anchor of every kind, its result about as large as 1.
struct Anchor {
  std::string name;
  Var x;
  Expr result;
  Shape bias;

  static Anchor Conv(int rank) {
    const Shape data = rank == 1 ? Shape{1, 16, 21} : rank == 2 ? Shape{1, 16, 7, 9} : Shape{1, 16, 5, 6, 7};
    Shape weight(static_cast<size_t>(rank) + 2, 3);
    weight[0] = 32;
    weight[1] = 16;
    const Var x = Input("x", data);
    Shape bias(static_cast<size_t>(rank) + 1, 1);
    bias[0] = 32;
    const Expr conv = MakeCall("nn.conv" + std::to_string(rank) + "d", {x, RandomConstant(weight, 5, -0.2, 0.2)},
                               {{"padding", std::vector<int64_t>(static_cast<size_t>(rank), 1)}});
    return {"conv" + std::to_string(rank) + "d", x, conv, bias};
  }
  static Anchor Dense() {
    const Var x = Input("x", {17, 24});
    return {"dense", x, MakeCall("nn.dense", {x, RandomConstant({32, 24}, 6, -0.4, 0.4)}), {32}};
  }
  Expr Biased() const { return Plus(result, RandomConstant(bias, 7)); }
  Shape shape() const { return AsTensorType(InferType(result))->static_shape(); }
};

inline std::vector<Anchor> Anchors() { return {Anchor::Conv(1), Anchor::Conv(2), Anchor::Conv(3), Anchor::Dense()}; }

struct Activation {
  const char* suffix;
  std::function<Expr(const Expr&)> apply;
};

inline std::vector<Activation> Activations() {
  const double root = std::sqrt(2.0);
  const double slope = std::sqrt(2 / M_PI);
  const auto erf = [root](const Expr& x) { return Plus(MakeCall("erf", {Div(x, Scalar(root))}), Scalar(1)); };
  const auto cube = [](const Expr& x) { return MakeCall("power", {x, Scalar(3)}); };
  const auto tanh = [slope](const Expr& x, const Expr& x3) {
    const Expr inner = Mul(Plus(x, Mul(x3, Scalar(0.044715))), Scalar(slope));
    return Plus(MakeCall("tanh", {inner}), Scalar(1));
  };
  const auto below = [](const Expr& x) { return MakeCall("exp", {MakeCall("minimum", {x, Scalar(0)})}); };
  const auto softplus = [](const Expr& x) {
    const Expr decay = MakeCall("exp", {MakeCall("negative", {MakeCall("abs", {x})})});
    return Plus(MakeCall("nn.relu", {x}), MakeCall("log", {Plus(decay, Scalar(1))}));
  };
  return {
      {"_relu", [](const Expr& x) { return MakeCall("nn.relu", {x}); }},
      {"_clip", [](const Expr& x) { return Clip(x, 0, 0.5); }},
      {"_sigmoid", [](const Expr& x) { return MakeCall("sigmoid", {x}); }},
      {"_tanh", [](const Expr& x) { return MakeCall("tanh", {x}); }},
      {"_leaky_relu",
       [](const Expr& x) {
         return MakeCall("nn.leaky_relu", {x}, {{"alpha", 0.1}});
       }},
      {"_swish", [](const Expr& x) { return Mul(x, MakeCall("sigmoid", {x})); }},
      {"_gelu", [erf](const Expr& x) { return Mul(Mul(x, erf(x)), Scalar(0.5)); }},
      {"_gelu", [erf](const Expr& x) { return Mul(Mul(Scalar(0.5), x), erf(x)); }},
      {"_gelu", [erf](const Expr& x) { return Mul(x, Mul(erf(x), Scalar(0.5))); }},
      {"_gelu_tanh", [=](const Expr& x) { return Mul(Mul(Scalar(0.5), x), tanh(x, cube(x))); }},
      {"_gelu_tanh", [=](const Expr& x) { return Mul(x, Mul(Scalar(0.5), tanh(x, Mul(x, Mul(x, x))))); }},
      {"_hardswish", [](const Expr& x) { return Mul(x, Div(Clip(Plus(x, Scalar(3)), 0, 6), Scalar(6))); }},
      {"_hardswish", [](const Expr& x) { return Div(Mul(x, Clip(Plus(x, Scalar(3)), 0, 6)), Scalar(6)); }},
      {"_hardswish", [](const Expr& x) { return Mul(x, Clip(Plus(Mul(x, Scalar(1.0 / 6)), Scalar(0.5)), 0, 1)); }},
      {"_mish",
       [](const Expr& x) {
         return Mul(x, MakeCall("tanh", {MakeCall("log", {Plus(MakeCall("exp", {x}), Scalar(1))})}));
       }},
      {"_mish", [=](const Expr& x) { return Mul(x, MakeCall("tanh", {softplus(x)})); }},
      {"_softplus", softplus},
      {"_elu", [=](const Expr& x) { return Plus(MakeCall("nn.relu", {x}), Plus(below(x), Scalar(-1))); }},
      {"_elu",
       [=](const Expr& x) {
         return Plus(MakeCall("nn.relu", {x}), Mul(MakeCall("subtract", {below(x), Scalar(1)}), Scalar(0.7)));
       }},
      {"_prelu", [](const Expr& x) { return Prelu(x); }},
      {"_prelu", [](const Expr& x) { return Prelu(x, /*is_written=*/true); }},
      {"_hard_sigmoid", [](const Expr& x) { return Clip(Plus(Mul(x, Scalar(0.2)), Scalar(0.5)), 0, 1); }},
  };
}

}  // namespace collage::conformance
