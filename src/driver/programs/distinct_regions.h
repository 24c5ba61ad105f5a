// distinct_regions.h: the static graphs of a program, each different one once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collage/ir/module.h"
#include "program/regions.h"

namespace collage {

/// A region and those equal to it.
struct DistinctRegion {
  Function function;
  std::string digest;
  std::string global;  ///< the global function that the first one is in
  int num_equal = 0;
  double share = 0;  ///< of the multiply-adds of all, by which budgets are shared out
};

/// Returns the regions of `program` in the order in which they are first met.
std::vector<DistinctRegion> Distinct(const ProgramRegions& program);

/// The digest by which Distinct tells functions apart; attributes do not count.
std::string DigestOf(const FunctionNode& function);

/// Returns the typed module with each region replaced by the function of its digest.
IRModule WithRegions(const IRModule& module, const std::map<std::string, Function>& by_digest);

}  // namespace collage
