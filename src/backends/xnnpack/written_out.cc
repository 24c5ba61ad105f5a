// written_out.cc: chains of scalars are read as slope and offset, products as a constant and factors, so that every
// association is one case.
#include "backends/xnnpack/written_out.h"

#include <cmath>
#include <vector>

#include "collage/ir/op.h"

namespace collage::xnnpack_toolchain {
namespace {

/// No written-out function has longer chains or more factors: bounds the walks.
constexpr int kMaxSteps = 8;

bool Near(double value, double target) { return std::abs(value - target) <= 1e-3 * std::abs(target) + 1e-9; }

/// slope * inner + offset.
struct Line {
  double slope = 1;
  double offset = 0;
  Expr inner;
};

Line LineOf(const Expr& expr) {
  Line line{1, 0, expr};
  for (int step = 0; step < kMaxSteps; ++step) {
    const CallNode* call = As<CallNode>(line.inner);
    if (call == nullptr || call->op() == nullptr || call->args().size() != 2) return line;
    const std::string& name = call->op()->name;
    const auto left = ScalarValue(call->args()[0]);
    const auto right = ScalarValue(call->args()[1]);
    if (left.has_value() == right.has_value()) return line;
    const double scalar = left ? *left : *right;
    if (name == "multiply") {
      line.slope *= scalar;
    } else if (name == "divide" && right) {
      line.slope /= scalar;
    } else if (name == "add") {
      line.offset += line.slope * scalar;
    } else if (name == "subtract" && right) {
      line.offset -= line.slope * scalar;
    } else {
      return line;
    }
    line.inner = call->args()[left ? 1 : 0];
  }
  return line;
}

/// constant * factors[0] * factors[1] …
struct Product {
  double constant = 1;
  std::vector<Expr> factors;
};

Product ProductOf(const Expr& root) {
  Product product;
  std::vector<Expr> open{root};
  for (int step = 0; !open.empty() && step < kMaxSteps; ++step) {
    const Expr expr = open.back();
    open.pop_back();
    const CallNode* multiply = CallOf(expr, "multiply");
    const CallNode* divide = CallOf(expr, "divide");
    if (const auto value = ScalarValue(expr)) {
      product.constant *= *value;
    } else if (multiply != nullptr) {
      open.insert(open.end(), {multiply->args()[0], multiply->args()[1]});
    } else if (divide != nullptr && ScalarValue(divide->args()[1])) {
      product.constant /= *ScalarValue(divide->args()[1]);
      open.push_back(divide->args()[0]);
    } else {
      product.factors.push_back(expr);
    }
  }
  product.factors.insert(product.factors.end(), open.begin(), open.end());
  return product;
}

}  // namespace

const CallNode* CallOf(const Expr& expr, std::string_view op) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr && call->op()->name == op ? call : nullptr;
}

std::optional<double> ScalarValue(const Expr& expr) {
  const ConstantNode* constant = As<ConstantNode>(expr);
  if (constant == nullptr || constant->value().num_elements() != 1) return {};
  return constant->value().At(0);
}

Expr HardSwishOf(const Expr& expr) {
  const Product product = ProductOf(expr);
  if (product.factors.size() != 2) return nullptr;
  for (size_t i : {size_t{0}, size_t{1}}) {
    const CallNode* clip = CallOf(product.factors[i], "clip");
    if (clip == nullptr) continue;
    const Line line = LineOf(clip->args()[0]);
    const double c = product.constant;
    if (line.inner == product.factors[1 - i] && Near(c * line.slope, 1.0 / 6) && Near(c * line.offset, 0.5) &&
        Near(c * clip->attrs().Double("a_min"), 0) && Near(c * clip->attrs().Double("a_max"), 1)) {
      return line.inner;
    }
  }
  return nullptr;
}

Elu EluOf(const Expr& expr) {
  const CallNode* add = CallOf(expr, "add");
  if (add == nullptr) return {};
  for (size_t i : {size_t{0}, size_t{1}}) {
    const CallNode* relu = CallOf(add->args()[i], "nn.relu");
    if (relu == nullptr) continue;
    const Line line = LineOf(add->args()[1 - i]);
    const CallNode* exp = CallOf(line.inner, "exp");
    const CallNode* minimum = exp == nullptr ? nullptr : CallOf(exp->args()[0], "minimum");
    if (minimum == nullptr || !Near(line.offset, -line.slope)) continue;
    for (size_t j : {size_t{0}, size_t{1}}) {
      if (minimum->args()[j] == relu->args()[0] && ScalarValue(minimum->args()[1 - j]) == 0.0) {
        return {relu->args()[0], line.slope};
      }
    }
  }
  return {};
}

Expr SquareOf(const Expr& expr) {
  if (const CallNode* multiply = CallOf(expr, "multiply")) {
    return multiply->args()[0] == multiply->args()[1] ? multiply->args()[0] : nullptr;
  }
  const CallNode* power = CallOf(expr, "power");
  return power != nullptr && ScalarValue(power->args()[1]) == 2.0 ? power->args()[0] : nullptr;
}

}  // namespace collage::xnnpack_toolchain
