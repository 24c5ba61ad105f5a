// recurrent.cc: rows of recurrent layers: ONNX's gate order and axes become those of OpenVINO's sequences.
#include <algorithm>
#include <cctype>
#include <openvino/opsets/opset13.hpp>

#include "backends/openvino/compiler/translate.h"

namespace collage::openvino {
namespace {

namespace ops = ov::opset13;
using Value = ov::Output<ov::Node>;
using Direction = ov::op::RecurrentSequenceDirection;

/// Properties of one of the three layers. `gates` is the number of gates, `order` where OpenVINO's i-th gate is in
/// ONNX's.
struct Layer {
  const OpArgs& call;
  size_t gates;
  std::vector<size_t> order;
  Direction direction = Direction::FORWARD;
  bool batch_first = false;
  size_t hidden;

  Layer(const OpArgs& op, size_t num_gates, std::vector<size_t> gate_order)
      : call(op),
        gates(num_gates),
        order(std::move(gate_order)),
        hidden(static_cast<size_t>(op.attrs.Int("hidden_size"))) {
    const std::string name = op.attrs.StringOr("direction", "forward");
    if (name == "reverse") direction = Direction::REVERSE;
    if (name == "bidirectional") direction = Direction::BIDIRECTIONAL;
    batch_first = op.attrs.IntOr("layout", 0) == 1;
  }

  size_t directions() const { return direction == Direction::BIDIRECTIONAL ? 2 : 1; }
  /// ONNX: [S, N, I]; OpenVINO: [N, S, I].
  Value Data() const { return batch_first ? call[0] : Transposed(call[0], {1, 0, 2}); }
  /// ONNX: [D, N, H]; OpenVINO: [N, D, H].
  Value State(size_t index) const { return batch_first ? call[index] : Transposed(call[index], {1, 0, 2}); }
  Value Lengths() const {
    const ov::Shape data = call[0].get_shape();
    const size_t batch = data[batch_first ? 0 : 1];
    const auto steps = static_cast<int64_t>(data[batch_first ? 1 : 0]);
    return Ints(std::vector<int64_t>(batch, steps));
  }

  /// Parts of axis 1, one per gate.
  ov::OutputVector Gates(const Value& weight, size_t count) const {
    return std::make_shared<ops::Split>(weight, Scalar(ov::element::i64, 1), count)->outputs();
  }
  Value InOrder(const ov::OutputVector& parts) const {
    ov::OutputVector ordered;
    for (size_t from : order) ordered.push_back(parts.at(from));
    return ordered.size() == 1 ? ordered[0] : Value(std::make_shared<ops::Concat>(ordered, 1));
  }
  Value Weight(size_t index) const { return InOrder(Gates(call[index], gates)); }
  /// [D, 2 * gates * H]: input biases, then recurrence biases; their sums.
  Value BiasSum(size_t index) const {
    const ov::OutputVector parts = Gates(call[index], 2 * gates);
    ov::OutputVector sums;
    for (size_t i = 0; i < gates; ++i) sums.push_back(std::make_shared<ops::Add>(parts[i], parts[gates + i]));
    return InOrder(sums);
  }

  /// OpenVINO: [N, D, S, H]; ONNX: [S, D, N, H], or [N, S, D, H].
  Value Sequence(const Value& y) const {
    return Transposed(y, batch_first ? std::vector<int64_t>{0, 2, 1, 3} : std::vector<int64_t>{2, 1, 0, 3});
  }
  Value Last(const Value& state) const { return batch_first ? state : Transposed(state, {1, 0, 2}); }

  /// Activations in lower case; both directions must have the same ones.
  std::vector<std::string> Activations(std::vector<std::string> defaults) const {
    const AttrValue* given = call.attrs.Find("activations");
    if (given == nullptr || given->as_list() == nullptr || given->as_list()->empty()) return defaults;
    std::vector<std::string> names;
    for (const AttrValue& value : *given->as_list()) {
      std::string name = value.as_string() == nullptr ? "" : *value.as_string();
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
      if (name != "sigmoid" && name != "tanh" && name != "relu")
        throw Untranslatable{"has no activation '" + name + "'"};
      names.push_back(name);
    }
    const size_t count = defaults.size();
    if (names.size() == 2 * count && !std::equal(names.begin(), names.begin() + static_cast<ptrdiff_t>(count),
                                                 names.begin() + static_cast<ptrdiff_t>(count))) {
      throw Untranslatable{"takes the same activations in both directions only"};
    }
    names.resize(count);
    return names;
  }
};

ov::OutputVector Lstm(const OpArgs& call) {
  const Layer layer(call, 4, {2, 0, 3, 1});  // ONNX: i o f c; OpenVINO: f i c o
  const auto node = std::make_shared<ov::op::v5::LSTMSequence>(
      layer.Data(), layer.State(4), layer.State(5), layer.Lengths(), layer.Weight(1), layer.Weight(2), layer.BiasSum(3),
      static_cast<int64_t>(layer.hidden), layer.direction, std::vector<float>{}, std::vector<float>{},
      layer.Activations({"sigmoid", "tanh", "tanh"}), 0.f);
  return {layer.Sequence(node->output(0)), layer.Last(node->output(1)), layer.Last(node->output(2))};
}

ov::OutputVector Gru(const OpArgs& call) {
  const Layer layer(call, 3, {0, 1, 2});  // z r h in both
  const bool reset_after = call.attrs.IntOr("linear_before_reset", 0) != 0 ||
                           (call.attrs.Has("linear_before_reset") && call.attrs.Bool("linear_before_reset"));
  Value bias = layer.BiasSum(3);
  if (reset_after) {
    // The hidden gate's recurrence bias is inside the reset product, so it stays apart.
    const ov::OutputVector parts = layer.Gates(call[3], 6);
    bias = std::make_shared<ops::Concat>(
        ov::OutputVector{std::make_shared<ops::Add>(parts[0], parts[3]), std::make_shared<ops::Add>(parts[1], parts[4]),
                         parts[2], parts[5]},
        1);
  }
  const auto node = std::make_shared<ov::op::v5::GRUSequence>(
      layer.Data(), layer.State(4), layer.Lengths(), layer.Weight(1), layer.Weight(2), bias, layer.hidden,
      layer.direction, layer.Activations({"sigmoid", "tanh"}), std::vector<float>{}, std::vector<float>{}, 0.f,
      reset_after);
  return {layer.Sequence(node->output(0)), layer.Last(node->output(1))};
}

ov::OutputVector Rnn(const OpArgs& call) {
  const Layer layer(call, 1, {0});
  const auto node = std::make_shared<ov::op::v5::RNNSequence>(
      layer.Data(), layer.State(4), layer.Lengths(), layer.Weight(1), layer.Weight(2), layer.BiasSum(3), layer.hidden,
      layer.direction, layer.Activations({"tanh"}), std::vector<float>{}, std::vector<float>{}, 0.f);
  return {layer.Sequence(node->output(0)), layer.Last(node->output(1))};
}

}  // namespace

void AddRecurrentRows(RowMap& rows) {
  rows["nn.lstm"] = Lstm;
  rows["nn.gru"] = Gru;
  rows["nn.rnn"] = Rnn;
}

}  // namespace collage::openvino
