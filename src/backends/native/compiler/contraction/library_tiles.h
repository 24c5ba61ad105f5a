// library_tiles.h: tiles of products that a library computes (target option `libs`). Generated code computes the
// epilogue of a tile at once, while the tile is in the nearest cache:
//
//     for each tile:  call f(B, A, tile)      the library's, made for these sizes when the kernel is loaded
//                     for each row of it:     bias, activation, residual … → result
//
// Where nothing follows, the library writes into the result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "backends/native/compiler/contraction/contraction.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "collage/runtime/micro_kernels.h"

namespace collage::native {

class LibraryTiles {
 public:
  /// Nothing where the target names no library, or none has functions for all tiles of `form`. `vectors`: of a panel.
  /// All must outlive it.
  static std::optional<LibraryTiles> For(PartitionState& state, const Contraction& form, const StageOutput& output,
                                         int vectors);

  /// Rows of a tile; the last one may have fewer.
  int64_t rows() const { return rows_; }

  /// Writes, at the beginning of a function, the memory of its tile.
  void Begin();
  /// Writes where the emitter stands one tile: `rows` rows from `row` times the first `width` channels of `panel`.
  void Emit(const I64s& outer, const I64& row, int64_t rows, const I64& panel, int64_t width);

 private:
  LibraryTiles(PartitionState& state, const Contraction& form, const StageOutput& output, int vectors);

  TileProduct TileOf(int64_t rows, int64_t width, bool adds) const;
  /// Whether `library` makes functions for all sizes of tiles.
  bool HasAll(const CalledLibrary& library) const;
  void Multiply(const I64s& outer, const I64& row, int64_t rows, const I64& panel, int64_t width, const Ptr& result);
  void Call(const TileProduct& tile, const Ptr& a, const Ptr& b, const Ptr& c);
  void StoreTile(const I64s& outer, const I64& row, int64_t rows, const I64& channel, int64_t width);

  PartitionState* state_;
  const Contraction* form_;
  const StageOutput* output_;
  const CalledLibrary* library_ = nullptr;
  const MicroKernel* kernel_ = nullptr;
  int64_t panel_width_;
  int64_t rows_;
  bool transposes_a_;
  bool is_direct_;  ///< whether tiles are parts of the result
  Ptr tile_;        ///< their memory where they are not
};

}  // namespace collage::native
