// recurrent.cc: recurrent layers, whose gates are ordered as ONNX orders them.
#include <map>

#include "frontend/onnx_export/exporter.h"

namespace collage {
namespace {

/// Coefficients of activations that take them, where the standard gives none.
struct Coefficients {
  double alpha;
  bool has_beta;
  double beta;
};
const std::map<std::string, Coefficients>& Defaults() {
  static const std::map<std::string, Coefficients> defaults{
      {"Affine", {1, true, 0}},        {"Elu", {1, false, 0}},       {"HardSigmoid", {0.2, true, 0.5}},
      {"LeakyRelu", {0.01, false, 0}}, {"ScaledTanh", {1, true, 1}}, {"ThresholdedRelu", {1, false, 0}}};
  return defaults;
}

double NumberOr(const AttrValue* list, size_t i, double fallback) {
  if (list == nullptr || list->as_list() == nullptr || i >= list->as_list()->size()) return fallback;
  const AttrValue& value = list->as_list()->at(i);
  if (value.as_double() != nullptr) return *value.as_double();
  return value.as_int() != nullptr ? static_cast<double>(*value.as_int()) : fallback;
}

/// ONNX lists coefficients only for activations that take them, in order.
void SetActivations(OnnxExportCall& call, Attrs& attributes) {
  const AttrValue& names = call.attrs().Get("activations");
  if (names.is_none()) return;
  AttrValue::List alphas;
  AttrValue::List betas;
  for (size_t i = 0; i < names.as_list()->size(); ++i) {
    const auto it = Defaults().find(*names.as_list()->at(i).as_string());
    if (it == Defaults().end()) continue;
    alphas.emplace_back(NumberOr(call.attrs().Find("activation_alpha"), i, it->second.alpha));
    if (it->second.has_beta) betas.emplace_back(NumberOr(call.attrs().Find("activation_beta"), i, it->second.beta));
  }
  attributes.Set("activations", names);
  if (!alphas.empty()) attributes.Set("activation_alpha", std::move(alphas));
  if (!betas.empty()) attributes.Set("activation_beta", std::move(betas));
}

OnnxExportRow Recurrent(const char* onnx, bool has_cell, bool has_reset) {
  return [onnx, has_cell, has_reset](OnnxExportCall& call) {
    const Attrs& attrs = call.attrs();
    const AttrValue& clip = attrs.Get("clip");
    Attrs attributes{{"hidden_size", attrs.Int("hidden_size")},
                     {"direction", attrs.String("direction")},
                     {"layout", attrs.Int("layout") == 0 ? AttrValue() : AttrValue(attrs.Int("layout"))},
                     {"clip", clip.is_none() ? AttrValue() : AttrValue(attrs.Double("clip"))}};
    SetActivations(call, attributes);
    if (has_cell) attributes.Set("input_forget", attrs.Bool("input_forget"));
    if (has_reset) attributes.Set("linear_before_reset", attrs.Bool("linear_before_reset"));
    // data, weights, recurrence, bias, lengths, initial hidden, initial cell, peephole.
    const auto arg = [&](size_t i) { return i < call.num_args() ? call.Arg(i) : std::string(); };
    const size_t lengths = has_cell ? 7 : 5;
    std::string lengths_name;
    if (lengths < call.num_args()) lengths_name = call.Cast(call.Arg(lengths), call.DTypeOf(lengths), kInt32);
    OnnxNames inputs{call.Arg(0), call.Arg(1), call.Arg(2), call.Arg(3), lengths_name, call.Arg(4)};
    if (has_cell) {
      inputs.push_back(call.Arg(5));
      inputs.push_back(arg(6));
    }
    return call.NodeWithResults(onnx, inputs, attributes, has_cell ? 3 : 2);
  };
}

}  // namespace

void AddRecurrentRows(OnnxExportRows& rows) {
  rows["nn.lstm"] = Recurrent("LSTM", /*has_cell=*/true, /*has_reset=*/false);
  rows["nn.gru"] = Recurrent("GRU", /*has_cell=*/false, /*has_reset=*/true);
  rows["nn.rnn"] = Recurrent("RNN", /*has_cell=*/false, /*has_reset=*/false);
}

}  // namespace collage
