// schedule_space.h: which schedules a partition has beside the one that it was compiled by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/native/description/schedule.h"

namespace collage::native {

/// A product as it was compiled, noted while its loops are written.
struct ProductSpace {
  Schedule chosen;              ///< rows, width, block, and parts of Winograd's: what the models or the schedule said
  double flops = 0;             ///< the largest product of a partition is what it is tuned for
  int64_t rows = 1;             ///< consecutive rows
  int64_t channels = 1;         ///< vectors are along these
  int64_t chains = 1;           ///< sums of a register tile that are apart in any case
  int64_t depth = 1;            ///< length of the innermost sum
  int64_t tiles = 1;            ///< register tiles of a panel
  std::vector<int64_t> blocks;  ///< allowed values of `block`, ascending; empty: 1 to `tiles`
  int64_t row_bytes = 0;        ///< bytes of the data of a register tile
  int lanes = 8;                ///< elements of a vector
  int registers = 1;            ///< registers that a vector takes
  int64_t block_bytes = 0;      ///< memory that a GPU's block shares at most, if blocks compute it; else 0
  int64_t steps = 1;            ///< steps of a sum, in such blocks
  bool may_group = false;       ///< whether groups of four warps can multiply in such blocks
  bool is_winograd = false;
  bool has_width = true;    ///< whether `width` means anything: not where vectors are along groups
  bool has_block = true;    ///< whether `block` means anything
  bool may_pack = false;    ///< whether its right matrix is neither constant nor packed
  bool is_library = false;  ///< whether a library computes its tiles
};

/// The choices of schedules that a partition has, noted while it is compiled.
struct ScheduleSpace {
  std::optional<ProductSpace> product;
  int lanes = 8;  ///< vector lanes that the partition was compiled for
  int num_threads = 1;
  bool is_parallel = false;         ///< whether anything in it runs on several threads
  std::vector<int64_t> algorithms;  ///< algorithms that a convolution may use; empty: one

  void Note(const ProductSpace& of) {
    if (!product || of.flops > product->flops) product = of;
  }
};

/// Schedules that differ from `base`, by which `space` was noted, in one of its numbers, or in what belongs together;
/// most promising first. None of them gives the same loops as `base`, as far as is known.
std::vector<Schedule> Neighbours(const ScheduleSpace& space, const Schedule& base);

}  // namespace collage::native
