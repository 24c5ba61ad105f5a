// distinct_regions.h: the static graphs of a program, each different one once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collage/ir/module.h"

namespace collage {

/// A region and those equal to it.
struct DistinctRegion {
  Function function;
  std::string digest;
  int num_equal = 0;
  double share = 0;  ///< of the multiply-adds of all, by which budgets are shared out
};

/// Returns `regions` in the order in which they are first met.
std::vector<DistinctRegion> Distinct(const std::vector<Function>& regions);

/// The digest by which Distinct tells functions apart; attributes do not count.
std::string DigestOf(const FunctionNode& function);

/// Returns the typed module with each region replaced by the function of its digest.
IRModule WithRegions(const IRModule& module, const std::map<std::string, Function>& by_digest);

}  // namespace collage
