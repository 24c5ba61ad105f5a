// activation.cc: products are flattened to a number and factors, so that every order of them is one case.
#include "backends/fused_matches/activation.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "collage/ir/op.h"

namespace collage::matches {
namespace {

/// No activation has more factors: bounds the walk.
constexpr size_t kMostFactors = 8;
/// Exporters print constants with few digits, and bfloat16 keeps eight bits of them.
constexpr double kRelativeError = 1e-3;
constexpr double kRelativeErrorOfBFloat16 = 1.0 / 256;

const CallNode* CallOf(const Expr& expr, std::string_view op) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr && call->op()->name == op ? call : nullptr;
}

/// The operand of a conversion between floats: models in float16 compute erf in float32.
Expr BehindCast(const Expr& expr) {
  const CallNode* cast = CallOf(expr, "cast");
  return cast != nullptr ? cast->args()[0] : expr;
}

/// number * factors[0] * factors[1] …
struct Factors {
  double number = 1;
  std::vector<Expr> factors;
};

/// Recognises functions of one value.
class Matcher {
 public:
  explicit Matcher(Expr x) : x_(std::move(x)) {
    const TensorTypeNode* type = AsTensorType(x_->checked_type());
    if (type != nullptr && type->dtype() == kBFloat16) error_ = kRelativeErrorOfBFloat16;
  }

  std::optional<Pointwise> Match(const Expr& expr) const {
    if (const auto elu = MatchElu(expr)) return elu;
    return MatchProduct(expr);
  }

 private:
  bool Near(double value, double target) const { return std::abs(value - target) <= error_ * std::abs(target); }

  /// `x` is not taken apart.
  Factors FactorsOf(const Expr& root) const {
    Factors all;
    std::vector<Expr> open{root};
    while (!open.empty() && all.factors.size() <= kMostFactors) {
      const Expr expr = open.back();
      open.pop_back();
      const CallNode* multiply = expr == x_ ? nullptr : CallOf(expr, "multiply");
      const CallNode* divide = expr == x_ ? nullptr : CallOf(expr, "divide");
      if (const auto value = ScalarValue(expr)) {
        all.number *= *value;
      } else if (multiply != nullptr) {
        open.push_back(multiply->args()[0]);
        open.push_back(multiply->args()[1]);
      } else if (divide != nullptr && ScalarValue(divide->args()[1])) {
        all.number /= *ScalarValue(divide->args()[1]);
        open.push_back(divide->args()[0]);
      } else {
        all.factors.push_back(expr);
      }
    }
    return all;
  }

  /// The other operand of a sum with the number `value`.
  std::optional<Expr> Plus(const Expr& expr, double value) const {
    const CallNode* subtract = CallOf(expr, "subtract");
    const auto less = subtract != nullptr ? ScalarValue(subtract->args()[1]) : std::nullopt;
    if (less && Near(-*less, value)) return subtract->args()[0];
    const CallNode* add = CallOf(expr, "add");
    for (size_t i = 0; add != nullptr && i < 2; ++i) {
      const auto number = ScalarValue(add->args()[i]);
      if (number && Near(*number, value)) return add->args()[1 - i];
    }
    return {};
  }

  /// The factor where `expr` is factor * x.
  std::optional<double> MultipleOf(const Expr& expr) const {
    const Factors all = FactorsOf(expr);
    if (all.factors.size() != 1 || all.factors[0] != x_) return {};
    return all.number;
  }

  /// 1 + erf(x / sqrt(2)).
  bool IsErfTerm(const Expr& expr) const {
    const auto inner = Plus(expr, 1);
    const CallNode* erf = inner ? CallOf(BehindCast(*inner), "erf") : nullptr;
    const auto factor = erf != nullptr ? MultipleOf(BehindCast(erf->args()[0])) : std::nullopt;
    return factor && Near(*factor, std::sqrt(0.5));
  }

  /// 0.044715 * x * x * x, also with powers.
  bool IsCubicTerm(const Expr& expr) const {
    const Factors all = FactorsOf(expr);
    double degree = 0;
    for (const Expr& factor : all.factors) {
      const CallNode* power = CallOf(factor, "power");
      const auto exponent = power != nullptr && power->args()[0] == x_ ? ScalarValue(power->args()[1]) : std::nullopt;
      if (factor != x_ && !exponent) return false;
      degree += factor == x_ ? 1 : *exponent;
    }
    return degree == 3 && Near(all.number, 0.044715);
  }

  /// 1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)).
  bool IsTanhTerm(const Expr& expr) const {
    const auto inner = Plus(expr, 1);
    const CallNode* tanh = inner ? CallOf(*inner, "tanh") : nullptr;
    if (tanh == nullptr) return false;
    const Factors all = FactorsOf(tanh->args()[0]);
    if (all.factors.size() != 1 || !Near(all.number, std::sqrt(2 / M_PI))) return false;
    const CallNode* sum = CallOf(all.factors[0], "add");
    for (size_t i = 0; sum != nullptr && i < 2; ++i) {
      if (sum->args()[i] == x_ && IsCubicTerm(sum->args()[1 - i])) return true;
    }
    return false;
  }

  /// The factor where `expr` is clip(x + 3, 0, 6), times the factor.
  std::optional<double> MultipleOfRamp(const Expr& expr) const {
    const CallNode* clip = CallOf(expr, "clip");
    const CallNode* add =
        clip != nullptr && clip->attrs().Double("a_min") == 0 ? CallOf(clip->args()[0], "add") : nullptr;
    for (size_t i = 0; add != nullptr && i < 2; ++i) {
      const double factor = clip->attrs().Double("a_max") / 6;
      const auto number = ScalarValue(add->args()[i]);
      const auto slope = number ? MultipleOf(add->args()[1 - i]) : std::nullopt;
      if (slope && Near(*number, 3 * factor) && Near(*slope, factor)) return factor;
    }
    return {};
  }

  /// alpha where `expr` is alpha * (exp(min(x, 0)) - 1).
  std::optional<double> ExponentialBelowZero(const Expr& expr) const {
    const Factors all = FactorsOf(expr);
    const auto inner = all.factors.size() == 1 ? Plus(all.factors[0], -1) : std::nullopt;
    const CallNode* exp = inner ? CallOf(*inner, "exp") : nullptr;
    const CallNode* minimum = exp != nullptr ? CallOf(exp->args()[0], "minimum") : nullptr;
    if (minimum == nullptr || minimum->args()[0] != x_ || ScalarValue(minimum->args()[1]) != 0.0) return {};
    return all.number;
  }

  /// relu(x) + alpha * (exp(min(x, 0)) - 1).
  std::optional<Pointwise> MatchElu(const Expr& expr) const {
    const CallNode* add = CallOf(expr, "add");
    for (size_t i = 0; add != nullptr && i < 2; ++i) {
      const CallNode* relu = CallOf(add->args()[i], "nn.relu");
      if (relu == nullptr || relu->args()[0] != x_) continue;
      if (const auto alpha = ExponentialBelowZero(add->args()[1 - i])) {
        return Pointwise{.mode = PointwiseMode::kElu, .alpha = *alpha};
      }
    }
    return {};
  }

  std::optional<Pointwise> MatchProduct(const Expr& expr) const {
    Factors all = FactorsOf(expr);
    if (all.factors.size() != 2) return {};
    if (all.factors[0] != x_) std::swap(all.factors[0], all.factors[1]);
    if (all.factors[0] != x_) return {};
    const Expr& other = all.factors[1];
    if (Near(all.number, 0.5) && IsErfTerm(other)) return Pointwise{.mode = PointwiseMode::kGelu};
    if (Near(all.number, 0.5) && IsTanhTerm(other)) return Pointwise{.mode = PointwiseMode::kGeluTanh};
    const auto ramp = MultipleOfRamp(other);
    if (ramp && Near(all.number * *ramp, 1.0 / 6)) return Pointwise{.mode = PointwiseMode::kHardSwish};
    const CallNode* sigmoid = all.number == 1 ? CallOf(other, "sigmoid") : nullptr;
    const auto alpha = sigmoid != nullptr ? MultipleOf(sigmoid->args()[0]) : std::nullopt;
    if (!alpha) return {};
    return Pointwise{.mode = PointwiseMode::kSwish, .alpha = *alpha};
  }

  Expr x_;
  double error_ = kRelativeError;
};

std::optional<Pointwise> MatchOperator(const CallNode& call) {
  const std::string& name = call.op()->name;
  if (name == "nn.relu") return Pointwise{.mode = PointwiseMode::kRelu};
  if (name == "nn.leaky_relu") return Pointwise{.mode = PointwiseMode::kRelu, .slope = call.attrs().Double("alpha")};
  if (name == "sigmoid") return Pointwise{.mode = PointwiseMode::kSigmoid};
  if (name == "tanh") return Pointwise{.mode = PointwiseMode::kTanh};
  if (name != "clip") return {};
  const double low = call.attrs().Double("a_min"), high = call.attrs().Double("a_max");
  const double largest = std::numeric_limits<float>::max();
  if (!(low > -largest && low < high)) return {};
  return Pointwise{.mode = PointwiseMode::kRelu, .low = low, .high = high < largest ? high : low};
}

}  // namespace

std::optional<double> ScalarValue(const Expr& expr) {
  const ConstantNode* constant = As<ConstantNode>(expr);
  if (constant == nullptr || constant->value().num_elements() != 1) return {};
  return constant->value().At(0);
}

std::optional<Pointwise> MatchActivation(const Expr& expr, const Expr& x) {
  const CallNode* call = As<CallNode>(expr);
  if (call == nullptr || call->op() == nullptr || expr == x) return {};
  if (!call->args().empty() && call->args()[0] == x) {
    if (const auto function = MatchOperator(*call)) return function;
  }
  return Matcher(x).Match(expr);
}

}  // namespace collage::matches
