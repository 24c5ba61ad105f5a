// recurrent.cc: recurrent layers of ONNX.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "frontend/onnx/builders.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;

struct LayerKind {
  const char* op;
  int64_t gates;
  size_t activations;  ///< per direction
  bool has_cell;
};

/// Names and coefficients of activations. ONNX lists coefficients only for activations that take them, in order.
void SetActivations(NodeContext& node, const LayerKind& kind, size_t directions, Attrs& attrs) {
  const std::vector<std::string> names = node.Strings("activations");
  if (names.empty()) return;
  if (names.size() != kind.activations * directions) {
    node.Invalid(fmt::format("{} activations where {} are wanted", names.size(), kind.activations * directions));
  }
  static const std::set<std::string> kWithAlpha{"affine",    "elu",        "hardsigmoid",
                                                "leakyrelu", "scaledtanh", "thresholdedrelu"};
  static const std::set<std::string> kWithBeta{"affine", "hardsigmoid", "scaledtanh"};
  static const char* const kNames[] = {"Affine",   "Elu",        "HardSigmoid",    "LeakyRelu",
                                       "Relu",     "ScaledTanh", "Sigmoid",        "Softplus",
                                       "Softsign", "Tanh",       "ThresholdedRelu"};
  const std::vector<double> alphas = node.Floats("activation_alpha");
  const std::vector<double> betas = node.Floats("activation_beta");
  AttrValue::List spelled;
  AttrValue::List alpha;
  AttrValue::List beta;
  size_t next_alpha = 0;
  size_t next_beta = 0;
  const auto lower = [](std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
  };
  for (const std::string& name : names) {
    const auto* known =
        std::ranges::find_if(kNames, [&](const char* candidate) { return lower(candidate) == lower(name); });
    if (known == std::end(kNames)) node.Unsupported("activation '" + name + "'");
    spelled.emplace_back(*known);
    const bool takes_alpha = kWithAlpha.contains(lower(name)) && next_alpha < alphas.size();
    const bool takes_beta = kWithBeta.contains(lower(name)) && next_beta < betas.size();
    alpha.emplace_back();
    beta.emplace_back();
    if (takes_alpha) alpha.back() = alphas[next_alpha++];
    if (takes_beta) beta.back() = betas[next_beta++];
  }
  attrs.Set("activations", std::move(spelled));
  if (next_alpha > 0) attrs.Set("activation_alpha", std::move(alpha));
  if (next_beta > 0) attrs.Set("activation_beta", std::move(beta));
}

/// Whether input `i` gives every sequence its full length, so that it says nothing.
bool AllLengthsAre(NodeContext& node, size_t i, const SymbolicSize& steps) {
  const std::optional<Sizes> lengths = node.KnownInts(i);
  return lengths && std::ranges::all_of(*lengths, [&](const SymbolicSize& length) { return length == steps; });
}

OnnxConverter Recurrent(const LayerKind& kind) {
  return [kind](NodeContext& node) -> Results {
    const Expr data = node.Input(0);
    const Sizes shape = node.SizesOf(data);
    const std::string direction = node.OneOf("direction", "forward", {"forward", "reverse", "bidirectional"});
    const int64_t directions = direction == "bidirectional" ? 2 : 1;
    const int64_t layout = node.IntWithin("layout", 0, 0, 1);
    const SymbolicSize batch = shape[layout == 1 ? 0 : 1];
    const SymbolicSize steps = shape[layout == 1 ? 1 : 0];
    const Shape weight = node.ShapeOf(node.Input(2));
    const int64_t hidden = node.PositiveInt("hidden_size", weight[2]);
    if (hidden != weight[2])
      node.Invalid(fmt::format("hidden_size is {}, the recurrence weights are of {}", hidden, weight[2]));
    const DataType dtype = node.TypeOf(data).dtype();
    const auto zeros = [&](const Sizes& wanted) -> Expr { return node.Full(MakeScalar(0, dtype), wanted); };
    const Sizes state = layout == 1 ? Sizes{batch, directions, hidden} : Sizes{directions, batch, hidden};

    std::vector<Expr> args{data, node.Input(1), node.Input(2)};
    args.push_back(node.HasInput(3) ? node.Input(3) : zeros({directions, 2 * kind.gates * hidden}));
    args.push_back(node.HasInput(5) ? node.Input(5) : zeros(state));
    if (kind.has_cell) args.push_back(node.HasInput(6) ? node.Input(6) : zeros(state));
    const bool has_lengths = node.HasInput(4) && !AllLengthsAre(node, 4, steps);
    const bool has_peephole = kind.has_cell && node.HasInput(7);
    if (has_peephole || (kind.has_cell && has_lengths)) {
      args.push_back(has_peephole ? node.Input(7) : zeros({directions, 3 * hidden}));
    }
    if (has_lengths) args.push_back(node.Input(4));

    Attrs attrs{{"hidden_size", hidden}, {"direction", direction}, {"layout", layout}};
    SetActivations(node, kind, static_cast<size_t>(directions), attrs);
    if (node.HasAttr("clip")) attrs.Set("clip", node.Float("clip", 0));
    if (kind.has_cell) attrs.Set("input_forget", node.Int("input_forget", 0) != 0);
    if (kind.gates == 3) attrs.Set("linear_before_reset", node.Int("linear_before_reset", 0) != 0);
    const Expr call = node.Op(kind.op, std::move(args), std::move(attrs));
    Results results{node.Field(call, 0), node.Field(call, 1)};
    if (kind.has_cell) results.push_back(node.Field(call, 2));
    return results;
  };
}

}  // namespace

void AddRecurrentConverters(OnnxConverters& converters) {
  converters.Add("LSTM", Recurrent({"nn.lstm", 4, 3, true}),
                 "X: float[3], W: same[3], R: same[3], B?: same[2], sequence_lens?: int[1], initial_h?: same[3], "
                 "initial_c?: same[3], P?: same[2] -> Y?, Y_h?, Y_c?");
  converters.Add("GRU", Recurrent({"nn.gru", 3, 2, false}),
                 "X: float[3], W: same[3], R: same[3], B?: same[2], sequence_lens?: int[1], initial_h?: same[3] -> "
                 "Y?, Y_h?");
  converters.Add("RNN", Recurrent({"nn.rnn", 1, 1, false}),
                 "X: float[3], W: same[3], R: same[3], B?: same[2], sequence_lens?: int[1], initial_h?: same[3] -> "
                 "Y?, Y_h?");
}

}  // namespace collage
