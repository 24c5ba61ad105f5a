// schedules.h: the tiles that an instance may have, as schedules.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/triton/describe.h"

namespace collage::triton {

/// One way to compute an instance. A block computes `m` rows and `n` columns of a product, `k` factors at a time, or
/// `m` queries of attention, which meet `n` keys at a time, or else `m` rows or elements.
struct Schedule {
  Multiplier multiplier = Multiplier::kExact;
  int m = 1, n = 0, k = 0;
  int warps = 4;
  int stages = 1;  ///< tiles of factors that are on their way

  /// "tf32x3:128x64x32/w4/s3", "64x32/w4/s2", "4/w8".
  std::string text() const;
};

/// Schedules for GPUs of `architecture`: those that may be fastest first, and the first one by the first multiplier.
std::vector<Schedule> RankSchedules(const Description& description, const std::string& architecture);

/// Blocks along x and y that compute `instance`.
std::array<int64_t, 2> GridOf(const Instance& instance, const Schedule& schedule);

/// The text of generated.py, which specialises a program.
std::string GeneratedText(const Instance& instance, const Schedule& schedule);

}  // namespace collage::triton
