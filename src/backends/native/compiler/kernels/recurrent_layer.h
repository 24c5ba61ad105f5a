// recurrent_layer.h: a call of nn.lstm, nn.gru or nn.rnn: sizes, order of dimensions, and buffers.
#pragma once

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

/// Sizes and attributes of one layer. `call`, which must outlive it, has the arguments data, weight, recurrence,
/// biases, first output, and for an LSTM first cell and peepholes; the last one may be the lengths of the sequences.
struct RecurrentLayer {
  explicit RecurrentLayer(const CallNode& layer);

  const CallNode& call;
  bool is_lstm, is_gru;
  bool batch_first;                  ///< data are [N, S, F], not [S, N, F]
  bool linear_before_reset = false;  ///< whether a GRU resets behind the product
  bool is_reverse = false;           ///< has one direction, which goes backward
  int64_t steps, batch, features, hidden;
  int64_t directions;
  int64_t gates;
  Expr lengths;  ///< by sequence; null: all have all steps

  /// Returns the indices of a state argument, [D, N, H] or [N, D, H], from [parity, D, N, H].
  Indices StateIndices(const Indices& at) const {
    return batch_first ? Indices{at[2], at[1], at[3]} : Indices{at[1], at[2], at[3]};
  }
  /// Returns the shape of a state in memory: one half of it.
  Shape StateShape() const { return {1, directions, batch, hidden}; }
};

/// The buffers of one layer.
struct RecurrentMemory {
  Buffer shares;       ///< [D, row of the data, gate * H + neuron]: weight . x + biases
  Buffer h;            ///< [parity, D, N, H]: steps read one half of the outputs and write the other
  Buffer c;            ///< [1, D, N, H]: cells of an LSTM
  Buffer counter;      ///< number of the step
  Buffer packed;       ///< rows of the recurrence (PackRecurrence)
  Buffer packed_last;  ///< rows of the last gate of a GRU that resets before the product
  Buffer update;       ///< [1, D, N, H]: such a GRU's update gate
  Buffer reset;        ///< [1, D, N, H]: its last output times its reset gate
};

}  // namespace collage::native
