// recurrent_cell.h: the gates of LSTM, GRU and plain recurrent cells.
#pragma once

#include <vector>

#include "backends/native/compiler/kernels/recurrent_activations.h"
#include "backends/native/compiler/kernels/recurrent_sums.h"

namespace collage::native {

/// Writes one step of a layer. All references must outlive it.
class RecurrentCell {
 public:
  /// `y` is the buffer of all outputs.
  RecurrentCell(PartitionState& state, const RecurrentLayer& layer, const RecurrentMemory& memory, const Buffer& y);

  /// Writes the stages of a step, for the directions of `sums`.
  void EmitStep(RecurrentSums& sums);

 private:
  using Values = std::vector<Value>;
  using Place = RecurrentPlace;

  /// h = f(share + sum).
  void FinishRnn(const Place& at, const Values& sums);
  /// Gates i o f c; peepholes i o f.
  void FinishLstm(const Place& at, const Values& sums);
  /// Gates z r h, where the reset scales the product.
  void FinishLinearGru(const Place& at, const Values& sums);
  /// Stores the update gate, and the last output times the reset gate, which the last gate multiplies.
  void FinishUpdateAndReset(const Place& at, const Values& sums);
  /// h = (1 - update) * candidate + update * h.
  void Mix(const Place& at, const Value& update, const Value& candidate);

  /// Returns the indices of a place in a buffer of one half.
  Indices Own(const Place& at) { return {{e_.Int(0), 0}, {at.direction, 0}, {at.sequence, 0}, at.neuron}; }
  Value Share(const Place& at, int64_t gate);
  /// Writes activation `which` of x, clipped first if the layer clips, by direction.
  Value Activate(const Place& at, size_t which, Value x);
  void StoreOutput(const Place& at, const Value& h);

  PartitionState& state_;
  Emitter& e_;
  VectorMath& m_;
  const RecurrentLayer& layer_;
  const RecurrentMemory& memory_;
  const Buffer& y_;
  size_t per_direction_;  ///< activations of a direction
  std::vector<RecurrentActivation> activations_;
};

}  // namespace collage::native
