// schedule.h: how a partition becomes loops, as data: a few named numbers, which can be stored, tried and measured.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace collage::native {

/// The choices for the loops of one partition. A value type. The compiler's models choose fields that are 0; fields
/// that a partition has no use for have no effect.
///
///     tiles of the result, rows x panels:     | p0 | p1 | p2 |
///                                        r0..5 |  tile of registers: `rows` x `width` vectors
///                                        r6..  |  ... `block` such tiles meet one panel after the other
struct Schedule {
  enum Algorithm : int64_t { kDirect = 1, kWinograd2, kWinograd4, kStrassen, kWarpgroups };
  enum Choice : int64_t { kNo = 1, kYes };

  int64_t algorithm = 0;  ///< an `Algorithm`, for convolutions and products that have several; kWarpgroups: four warps
                          ///< of a GPU multiply together
  int64_t lanes = 0;      ///< float32 in a vector, at most what the processor has
  int64_t rows = 0;       ///< rows of a register tile: pixels of an image row, rows of a matrix, Winograd tiles
  int64_t width = 0;      ///< vectors of channels in a register tile; panels of packed weights are as wide
  int64_t unroll = 0;     ///< positions of the innermost sum that are written out; with tensor cores, eights of words
  int64_t block = 0;      ///< register tiles that meet all panels before the next ones do: the order of loops, and
                          ///< what threads share: 1 = rows outermost; at least all there are = panels outermost.
                          ///< In a depthwise convolution between 1x1 ones: rows of the result at a time
  int64_t parts = 0;      ///< groups of Winograd's output channels that are separate units of work; with tensor cores,
                          ///< parts of each sum
  int64_t parallel = 0;   ///< whether threads share the work: a `Choice`
  int64_t pack = 0;       ///< whether a right matrix that is no constant is packed, too: a `Choice`
  int64_t warps = 0;      ///< a GPU's, in a block that computes a tile with tensor cores; the tile is `rows` x `width`
  int64_t stages = 0;     ///< buffers for the words of such a tile, which are copied ahead

  bool operator==(const Schedule&) const = default;

  /// Returns the fields that are not 0, in the order above: "algorithm=winograd4,rows=6"; empty if all are 0.
  std::string ToString() const;
  /// Reads the text of ToString, with fields in any order. Throws kInput, naming the mistake and the known names.
  static Schedule Parse(std::string_view text);
  /// Whether convolutions may be computed by Winograd's algorithm: `algorithm` is unset, or names it.
  bool MayBeWinograd() const { return algorithm == 0 || algorithm == kWinograd2 || algorithm == kWinograd4; }
  /// Returns this schedule with the fields of `over` that are set in place of its own.
  Schedule With(const Schedule& over) const;
};

}  // namespace collage::native
