// winograd_memory.h: the buffers of a convolution by Winograd's algorithm: data, taps, and values between its steps.
#pragma once

#include "backends/native/compiler/convolution/convolution.h"
#include "backends/native/compiler/convolution/winograd_tiles.h"

namespace collage::native {

/// How the products of a convolution are cut: the sizes that its memory and all its steps share.
struct WinogradBlocks {
  /// `plan.block` tiles are a block, fewer where there are not so many. `num_slots` threads have memory of their own.
  WinogradBlocks(PartitionState& state, const ConvolutionGeometry& conv, const PlainConvolution& sizes,
                 const WinogradPlan& plan, int num_slots);

  WinogradTiles tiles;
  int64_t rows;           ///< tiles of a register tile
  int64_t block;          ///< tiles that go through all steps at a time
  int64_t channel_parts;  ///< parts of the output channels that are different units of work
  int64_t channels_in, channels_out;
  int64_t lanes;
  int64_t width;      ///< channels of a panel of taps
  int64_t panels;     ///< panels that the output channels fill
  bool are_in_pairs;  ///< products are those of bfloat16
  int64_t depth;      ///< input channels, or pairs of them: products are summed over these
  int64_t slots;

  int64_t NumBlocks() const { return (tiles.count + block - 1) / block; }
};

/// Buffers of one convolution. A slot belongs to the thread that works on a block:
///
///     spectrum, products  [slot][position][tile of the block][channel]
///     planes              [slot][through][down][across][lane], of the tile that is being transformed
struct WinogradMemory {
  /// Writes the stages that lay out the data channels-last where they are not, and places everything else. `taps` are
  /// the weights, [K, C, taps…], float32.
  WinogradMemory(PartitionState& state, const CallNode& call, const WinogradBlocks& blocks,
                 const PlainConvolution& sizes, const Tensor& taps);

  Buffer data;       ///< channels-last
  Buffer taps;       ///< transformed: [position][panel][C][width], or as pairs of C
  Buffer spectrum;   ///< transformed data, as products read them: pairs are described as float32
  Buffer bf16_view;  ///< the spectrum as bfloat16, as it is written, where it is in pairs
  Buffer products;   ///< spectrum times taps
  Buffer zeros;      ///< a pixel that does not exist
  Buffer pixels;     ///< addresses of the pixels of a tile at the border
  Buffer partial;    ///< A^T m of a plane of one vector
  Buffer planes;     ///< data transformed along two axes, or results along the one through memory
};

/// Reads a whole vector of float32; rows of `buffer` have room for it.
Value ReadVector(Emitter& e, const Buffer& buffer, const I64s& at);
/// Writes a whole vector of float32.
void WriteVector(Emitter& e, const Buffer& buffer, const I64s& at, const Value& value);
/// Writes a whole vector of the spectrum, rounded to bfloat16 where products are.
void WriteSpectrum(Emitter& e, const WinogradMemory& memory, const I64s& at, const Value& value);

/// Writes `body` for each number below `count`: in a loop when there are several.
void ForEachBelow(Emitter& e, int64_t count, const std::function<void(const I64&)>& body);

}  // namespace collage::native
