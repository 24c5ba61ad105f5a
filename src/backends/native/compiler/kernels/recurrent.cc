// recurrent.cc: nn.lstm, nn.gru and nn.rnn. The inputs' share of all gates at all times is one product ahead. Then,
// step by step, the last output is multiplied with the recurrence (recurrent_sums), and the gates are computed in
// registers (recurrent_cell).
#include "backends/native/compiler/kernels/recurrent.h"

#include "backends/native/compiler/kernels/recurrent_cell.h"
#include "backends/native/compiler/kernels/recurrent_weights.h"
#include "backends/native/compiler/stages/elements.h"

namespace collage::native {
namespace {

/// Writes the stages that set the state before the first step, and places what steps need beside it.
void EmitFirstState(PartitionState& state, const RecurrentLayer& layer, RecurrentMemory& memory) {
  const auto fill = [&](const Buffer& buffer, size_t argument) {
    EmitElements(state, buffer, [&](const Indices& at) {
      return state.expressions.At(layer.call.args()[argument], layer.StateIndices(at));
    });
  };
  memory.h = state.AddWorkspace({2, layer.directions, layer.batch, layer.hidden}, Layout::kPlain);
  memory.counter = state.AddWorkspace({1}, Layout::kPlain, kInt64);
  Buffer first = memory.h;
  first.shape = layer.StateShape();
  fill(first, 4);
  if (!layer.is_lstm) return;
  memory.c = state.AddWorkspace(layer.StateShape(), Layout::kPlain);
  fill(memory.c, 5);
}

void PackRows(PartitionState& state, const RecurrentLayer& layer, RecurrentMemory& memory) {
  if (layer.is_lstm) {
    memory.packed = PackRecurrence(state, layer, {0, 1, 2, 3});
  } else if (!layer.is_gru) {
    memory.packed = PackRecurrence(state, layer, {0});
  } else if (layer.linear_before_reset) {
    memory.packed = PackRecurrence(state, layer, {0, 1, 2});
  } else {
    memory.packed = PackRecurrence(state, layer, {0, 1});
    memory.packed_last = PackRecurrence(state, layer, {2});
    memory.update = state.AddWorkspace(layer.StateShape(), Layout::kPlain);
    memory.reset = state.AddWorkspace(layer.StateShape(), Layout::kPlain);
  }
}

void EmitSteps(PartitionState& state, const RecurrentLayer& layer, const RecurrentMemory& memory, const Buffer& y) {
  // A thread alone takes all steps of one direction, then the other's: half as many weights are read again in each
  // step, and more of them stay in its cache. Several threads share the neurons of both directions.
  const int64_t at_once = state.num_threads > 1 ? layer.directions : 1;
  RecurrentCell cell(state, layer, memory, y);
  for (int64_t direction = 0; direction < layer.directions; direction += at_once) {
    RecurrentSums sums(state, layer, memory, direction, at_once);
    state.emitter.CallRepeatedly(layer.steps, memory.counter, [&] { cell.EmitStep(sums); });
  }
}

/// Copies a state into its result.
void EmitState(PartitionState& state, const RecurrentLayer& layer, const Buffer& result, const Buffer& from,
               int64_t parity) {
  Emitter& e = state.emitter;
  EmitElements(state, result, [&](const Indices& at) {
    const Indices own = layer.batch_first ? Indices{at[1], at[0], at[2]} : at;
    return e.Load(from, {{e.Int(parity), 0}, own[0], own[1], own[2]});
  });
}

}  // namespace

void EmitRecurrent(PartitionState& state, const CallNode& call, const std::vector<Buffer>& outputs) {
  const RecurrentLayer layer(call);
  RecurrentMemory memory;
  memory.shares = EmitInputShare(state, layer);
  EmitFirstState(state, layer, memory);
  if (layer.lengths != nullptr) {
    EmitElements(state, outputs[0], [&](const Indices&) { return state.math().Number(0, ElementKind::kFloat); });
  }
  PackRows(state, layer, memory);
  EmitSteps(state, layer, memory, outputs[0]);
  EmitState(state, layer, outputs[1], memory.h, layer.steps % 2);
  if (layer.is_lstm) EmitState(state, layer, outputs[2], memory.c, 0);
}

}  // namespace collage::native
