// tiles.h: the tiles that an instance may have, as schedules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cutlass/instance.h"

namespace collage::cutlass {

/// One way to compute an instance.
struct Schedule {
  Multiplier multiplier = Multiplier::kScalar;
  Tile tile;

  /// "3xtf32:128x64x16".
  std::string text() const;
};

/// Makes `instance` what the schedule computes.
void Apply(const Schedule& schedule, Instance& instance);

/// Memory that threads of a block share for factors.
int64_t SharedBytes(const Tile& tile, Element element);

/// Sizes of the product that an instance computes; of a convolution, those of its implicit one.
struct ProductSizes {
  int64_t batch = 1, m = 1, n = 1, k = 1;
};

/// Schedules for factors of `element` by one of `multipliers`, which is the better the earlier it comes, on GPUs of
/// `architecture`: those that may be fastest first.
std::vector<Schedule> RankSchedules(Element element, const std::vector<Multiplier>& multipliers,
                                    const ProductSizes& sizes, const std::string& architecture);

}  // namespace collage::cutlass
