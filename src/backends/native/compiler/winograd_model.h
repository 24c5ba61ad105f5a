// winograd_model.h: whether a 3x3 convolution is faster by Winograd's algorithm, by tiles of which side, and in blocks
// of how many of them: a model of the cycles that each way takes.
#pragma once

#include <cstdint>
#include <optional>

namespace collage::native {

/// A convolution of 3x3 taps with stride 1.
struct Convolution3x3 {
  int64_t images = 1;
  int64_t channels_in = 1;
  int64_t channels_out = 1;
  int64_t height = 1;  ///< of the result
  int64_t width = 1;
};

/// What the model knows of the processor and of the register tiles of products.
struct ProductMachine {
  int lanes = 8;            ///< float32 in a vector
  int64_t tile_rows = 6;    ///< of a register tile, at most
  int64_t tile_width = 16;  ///< channels of a panel
  int threads = 1;
  double near_bytes = 512 << 10;   ///< of a core's own cache
  double shared_bytes = 16 << 20;  ///< of the last level one
};

/// The caches of this machine.
ProductMachine ThisMachine(int lanes, int64_t tile_rows, int64_t tile_width, int threads);

struct WinogradPlan {
  int tile = 4;               ///< side of a tile of the result
  int64_t rows = 6;           ///< of the register tiles: tiles that are multiplied at a time
  int64_t block = 6;          ///< tiles that are transformed, multiplied and transformed back at a time
  int64_t channel_parts = 1;  ///< parts of the output channels that are different units of work
  double cycles = 0;
};

/// Cycles of the direct convolution.
double DirectCycles(const Convolution3x3& conv, const ProductMachine& machine);

/// The fastest plan with tiles of side `tile`.
WinogradPlan PlanWinograd(const Convolution3x3& conv, const ProductMachine& machine, int tile);

/// The fastest plan of all; nothing when the direct convolution is about as fast.
std::optional<WinogradPlan> ChooseWinograd(const Convolution3x3& conv, const ProductMachine& machine);

}  // namespace collage::native
