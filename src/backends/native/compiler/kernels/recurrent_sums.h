// recurrent_sums.h: the product of one step of a recurrent layer: the last output times the packed rows of gates.
#pragma once

#include <functional>
#include <vector>

#include "backends/native/compiler/kernels/recurrent_layer.h"

namespace collage::native {

/// The place of one vector of neurons of one sequence at a step.
struct RecurrentPlace {
  I64 direction;
  I64 sequence;
  Index neuron;
  I64 share_row;   ///< row of the shares
  Indices output;  ///< in Y
  I64 from, to;    ///< halves of h
  I1 is_running;   ///< whether the sequence is still going; none: always
};

/// Returns the output of the last step at a place.
Value PreviousOutput(Emitter& e, const RecurrentMemory& memory, const RecurrentPlace& at);

/// One pass over all neurons: `source`, an output or a product with it, times the packed rows of `count` gates.
struct RecurrentPass {
  const Buffer& packed;
  int64_t count;
  const Buffer& source;
  /// Gets the sums of all gates of a vector of neurons.
  std::function<void(const RecurrentPlace& at, const std::vector<Value>& sums)> finish;
};

/// Writes passes, each a stage, for `at_once` directions from `first_direction` on. All references must outlive it.
class RecurrentSums {
 public:
  RecurrentSums(PartitionState& state, const RecurrentLayer& layer, const RecurrentMemory& memory,
                int64_t first_direction, int64_t at_once)
      : state_(state),
        e_(state.emitter),
        m_(state.math()),
        layer_(layer),
        memory_(memory),
        first_direction_(first_direction),
        at_once_(at_once) {}

  void Emit(const RecurrentPass& pass);

 private:
  /// A vector of neurons at one step.
  struct Block {
    I64 step;
    I64 direction;
    I64 number;
    int64_t rest;  ///< neurons of the block if it is not whole, else 0
  };
  /// Sequences that are computed at a time.
  struct Rows {
    I64 first;
    int64_t count;
  };

  void EmitBlocks(const RecurrentPass& pass, int64_t first, int64_t blocks, int64_t rest);
  void EmitBlock(const RecurrentPass& pass, const Block& block);
  void EmitRows(const RecurrentPass& pass, const Block& block, const Rows& rows);
  /// Returns the sums of all gates of each row, one row after the other, over half `half` of the source.
  std::vector<Value> Multiply(const RecurrentPass& pass, const Block& block, const Rows& rows, const I64& half);
  /// Finishes the rows that run, and keeps the output of all others.
  void Finish(const RecurrentPass& pass, const RecurrentPlace& at, const std::vector<Value>& sums);
  RecurrentPlace PlaceOf(const Block& block, const I64& sequence);

  PartitionState& state_;
  Emitter& e_;
  VectorMath& m_;
  const RecurrentLayer& layer_;
  const RecurrentMemory& memory_;
  int64_t first_direction_;
  int64_t at_once_;
};

}  // namespace collage::native
