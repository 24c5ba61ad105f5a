// activation_lookup.cc: a gate is known by its values, not by how it is written: factors come in any order, and
// constants rounded.
#include "backends/native/compiler/emit/activation_lookup.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "collage/ir/op.h"

namespace collage::native {
namespace {

constexpr size_t kMostNodes = 24;  // GELU by tanh has 9 calls
constexpr double kBound = 1.5e-7;

using Function2 = double (*)(double a, double b);

struct Operator {
  const char* name;
  size_t arity;
  Function2 compute;
  bool is_curved = false;  ///< a gate has one of these
};
const Operator kOperators[] = {
    {"add", 2, [](double a, double b) { return a + b; }},
    {"subtract", 2, [](double a, double b) { return a - b; }},
    {"multiply", 2, [](double a, double b) { return a * b; }},
    {"divide", 2, [](double a, double b) { return a / b; }},
    {"power", 2, [](double a, double b) { return std::pow(a, b); }},
    {"erf", 1, [](double a, double) { return std::erf(a); }, /*is_curved=*/true},
    {"tanh", 1, [](double a, double) { return std::tanh(a); }, /*is_curved=*/true},
};

const Operator* OperatorOf(const Expr& expr) {
  const CallNode* call = As<CallNode>(expr);
  if (call == nullptr || call->op() == nullptr) return nullptr;
  for (const Operator& op : kOperators) {
    if (call->op()->name == op.name) return &op;
  }
  return nullptr;
}

std::optional<double> NumberOf(const Expr& expr) {
  const ConstantNode* constant = As<ConstantNode>(expr);
  if (constant == nullptr || constant->value().num_elements() != 1) return {};
  if (!constant->value().dtype().is_floating()) return {};
  return constant->value().At(0);
}

bool HasTypeOf(const Expr& a, const Expr& b) {
  const TensorTypeNode* type = AsTensorType(a->checked_type());
  const TensorTypeNode* other = AsTensorType(b->checked_type());
  return type != nullptr && other != nullptr && type->dtype() == other->dtype() &&
         type->static_shape() == other->static_shape();
}

/// An expression as a function of one value in it.
class Composed {
 public:
  /// Fails where it depends on anything else.
  static std::optional<Composed> Of(const Expr& root, const Expr& argument,
                                    const std::function<bool(const Expr&)>& is_given) {
    Composed made;
    made.slots_[argument.get()] = 0;
    made.values_.push_back(0);
    if (!made.Add(root, root, is_given)) return {};
    return made;
  }

  double operator()(double x) const {
    std::vector<double> values = values_;
    values[0] = x;
    for (const Step& step : steps_) values[step.to] = step.compute(values[step.a], values[step.b]);
    return values[steps_.back().to];
  }

 private:
  struct Step {
    Function2 compute;
    size_t to, a, b;
  };

  /// The slot of `expr`.
  std::optional<size_t> Add(const Expr& expr, const Expr& root, const std::function<bool(const Expr&)>& is_given) {
    if (const auto known = slots_.find(expr.get()); known != slots_.end()) return known->second;
    if (const std::optional<double> number = NumberOf(expr)) {
      values_.push_back(*number);
      return slots_[expr.get()] = values_.size() - 1;
    }
    const Operator* op = OperatorOf(expr);
    if (op == nullptr || is_given(expr) || !HasTypeOf(expr, root) || slots_.size() > kMostNodes) return {};
    const CallNode* call = As<CallNode>(expr);
    const std::optional<size_t> a = Add(call->args()[0], root, is_given);
    const std::optional<size_t> b = op->arity == 2 ? Add(call->args()[1], root, is_given) : a;
    if (!a || !b) return {};
    values_.push_back(0);
    steps_.push_back({op->compute, values_.size() - 1, *a, *b});
    return slots_[expr.get()] = values_.size() - 1;
  }

  std::map<const ExprNode*, size_t> slots_;
  std::vector<double> values_;  ///< slot 0 is the argument
  std::vector<Step> steps_;
};

/// g, if relu(x) + |x| g(|x|) is `f` everywhere.
std::optional<PiecewisePolynomial> PiecesOf(const Composed& f) {
  const auto is_near = [](double value, double wanted) { return std::abs(value - wanted) <= kBound; };
  constexpr int kCount = 16;
  constexpr double kWidth = 0.375;  // what is cut off behind the last but one is as large as errors before it
  for (const double far : {kCount * kWidth, 10.0, 30.0, 1e3, 1e6}) {
    if (!is_near(f(-far), 0) || !is_near(f(far), far)) return {};
  }
  // Smooth at 0, where it is read on both sides.
  const auto g = [&](double t) { return t == 0 ? f(-1e-9) / 1e-9 : f(-t) / t; };
  PiecewisePolynomial pieces = FitPieces(g, kWidth, kCount, /*degree=*/4);
  for (std::vector<double>& table : pieces.by_power) table.back() = 0;
  constexpr int kProbes = 32;  // of each piece
  for (int probe = 0; probe * kWidth / kProbes <= pieces.last(); ++probe) {
    const double t = probe * kWidth / kProbes;
    const double piece = std::nearbyint(t / kWidth);
    double at = 0;
    for (size_t power = pieces.by_power.size(); power-- > 0;) {
      at = at * (t - piece * kWidth) + pieces.by_power[power][static_cast<size_t>(piece)];
    }
    if (!is_near(f(-t), t * at) || !is_near(f(t), t + t * at)) return {};
  }
  return pieces;
}

}  // namespace

std::optional<ActivationLookup> ActivationLookups::Find(const Expr& root,
                                                        const std::function<bool(const Expr&)>& is_given) {
  const Operator* last = OperatorOf(root);
  const bool is_product =
      last != nullptr && (last->name == std::string("multiply") || last->name == std::string("divide"));
  if (!is_product || !HasTypeOf(root, root) || AsTensorType(root->checked_type())->dtype() != kFloat32) return {};
  // Its nodes, the nearest first.
  std::vector<Expr> nodes{root};
  bool is_curved = false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Operator* op = is_given(nodes[i]) ? nullptr : OperatorOf(nodes[i]);
    if (op == nullptr || !HasTypeOf(nodes[i], root)) continue;
    is_curved = is_curved || op->is_curved;
    for (const Expr& argument : As<CallNode>(nodes[i])->args()) {
      const bool is_known = NumberOf(argument) || std::find(nodes.begin(), nodes.end(), argument) != nodes.end();
      if (!is_known && nodes.size() < kMostNodes) nodes.push_back(argument);
    }
  }
  if (!is_curved) return {};
  for (size_t i = 1; i < nodes.size(); ++i) {
    if (!HasTypeOf(nodes[i], root)) continue;
    const std::optional<Composed> f = Composed::Of(root, nodes[i], is_given);
    if (!f) continue;
    auto known = known_.find({root.get(), nodes[i].get()});
    if (known == known_.end()) known = known_.emplace(std::pair(root.get(), nodes[i].get()), PiecesOf(*f)).first;
    if (known->second) return ActivationLookup{nodes[i], &*known->second};
  }
  return {};
}

}  // namespace collage::native
