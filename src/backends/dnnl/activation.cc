// activation.cc: products are flattened to a constant and factors, so that every association is one case. Of sums,
// those with relu(x) are functions that differ below zero.
#include "backends/dnnl/activation.h"

#include <cmath>
#include <vector>

#include "collage/ir/op.h"

namespace collage::dnnl_toolchain {
namespace {

/// No written-out activation has more factors or operators than this: bounds the walk.
constexpr size_t kMaxFactors = 8;

const CallNode* CallOf(const Expr& expr, std::string_view op) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr && call->op()->name == op ? call : nullptr;
}

bool Near(double value, double target) { return std::abs(value - target) <= 1e-3 * std::abs(target) + 1e-9; }

/// constant * factors[0] * factors[1] …
struct Product {
  double constant = 1;
  std::vector<Expr> factors;
};

Product Flatten(const Expr& root, const ExprNode* x) {
  Product product;
  std::vector<Expr> open{root};
  while (!open.empty() && product.factors.size() <= kMaxFactors) {
    const Expr expr = open.back();
    open.pop_back();
    if (const auto value = ScalarValue(expr)) {
      product.constant *= *value;
    } else if (expr.get() == x) {
      product.factors.push_back(expr);
    } else if (const CallNode* multiply = CallOf(expr, "multiply")) {
      open.push_back(multiply->args()[0]);
      open.push_back(multiply->args()[1]);
    } else if (const CallNode* divide = CallOf(expr, "divide"); divide != nullptr && ScalarValue(divide->args()[1])) {
      product.constant /= *ScalarValue(divide->args()[1]);
      open.push_back(divide->args()[0]);
    } else {
      product.factors.push_back(expr);
    }
  }
  return product;
}

/// The other argument of add(a, scalar) when the scalar is `value`.
std::optional<Expr> PlusScalar(const Expr& expr, double value) {
  const CallNode* add = CallOf(expr, "add");
  if (add == nullptr) return {};
  for (size_t i : {size_t{0}, size_t{1}}) {
    const auto scalar = ScalarValue(add->args()[i]);
    if (scalar && Near(*scalar, value)) return add->args()[1 - i];
  }
  return {};
}

/// The factor of `x` when `expr` is factor * x.
std::optional<double> Multiple(const Expr& expr, const ExprNode* x) {
  const Product product = Flatten(expr, x);
  if (product.factors.size() != 1 || product.factors[0].get() != x) return {};
  return product.constant;
}

/// 1 + erf(x / sqrt(2)).
bool IsErfTerm(const Expr& expr, const ExprNode* x) {
  const auto inner = PlusScalar(expr, 1);
  const CallNode* erf = inner ? CallOf(*inner, "erf") : nullptr;
  if (erf == nullptr) return false;
  const auto factor = Multiple(erf->args()[0], x);
  return factor && Near(*factor, std::sqrt(0.5));
}

/// 0.044715 * x * x * x, with the power written either way.
bool IsCubicTerm(const Expr& expr, const ExprNode* x) {
  const Product product = Flatten(expr, x);
  if (!Near(product.constant, 0.044715)) return false;
  int degree = 0;
  for (const Expr& factor : product.factors) {
    if (factor.get() == x) {
      ++degree;
      continue;
    }
    const CallNode* power = CallOf(factor, "power");
    const auto exponent = power != nullptr ? ScalarValue(power->args()[1]) : std::nullopt;
    if (!exponent || power->args()[0].get() != x) return false;
    degree += static_cast<int>(std::lround(*exponent));
  }
  return degree == 3;
}

/// 1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)).
bool IsTanhTerm(const Expr& expr, const ExprNode* x) {
  const auto inner = PlusScalar(expr, 1);
  const CallNode* tanh = inner ? CallOf(*inner, "tanh") : nullptr;
  if (tanh == nullptr) return false;
  const Product product = Flatten(tanh->args()[0], x);
  if (product.factors.size() != 1 || !Near(product.constant, std::sqrt(2 / M_PI))) return false;
  const CallNode* sum = CallOf(product.factors[0], "add");
  if (sum == nullptr) return false;
  for (size_t i : {size_t{0}, size_t{1}}) {
    if (sum->args()[i].get() == x && IsCubicTerm(sum->args()[1 - i], x)) return true;
  }
  return false;
}

/// clip(a * x + b, 0, limit): gives a and b.
struct Ramp {
  double slope;
  double offset;
  double limit;
};
std::optional<Ramp> MatchRamp(const Expr& expr, const ExprNode* x) {
  const CallNode* clip = CallOf(expr, "clip");
  if (clip == nullptr || clip->attrs().Double("a_min") != 0) return {};
  const CallNode* add = CallOf(clip->args()[0], "add");
  if (add == nullptr) return {};
  for (size_t i : {size_t{0}, size_t{1}}) {
    const auto offset = ScalarValue(add->args()[i]);
    const auto slope = Multiple(add->args()[1 - i], x);
    if (offset && slope) return Ramp{*slope, *offset, clip->attrs().Double("a_max")};
  }
  return {};
}

/// relu(x) + other.
struct BesideRelu {
  Expr x;
  Expr other;
};
std::optional<BesideRelu> MatchBesideRelu(const Expr& expr) {
  const CallNode* add = CallOf(expr, "add");
  if (add == nullptr) return {};
  for (size_t i : {size_t{0}, size_t{1}}) {
    if (const CallNode* relu = CallOf(add->args()[i], "nn.relu"))
      return BesideRelu{relu->args()[0], add->args()[1 - i]};
  }
  return {};
}

/// min(x, 0).
bool IsBelowZero(const Expr& expr, const ExprNode* x) {
  const CallNode* minimum = CallOf(expr, "minimum");
  if (minimum == nullptr || minimum->args()[0].get() != x) return false;
  const auto bound = ScalarValue(minimum->args()[1]);
  return bound && *bound == 0;
}

/// The argument of the exponential when `expr` is log(1 + exp(argument)).
std::optional<Expr> LogOfOnePlusExp(const Expr& expr) {
  const CallNode* log = CallOf(expr, "log");
  const auto inner = log != nullptr ? PlusScalar(log->args()[0], 1) : std::nullopt;
  const CallNode* exp = inner ? CallOf(*inner, "exp") : nullptr;
  if (exp == nullptr) return {};
  return exp->args()[0];
}

/// log(1 + exp(x)), or relu(x) + log(1 + exp(-abs(x))), in which nothing is too large.
bool IsSoftplus(const Expr& expr, const ExprNode* x) {
  if (const auto argument = LogOfOnePlusExp(expr)) return argument->get() == x;
  const auto sum = MatchBesideRelu(expr);
  const auto argument = sum && sum->x.get() == x ? LogOfOnePlusExp(sum->other) : std::nullopt;
  const CallNode* negative = argument ? CallOf(*argument, "negative") : nullptr;
  const CallNode* abs = negative != nullptr ? CallOf(negative->args()[0], "abs") : nullptr;
  return abs != nullptr && abs->args()[0].get() == x;
}

/// tanh(softplus(x)).
bool IsMishTerm(const Expr& expr, const ExprNode* x) {
  const CallNode* tanh = CallOf(expr, "tanh");
  return tanh != nullptr && IsSoftplus(tanh->args()[0], x);
}

/// alpha when `expr` is alpha * (exp(min(x, 0)) - 1).
std::optional<double> ExponentialBelowZero(const Expr& expr, const ExprNode* x) {
  const Product product = Flatten(expr, x);
  if (product.factors.size() != 1) return {};
  std::optional<Expr> inner = PlusScalar(product.factors[0], -1);
  if (const CallNode* subtract = CallOf(product.factors[0], "subtract")) {
    if (ScalarValue(subtract->args()[1]) == 1.0) inner = subtract->args()[0];
  }
  const CallNode* exp = inner ? CallOf(*inner, "exp") : nullptr;
  if (exp == nullptr || !IsBelowZero(exp->args()[0], x)) return {};
  return product.constant;
}

/// Functions that are relu(x) and something below zero.
std::optional<PostOp> MatchSum(const Expr& expr, const ExprNode* x) {
  if (IsSoftplus(expr, x)) return PostOp{Eltwise::kSoftRelu, 1};
  const auto sum = MatchBesideRelu(expr);
  if (!sum || sum->x.get() != x) return {};
  if (const auto alpha = ExponentialBelowZero(sum->other, x)) return PostOp{Eltwise::kElu, *alpha};
  const auto prelu = MatchPrelu(expr);
  const auto slope = prelu ? ScalarValue(prelu->slope) : std::nullopt;
  if (!slope) return {};
  return PostOp{Eltwise::kRelu, *slope};
}

}  // namespace

std::optional<double> ScalarValue(const Expr& expr) {
  const ConstantNode* constant = As<ConstantNode>(expr);
  if (constant == nullptr || constant->value().num_elements() != 1) return {};
  return constant->value().At(0);
}

std::optional<PostOp> MatchActivation(const Expr& expr, const ExprNode* x) {
  if (const auto sum = MatchSum(expr, x)) return sum;
  const Product product = Flatten(expr, x);
  if (product.factors.size() != 2) return {};
  const bool first_is_x = product.factors[0].get() == x;
  if (!first_is_x && product.factors[1].get() != x) return {};
  const Expr& other = product.factors[first_is_x ? 1 : 0];
  if (Near(product.constant, 0.5) && IsErfTerm(other, x)) return PostOp{Eltwise::kGeluErf};
  if (Near(product.constant, 0.5) && IsTanhTerm(other, x)) return PostOp{Eltwise::kGeluTanh};
  if (const auto ramp = MatchRamp(other, x)) {
    // x * limited(slope * x + offset) to [0, limit], scaled so that the limit is 1.
    if (!Near(product.constant * ramp->limit, 1)) return {};
    return PostOp{Eltwise::kHardSwish, ramp->slope / ramp->limit, ramp->offset / ramp->limit};
  }
  if (product.constant != 1) return {};
  if (const CallNode* sigmoid = CallOf(other, "sigmoid")) {
    if (const auto factor = Multiple(sigmoid->args()[0], x)) return PostOp{Eltwise::kSwish, *factor};
  }
  if (IsMishTerm(other, x)) return PostOp{Eltwise::kMish};
  return {};
}

std::optional<WrittenPrelu> MatchPrelu(const Expr& expr) {
  const auto sum = MatchBesideRelu(expr);
  const CallNode* product = sum ? CallOf(sum->other, "multiply") : nullptr;
  if (product == nullptr) return {};
  for (size_t i : {size_t{0}, size_t{1}}) {
    if (IsBelowZero(product->args()[i], sum->x.get())) return WrittenPrelu{sum->x, product->args()[1 - i]};
  }
  return {};
}

std::optional<PostOp> UnaryPostOp(const CallNode& call) {
  const std::string& name = call.op()->name;
  if (name == "nn.relu") return PostOp{Eltwise::kRelu, 0};
  if (name == "nn.leaky_relu") return PostOp{Eltwise::kRelu, call.attrs().Double("alpha")};
  if (name == "clip") return PostOp{Eltwise::kClip, call.attrs().Double("a_min"), call.attrs().Double("a_max")};
  if (name == "sigmoid") return PostOp{Eltwise::kLogistic};
  if (name == "tanh") return PostOp{Eltwise::kTanh};
  if (name == "abs") return PostOp{Eltwise::kAbs};
  if (name == "exp") return PostOp{Eltwise::kExp};
  if (name == "sqrt") return PostOp{Eltwise::kSqrt};
  if (name == "log") return PostOp{Eltwise::kLog};
  if (name == "round") return PostOp{Eltwise::kRound};
  if (name == "negative") return PostOp{Eltwise::kLinear, -1, 0};
  if (name == "power") {
    const auto exponent = ScalarValue(call.args()[1]);
    if (!exponent) return {};
    if (*exponent == 2) return PostOp{Eltwise::kSquare};
    return PostOp{Eltwise::kPower, 1, *exponent};
  }
  return {};
}

}  // namespace collage::dnnl_toolchain
