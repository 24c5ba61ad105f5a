// precision_budget.h: how much of the best mix may stay in a lower precision, if its error as a whole is too large.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "driver/covers/partitioner.h"

namespace collage {

/// A part of a cover in a lower precision that can be taken back to full precision by itself.
struct PrecisionUnit {
  std::vector<int> nodes;  ///< operators, ascending
  double gain = 0;         ///< seconds that the lower precision saves, about
  double error = 0;        ///< error of its partition, by the partition's own check; 0 = not known
};

/// Returns the indices of units that together pass `fits`, ascending. All units together are known not to pass; none at
/// all is assumed to. `fits` is asked at most `max_tries` times; its last yes was for the result, if that is not empty.
///
/// Roundings are independent of each other, so their errors add up by their squares, and a unit's worth is its gain by
/// the square of its error. In the order of worth, the longest run of units that fits is found by bisection; the one
/// that breaks it is passed over, and the rest is tried in the same way. If errors are as stated, the kept units gain
/// no less than the best choice without its greatest gain; where one unit's error weighs more in the end than its own
/// check tells, that unit is the one passed over. Deterministic: equals in the order of `units`.
std::vector<int> ChooseWithin(std::span<const PrecisionUnit> units, int max_tries,
                              const std::function<bool(const std::vector<int>& units)>& fits);

/// Whether a toolchain computes float32 values in a lower precision.
bool IsLower(const Toolchain& toolchain);

/// How many of a cover's partitions are computed in a lower precision.
int CountLower(const Partitioner& partitioner, const Cover& cover);

/// Which toolchains' partitions are kept only as far as they fit: IsLower, or fewer.
using IsRationed = std::function<bool(const Toolchain& toolchain)>;

/// Returns the units of `best`: its partitions by toolchains that are rationed, cut before each product but the first.
/// Gains are relative to `standard`, a cover without any; costs within a partition are
/// divided by what its operators compute and write.
std::vector<PrecisionUnit> PrecisionUnits(Partitioner& partitioner, const Cover& best, const Cover& standard,
                                          const IsRationed& is_rationed = IsLower);

/// A cover and how far it is off.
struct BoundedCover {
  Cover cover;
  double error = 0;
};

/// A cover that is off by no more than `allowed`, in which nothing but units of `best` is computed by toolchains that
/// are rationed: as many as ChooseWithin finds, the best cover that `search` finds with them. Nothing when none is
/// found. `error_of`, which builds and runs a cover, is asked about twice the binary logarithm of the number of units.
std::optional<BoundedCover> FindBoundedCover(
    Partitioner& partitioner, const Cover& best, const Cover& standard, double allowed,
    const std::function<std::optional<Cover>(const std::function<bool(CandidateIndex candidate)>& may)>& search,
    const std::function<double(const Cover&)>& error_of, const IsRationed& is_rationed = IsLower);

}  // namespace collage
