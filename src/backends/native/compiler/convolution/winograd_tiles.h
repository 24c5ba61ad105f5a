// winograd_tiles.h: how tiles cover the result of a convolution by Winograd's algorithm, and which data each one reads.
#pragma once

#include <array>

#include "backends/native/compiler/convolution/geometry.h"
#include "backends/native/compiler/emit/emitter.h"
#include "backends/native/description/winograd_model.h"

namespace collage::native {

/// An i64 value for each axis.
using WinogradPoint = std::array<I64, kAxes>;

/// The tiles of one convolution.
///
/// Convolutions over one, two and three axes all have three axes here. An axis that a convolution lacks, or along which
/// it has one tap, has tiles of one result and is not transformed. The last axis that is transformed is `across`, the
/// one before it `down`; the third one is `through`. A tile has `side` positions along each axis, numbered row-major:
///
///     F(4x4, 3x3), one axis of it:   data     . . . . . .        side 6, from first - pad on
///                                    result     . . . .          tile 4, from first on
struct WinogradTiles {
  WinogradTiles(const ConvolutionGeometry& conv, const PlainConvolution& sizes, const PerAxis& tile_sides);

  /// The position of a tile in the result.
  struct Place {
    I64 image;
    WinogradPoint number;  ///< the tile's, along each axis
    WinogradPoint first;   ///< its first result
  };

  AxisTransforms transforms;
  int64_t positions;  ///< in a tile
  PerAxis tile;       ///< results of a tile
  PerAxis side{1, 1, 1};
  PerAxis along{1, 1, 1};  ///< tiles along each axis
  PerAxis result;
  PerAxis length{1, 1, 1};  ///< size of the data
  PerAxis pad{0, 0, 0};     ///< zeros before the data
  int64_t images;
  int64_t count;      ///< tiles of all images
  size_t first_axis;  ///< the convolution's own axes begin there
  size_t through = 0, down = 1, across = 2;

  /// Returns the place of the tile with number `number` of all.
  Place PlaceOf(Emitter& e, const I64& number) const;
  /// Returns the number of a position from its steps along the three axes.
  I64 PositionOf(Emitter& e, const I64& steps_through, const I64& steps_down, const I64& steps_across) const;
  /// Returns the number of a tile's results along `axis` that exist: the last tile may reach beyond the result.
  I64 ResultsOf(Emitter& e, const Place& place, size_t axis) const;
  /// Whether no tile reads beyond the data along `axis`.
  bool IsAlwaysInside(size_t axis) const {
    return pad[axis] == 0 && (along[axis] - 1) * tile[axis] + side[axis] <= length[axis];
  }
  /// Returns the indices, in the data or the result, of a vector of `lanes` channels of a pixel.
  Indices PixelAt(const I64& image, const I64& channel, const WinogradPoint& point, int64_t lanes) const;
};

}  // namespace collage::native
