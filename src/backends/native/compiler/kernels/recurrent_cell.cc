// recurrent_cell.cc: the arithmetic of cells on the sums of their gates, as ONNX defines LSTM, GRU and RNN.
#include "backends/native/compiler/kernels/recurrent_cell.h"

#include <string>

namespace collage::native {
namespace {

/// Returns the activations of a direction that names none.
std::vector<std::string> UsualActivations(const RecurrentLayer& layer) {
  if (layer.is_lstm) return {"Sigmoid", "Tanh", "Tanh"};
  if (layer.is_gru) return {"Sigmoid", "Tanh"};
  return {"Tanh"};
}

}  // namespace

RecurrentCell::RecurrentCell(PartitionState& state, const RecurrentLayer& layer, const RecurrentMemory& memory,
                             const Buffer& y)
    : state_(state),
      e_(state.emitter),
      m_(state.math()),
      layer_(layer),
      memory_(memory),
      y_(y),
      per_direction_(UsualActivations(layer).size()),
      activations_(ActivationsOf(layer.call, UsualActivations(layer), static_cast<size_t>(layer.directions))) {}

void RecurrentCell::EmitStep(RecurrentSums& sums) {
  const auto pass = [&](const Buffer& packed, int64_t count, const Buffer& source, const auto finish) {
    sums.Emit({packed, count, source, [&](const Place& at, const Values& of_gates) { (this->*finish)(at, of_gates); }});
  };
  if (layer_.is_lstm) return pass(memory_.packed, 4, memory_.h, &RecurrentCell::FinishLstm);
  if (!layer_.is_gru) return pass(memory_.packed, 1, memory_.h, &RecurrentCell::FinishRnn);
  if (layer_.linear_before_reset) return pass(memory_.packed, 3, memory_.h, &RecurrentCell::FinishLinearGru);
  pass(memory_.packed, 2, memory_.h, &RecurrentCell::FinishUpdateAndReset);
  sums.Emit({memory_.packed_last, 1, memory_.reset, [this](const Place& at, const Values& of_gates) {
               Mix(at, e_.Load(memory_.update, Own(at)), Activate(at, 1, m_.Add(Share(at, 2), of_gates[0])));
             }});
}

// ---- cells ----

void RecurrentCell::FinishRnn(const Place& at, const Values& sums) {
  StoreOutput(at, Activate(at, 0, m_.Add(Share(at, 0), sums[0])));
}

void RecurrentCell::FinishLstm(const Place& at, const Values& sums) {
  const auto gate = [&](int64_t g) { return m_.Add(Share(at, g), sums[static_cast<size_t>(g)]); };
  const bool has_peephole = layer_.call.args().size() > 6;
  const auto peep = [&](int64_t g, const Value& x, const Value& cell) {
    if (!has_peephole) return x;
    const Value factor =
        state_.expressions.At(layer_.call.args()[6], {{at.direction, 0}, e_.Shifted(at.neuron, g * layer_.hidden)});
    return m_.FusedMultiplyAdd(factor, cell, x);
  };
  const Value old = e_.Load(memory_.c, Own(at));
  const Value input = Activate(at, 0, peep(0, gate(0), old));
  const Value forget = layer_.call.attrs().Bool("input_forget") ? m_.Subtract(m_.Like(1, input), input)
                                                                : Activate(at, 0, peep(2, gate(2), old));
  const Value cell = m_.FusedMultiplyAdd(forget, old, m_.Multiply(input, Activate(at, 1, gate(3))));
  const Value output = Activate(at, 0, peep(1, gate(1), cell));
  e_.Store(memory_.c, Own(at), cell);
  StoreOutput(at, m_.Multiply(output, Activate(at, 2, cell)));
}

void RecurrentCell::FinishLinearGru(const Place& at, const Values& sums) {
  const Value update = Activate(at, 0, m_.Add(Share(at, 0), sums[0]));
  const Value reset = Activate(at, 0, m_.Add(Share(at, 1), sums[1]));
  const int64_t bias_at = (layer_.gates + 2) * layer_.hidden;
  const Value bias = state_.expressions.At(layer_.call.args()[3], {{at.direction, 0}, e_.Shifted(at.neuron, bias_at)});
  const Value scaled = m_.Multiply(reset, m_.Add(sums[2], bias));
  Mix(at, update, Activate(at, 1, m_.Add(Share(at, 2), scaled)));
}

void RecurrentCell::FinishUpdateAndReset(const Place& at, const Values& sums) {
  e_.Store(memory_.update, Own(at), Activate(at, 0, m_.Add(Share(at, 0), sums[0])));
  const Value reset = Activate(at, 0, m_.Add(Share(at, 1), sums[1]));
  e_.Store(memory_.reset, Own(at), m_.Multiply(reset, PreviousOutput(e_, memory_, at)));
}

void RecurrentCell::Mix(const Place& at, const Value& update, const Value& candidate) {
  StoreOutput(at, m_.FusedMultiplyAdd(update, m_.Subtract(PreviousOutput(e_, memory_, at), candidate), candidate));
}

// ---- values at a place ----

Value RecurrentCell::Share(const Place& at, int64_t gate) {
  return e_.Load(memory_.shares, {{at.direction, 0}, {at.share_row, 0}, e_.Shifted(at.neuron, gate * layer_.hidden)});
}

Value RecurrentCell::Activate(const Place& at, size_t which, Value x) {
  if (!layer_.call.attrs().IsNone("clip"))
    x = m_.Limit(x, -layer_.call.attrs().Double("clip"), layer_.call.attrs().Double("clip"));
  const RecurrentActivation& first = activations_[which];
  const Value value = Apply(m_, first, x);
  if (layer_.directions == 1) return value;
  const RecurrentActivation& second = activations_[per_direction_ + which];
  if (second == first) return value;
  const Value is_second = e_.IndexCompare("eq", {at.direction, 0}, 1);
  return m_.Select(is_second, Apply(m_, second, x), value);
}

void RecurrentCell::StoreOutput(const Place& at, const Value& h) {
  e_.Store(memory_.h, {{at.to, 0}, {at.direction, 0}, {at.sequence, 0}, at.neuron}, h);
  e_.Store(y_, at.output, h);
}

}  // namespace collage::native
