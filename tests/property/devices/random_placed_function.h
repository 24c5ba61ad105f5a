// random_placed_function.h: random dataflow whose operators must run on one device or another.
#pragma once

#include <map>
#include <string>

#include "collage/ir/expr.h"
#include "property/random_source.h"

namespace collage {

struct PlacedFunction {
  /// Typed; its parameters are two tensors of shape (2, 4, 6), and behind them a bool where it branches. So are its
  /// results, one or two.
  Function function;
  /// Operators that must run on a device, by the names that their spans say: a DLDeviceType, and a scope perhaps.
  std::map<std::string, VirtualDevice> wanted;
};

/// `count` steps, each one to three operators. Most operators are wanted nowhere. With `branches`, two thirds of the
/// steps are in the branches of an `if`.
PlacedFunction MakePlacedFunction(int count, RandomSource& random, bool branches = false);

}  // namespace collage
