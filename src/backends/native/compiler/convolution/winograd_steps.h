// winograd_steps.h: the three steps that a block of tiles goes through in Winograd's algorithm, each written where the
// emitter stands:
//
//     data [N, C, H, W] -> spectrum [position][tile][C] x taps [position][C][K] -> products [position][tile][K] ->
//     result
#pragma once

#include <functional>
#include <vector>

#include "backends/native/compiler/convolution/winograd_memory.h"
#include "backends/native/compiler/emit/matrix_writer.h"

namespace collage::native {

/// The things that every step needs: references, which outlive it, and the slot of the thread that works on the block.
struct WinogradStep {
  PartitionState& state;
  const WinogradBlocks& blocks;
  const WinogradMemory& memory;
  I64 slot;
};

/// Transforms data into the spectrum: B^T d along each axis, in vectors of channels.
class WinogradInput {
 public:
  explicit WinogradInput(const WinogradStep& step)
      : e_(step.state.emitter),
        matrices_(step.state.math()),
        blocks_(step.blocks),
        tiles_(step.blocks.tiles),
        memory_(step.memory),
        slot_(step.slot) {}

  /// Transforms `count` tiles from number `first` on.
  void Emit(const I64& first, const I64& count);

 private:
  /// Gives the data at a point of the tile, counted from its first.
  using Loader = std::function<Value(const WinogradPoint& at, const I64& channel)>;

  void EmitTile(const I64& tile, const I64& number);
  /// Notes the address of each pixel of a tile whose first one is `from`, that of zeros where there is none.
  void NotePixels(const I64& image, const WinogradPoint& from);
  /// B^T d along all axes, of all channels.
  void Transform(const I64& tile, const Loader& load);
  /// B^T d B of a plane of the tile.
  void TransformPlane(const I64& through, const I64& channel, const Loader& load,
                      const std::function<void(const I64&, const I64&, const Value&)>& store);

  Emitter& e_;
  MatrixWriter matrices_;
  const WinogradBlocks& blocks_;
  const WinogradTiles& tiles_;
  const WinogradMemory& memory_;
  I64 slot_;
};

/// Multiplies the spectrum with the taps: a matrix product for each position within a tile, in register tiles.
class WinogradProducts {
 public:
  explicit WinogradProducts(const WinogradStep& step)
      : state_(step.state),
        e_(step.state.emitter),
        blocks_(step.blocks),
        memory_(step.memory),
        slot_(step.slot),
        form_(Form()) {}

  /// Multiplies the first `count` tiles of the block, for one part of the output channels.
  void Emit(const I64& count, const I64& part);

 private:
  Contraction Form();
  /// Multiplies with the first `num_vectors` vectors of a panel.
  void EmitPanel(const I64& register_tiles, const I64& position, const I64& panel, int64_t num_vectors);

  PartitionState& state_;
  Emitter& e_;
  const WinogradBlocks& blocks_;
  const WinogradMemory& memory_;
  I64 slot_;
  Contraction form_;
};

/// Transforms products into results, A^T m along each axis, and stores their epilogue.
class WinogradOutput {
 public:
  WinogradOutput(const WinogradStep& step, const StageOutput& output)
      : state_(step.state),
        e_(step.state.emitter),
        matrices_(step.state.math()),
        output_(output),
        blocks_(step.blocks),
        tiles_(step.blocks.tiles),
        memory_(step.memory),
        slot_(step.slot) {}

  /// Transforms `count` tiles from number `first` on, for one part of the output channels.
  void Emit(const I64& first, const I64& count, const I64& part);

 private:
  using Place = WinogradTiles::Place;
  /// Gives the product at a position of the tile.
  using Loader = std::function<Value(const I64& through, const I64& down, const I64& across)>;

  /// A^T m along all axes, m the products of a vector of channels.
  void StoreTile(const I64& tile, const Place& place, const I64& channel);
  /// A^T m A of plane `through` of the tile, one row after the other.
  void StorePlane(const Place& place, const I64& channel, const I64& through, const Loader& load);
  /// Stores a row of results, those that exist. `at` lacks the coordinate across.
  void StoreRow(const Place& place, const I64& channel, WinogradPoint at, const std::vector<Value>& results);

  PartitionState& state_;
  Emitter& e_;
  MatrixWriter matrices_;
  const StageOutput& output_;
  const WinogradBlocks& blocks_;
  const WinogradTiles& tiles_;
  const WinogradMemory& memory_;
  I64 slot_;
};

/// Returns the first panel of a part of the output channels, or of the one behind it.
I64 FirstPanel(Emitter& e, const WinogradBlocks& blocks, const I64& part);

}  // namespace collage::native
