// winograd_model.h: a model of the cycles that a convolution takes, directly and by Winograd's algorithm. It chooses
// the algorithm, the sides of the tiles, and the number of tiles in a block.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "backends/native/description/options.h"
#include "backends/native/description/winograd_transforms.h"

namespace collage::native {

/// A number for each axis: depth, height, width.
using PerAxis = std::array<int64_t, kAxes>;

/// A convolution with stride 1, no dilation and no groups.
struct PlainConvolution {
  int64_t images = 1;
  int64_t channels_in = 1;
  int64_t channels_out = 1;
  PerAxis result{1, 1, 1};
  PerAxis taps{1, 3, 3};
  bool in_bfloat16 = false;  ///< whether products are of bfloat16, added up in pairs; all else is float32

  int64_t num_taps() const { return taps[0] * taps[1] * taps[2]; }
  int64_t pixels() const { return images * result[0] * result[1] * result[2]; }
};

/// The processor and the register tiles of products, as the model sees them.
struct ProductMachine {
  int lanes = 8;            ///< float32 in a vector
  int units = 2;            ///< vectors that are multiplied and added in a cycle
  int64_t tile_rows = 6;    ///< most rows of a register tile
  int64_t tile_width = 16;  ///< channels of a panel
  int threads = 1;
  double near_bytes = 512 << 10;   ///< size of a core's own cache
  double shared_bytes = 16 << 20;  ///< size of the last level cache
};

/// The caches of this machine.
ProductMachine ThisMachine(int lanes, int units, int64_t tile_rows, int64_t tile_width, int threads);

struct WinogradPlan {
  PerAxis tile{1, 4, 4};      ///< sides of a tile of the result; 1 on axes of one tap
  int64_t rows = 6;           ///< rows of the register tiles: tiles that are multiplied at a time
  int64_t block = 6;          ///< tiles that are transformed, multiplied and transformed back at a time
  int64_t channel_parts = 1;  ///< parts of the output channels that are different units of work
  double cycles = 0;
};

/// The transforms of tiles of `tile` results, which must exist.
AxisTransforms TransformsOf(const PlainConvolution& conv, const PerAxis& tile);

/// Whether there are transforms for the taps, and something to transform.
bool HasWinograd(const PlainConvolution& conv);

/// Whether rounding errors with these tiles stay within the largest amplification allowed.
bool IsWithinBounds(const PlainConvolution& conv, const PerAxis& tile);

/// Whether the model may pick these tiles by default. In bfloat16 the error bound is tighter.
bool MayBeChosen(const PlainConvolution& conv, const PerAxis& tile);

/// Returns all tiles that the model may pick by default.
std::vector<PerAxis> PossibleTiles(const PlainConvolution& conv);

/// Returns the side of tiles along each axis for an algorithm of schedules.
int64_t SideOf(int64_t algorithm);

/// Returns the sides of tiles that `options` ask for, in the form that TilesTold takes; 0 if they ask for none.
int64_t ToldSides(const NativeOptions& options);

/// Returns the sides by axis for `told`, the value of a target option: its digits belong to the last axes, and the
/// first digit also to the axes before.
PerAxis TilesTold(const PlainConvolution& conv, int64_t told);

/// Tiles with such sides that cover the result.
int64_t NumTiles(const PlainConvolution& conv, const PerAxis& tile);

/// Cycles of the direct convolution.
double DirectCycles(const PlainConvolution& conv, const ProductMachine& machine);

/// The fastest plan with tiles of those sides.
WinogradPlan PlanWinograd(const PlainConvolution& conv, const ProductMachine& machine, const PerAxis& tile);

/// Returns the fastest plan of all that may be chosen; nothing if the direct convolution is about as fast. An odd
/// number of channels in bfloat16 has no direct convolution.
std::optional<WinogradPlan> ChooseWinograd(const PlainConvolution& conv, const ProductMachine& machine);

}  // namespace collage::native
