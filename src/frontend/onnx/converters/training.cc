// training.cc: updates of optimisers (ai.onnx.preview.training), which are plain arithmetic.
#include <fmt/format.h>

#include <functional>

#include "frontend/onnx/builders.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;

/// Arithmetic on tensors and scalars of one dtype.
class Arithmetic {
 public:
  Arithmetic(NodeContext& node, DataType dtype) : node_(node), dtype_(dtype) {}

  Expr Number(double value) { return node_.Scalar(value, dtype_); }
  Expr Add(const Expr& a, const Expr& b) { return node_.Op("add", {a, b}); }
  Expr Subtract(const Expr& a, const Expr& b) { return node_.Op("subtract", {a, b}); }
  Expr Times(const Expr& a, const Expr& b) { return node_.Op("multiply", {a, b}); }
  Expr Times(double a, const Expr& b) { return Times(Number(a), b); }
  Expr Over(const Expr& a, const Expr& b) { return node_.Op("divide", {a, b}); }
  Expr Root(const Expr& x) { return node_.Op("sqrt", {x}); }
  /// base^exponent.
  Expr Power(double base, const Expr& exponent) { return node_.Op("power", {Number(base), exponent}); }
  /// `a` where `x` is above 0, else `b`.
  Expr WherePositive(const Expr& x, const Expr& a, const Expr& b) {
    return node_.Op("where", {node_.Op("greater", {x, Number(0)}), a, b});
  }
  /// A scalar input as the dtype.
  Expr Scalar(size_t input) { return node_.Cast(node_.Reshape(node_.Input(input), Sizes()), dtype_); }

 private:
  NodeContext& node_;
  DataType dtype_;
};

/// The learning rate, the number of updates before this one, and the state of one tensor: itself, its gradient, and
/// what the optimiser keeps of it.
struct Update {
  Expr rate;
  Expr count;
  std::vector<Expr> state;
};

/// Applies `step` to each tensor; inputs are R, T, and for each part of the state all tensors, outputs for each result
/// all tensors.
OnnxConverter Optimiser(size_t num_parts, std::function<Results(NodeContext&, Arithmetic&, const Update&)> step) {
  return [num_parts, step = std::move(step)](NodeContext& node) -> Results {
    const size_t given = node.num_inputs() - 2;
    if (given == 0 || given % num_parts != 0) {
      node.Invalid(fmt::format("{} tensors, a multiple of {} is wanted", given, num_parts));
    }
    const size_t count = given / num_parts;
    std::vector<Results> updated;
    for (size_t i = 0; i < count; ++i) {
      Arithmetic math(node, node.TypeOf(node.Input(2 + i)).dtype());
      Update update{math.Scalar(0), math.Scalar(1), {}};
      for (size_t part = 0; part < num_parts; ++part) update.state.push_back(node.Input(2 + part * count + i));
      updated.push_back(step(node, math, update));
    }
    Results results;
    for (size_t j = 0; j < updated[0].size(); ++j) {
      for (const Results& one : updated) results.push_back(one[j]);
    }
    return results;
  };
}

/// The gradient with that of the squared norm of the tensor.
Expr Regularised(NodeContext& node, Arithmetic& math, const Update& update) {
  return math.Add(math.Times(node.Float("norm_coefficient", 0), update.state[0]), update.state[1]);
}

/// Duchi, Hazan, Singer, "Adaptive subgradient methods for online learning and stochastic optimization", JMLR 2011.
Results StepAdagrad(NodeContext& node, Arithmetic& math, const Update& update) {
  const Expr decay = math.Add(math.Number(1), math.Times(node.Float("decay_factor", 0), update.count));
  const Expr gradient = Regularised(node, math, update);
  const Expr squares = math.Add(update.state[2], math.Times(gradient, gradient));
  const Expr scale = math.Add(math.Root(squares), math.Number(node.Float("epsilon", 0)));
  const Expr step = math.Over(math.Times(math.Over(update.rate, decay), gradient), scale);
  return {math.Subtract(update.state[0], step), squares};
}

/// Kingma, Ba, "Adam: a method for stochastic optimization", ICLR 2015.
Results StepAdam(NodeContext& node, Arithmetic& math, const Update& update) {
  const double alpha = node.Float("alpha", 0.9), beta = node.Float("beta", 0.999);
  const Expr gradient = Regularised(node, math, update);
  const Expr mean = math.Add(math.Times(alpha, update.state[2]), math.Times(1 - alpha, gradient));
  const Expr squares =
      math.Add(math.Times(beta, update.state[3]), math.Times(1 - beta, math.Times(gradient, gradient)));
  const Expr scale = math.Add(math.Root(squares), math.Number(node.Float("epsilon", 0)));
  const Expr one = math.Number(1);
  const Expr unbiased = math.Over(math.Root(math.Subtract(one, math.Power(beta, update.count))),
                                  math.Subtract(one, math.Power(alpha, update.count)));
  const Expr rate = math.WherePositive(update.count, math.Times(update.rate, unbiased), update.rate);
  const Expr moved = math.Subtract(update.state[0], math.Over(math.Times(rate, mean), scale));
  return {math.Times(1 - node.Float("norm_coefficient_post", 0), moved), mean, squares};
}

Results StepMomentum(NodeContext& node, Arithmetic& math, const Update& update) {
  const double alpha = node.Float("alpha", 0);
  const bool is_nesterov = node.OneOf("mode", "standard", {"standard", "nesterov"}) == "nesterov";
  const Expr gradient = Regularised(node, math, update);
  const Expr beta = math.WherePositive(update.count, math.Number(node.Float("beta", 1)), math.Number(1));
  const Expr momentum = math.Add(math.Times(alpha, update.state[2]), math.Times(beta, gradient));
  const Expr direction = is_nesterov ? math.Add(gradient, math.Times(alpha, momentum)) : momentum;
  return {math.Subtract(update.state[0], math.Times(update.rate, direction)), momentum};
}

}  // namespace

void AddTrainingConverters(OnnxConverters& converters) {
  const auto add = [&](const std::string& op, OnnxConverter convert) {
    converters.Add("ai.onnx.preview.training." + op, std::move(convert),
                   "R: float[0..1], T: int[0..1], inputs+: float -> outputs+");
  };
  add("Adagrad", Optimiser(3, StepAdagrad));
  add("Adam", Optimiser(4, StepAdam));
  add("Momentum", Optimiser(3, StepMomentum));
}

}  // namespace collage
