// recurrent_activations.cc: reads the activations of a recurrent layer and writes their values.
#include "backends/native/compiler/kernels/recurrent_activations.h"

#include "collage/support/error.h"

namespace collage::native {
namespace {

RecurrentActivation WithDefaults(const std::string& name) {
  if (name == "Affine") return {name, 1, 0};
  if (name == "LeakyRelu") return {name, 0.01};
  if (name == "ThresholdedRelu" || name == "Elu") return {name, 1};
  if (name == "ScaledTanh") return {name, 1, 1};
  if (name == "HardSigmoid") return {name, 0.2, 0.5};
  return {name};
}

}  // namespace

Value Apply(VectorMath& m, const RecurrentActivation& f, const Value& x) {
  const auto number = [&](double value) { return m.Like(value, x); };
  const Value zero = number(0);
  const auto is_positive = [&] { return m.Compare("oge", "sge", x, zero); };
  if (f.name == "Sigmoid") return m.Sigmoid(x);
  if (f.name == "Tanh") return m.Tanh(x);
  if (f.name == "Relu") return m.Larger(x, zero);
  if (f.name == "Affine") return m.FusedMultiplyAdd(x, number(f.alpha), number(f.beta));
  if (f.name == "LeakyRelu") return m.Select(is_positive(), x, m.Multiply(x, number(f.alpha)));
  if (f.name == "ThresholdedRelu") return m.Select(m.Compare("ogt", "sgt", x, number(f.alpha)), x, zero);
  if (f.name == "ScaledTanh") return m.Multiply(number(f.alpha), m.Tanh(m.Multiply(x, number(f.beta))));
  if (f.name == "HardSigmoid") return m.Limit(m.FusedMultiplyAdd(x, number(f.alpha), number(f.beta)), 0, 1);
  if (f.name == "Elu") return m.Select(is_positive(), x, m.Multiply(number(f.alpha), m.Subtract(m.Exp(x), number(1))));
  if (f.name == "Softsign") return m.Divide(x, m.Add(number(1), m.Abs(x)));
  if (f.name == "Softplus") {
    return m.Add(m.Log(m.Add(number(1), m.Exp(m.Negate(m.Abs(x))))), m.Larger(x, zero));
  }
  throw Error(ErrorCategory::kUnsupported, "activation '" + f.name + "'");
}

std::vector<RecurrentActivation> ActivationsOf(const CallNode& call, const std::vector<std::string>& usual,
                                               size_t directions) {
  const AttrValue::List* given = call.attrs().Get("activations").as_list();
  const auto coefficient = [&](const char* attr, size_t i, double& value) {
    const AttrValue::List* list = call.attrs().Get(attr).as_list();
    if (list == nullptr || i >= list->size() || (*list)[i].is_none()) return;
    const AttrValue& number = (*list)[i];
    value = number.as_double() != nullptr ? *number.as_double() : static_cast<double>(*number.as_int());
  };
  std::vector<RecurrentActivation> result;
  for (size_t i = 0; i < usual.size() * directions; ++i) {
    const bool is_given = given != nullptr && !given->empty();
    result.push_back(WithDefaults(is_given ? *(*given)[i].as_string() : usual[i % usual.size()]));
    coefficient("activation_alpha", i, result.back().alpha);
    coefficient("activation_beta", i, result.back().beta);
  }
  return result;
}

}  // namespace collage::native
