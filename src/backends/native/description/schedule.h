// schedule.h: how loops are made of a partition, as data: a few named numbers that can be written down, tried and
// compared by the clock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace collage::native {

/// A value. The compiler's models choose fields that are 0; fields that a partition has no use for have no effect.
///
///     tiles of the result, rows x panels:     | p0 | p1 | p2 |
///                                        r0..5 |  tile of registers: `rows` x `width` vectors
///                                        r6..  |  ... `block` such tiles meet one panel after the other
struct Schedule {
  enum Algorithm : int64_t { kDirect = 1, kWinograd2, kWinograd4, kStrassen };
  enum Choice : int64_t { kNo = 1, kYes };

  int64_t algorithm = 0;  ///< an `Algorithm`, for convolutions and products that have several
  int64_t lanes = 0;      ///< float32 in a vector, at most what the processor has
  int64_t rows = 0;       ///< rows of a register tile: pixels of an image row, rows of a matrix, Winograd tiles
  int64_t width = 0;      ///< vectors of channels in a register tile; panels of packed weights are as wide
  int64_t unroll = 0;     ///< positions of the innermost sum that are written out
  int64_t block = 0;      ///< register tiles that meet all panels before the next ones do: the order of loops, and
                          ///< what threads share: 1 = rows outermost; at least all there are = panels outermost.
                          ///< In a depthwise convolution between 1x1 ones: rows of the result at a time
  int64_t parts = 0;      ///< groups of Winograd's output channels that are separate units of work
  int64_t parallel = 0;   ///< whether threads share the work: a `Choice`
  int64_t pack = 0;       ///< whether a right matrix that is no constant is packed, too: a `Choice`

  bool operator==(const Schedule&) const = default;

  /// "algorithm=winograd4,rows=6": what is not 0, in the order above; empty for the models' own.
  std::string ToString() const;
  /// Reads what ToString writes, in any order. Throws kInput, naming what is wrong with it, and what there is.
  static Schedule Parse(std::string_view text);
  /// Whether convolutions may be computed by Winograd's algorithm: it, or no other, is told.
  bool MayBeWinograd() const { return algorithm != kDirect && algorithm != kStrassen; }
  /// This one, with what `over` says instead where it says something.
  Schedule With(const Schedule& over) const;
};

}  // namespace collage::native
