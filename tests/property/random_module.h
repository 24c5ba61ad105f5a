// random_module.h: random well-typed modules that use the whole language, for property tests.
#pragma once

#include <cstdint>
#include <vector>

#include "collage/ir/module.h"
#include "collage/ir/value.h"
#include "property/random_source.h"

namespace collage {

/// A module whose `@main` may be called with `args`: it ends, and quickly.
struct RandomModule {
  IRModule module;
  std::vector<Value> args;
};

struct RandomModuleOptions {
  int size = 6;  ///< how deep expressions nest; work grows fast with it
  /// References and functions that change them. Their effects are let-bound, so that their order is not in doubt.
  bool references = true;
};

/// The module of `seed`, the same everywhere. Typed. Has operators, tuples, let, if, match of all patterns, closures
/// (also unannotated ones), recursion through globals and lets, references, polymorphic functions and data,
/// constructors as functions, nodes shared across branches and functions, constants of several dtypes, `?` dimensions,
/// attributes.
///
/// Conditions depend on integers only, and values stay small, so that passes which round otherwise change results by
/// little.
RandomModule MakeRandomModule(uint64_t seed, const RandomModuleOptions& options = {});
/// As above, by the numbers of `random`.
RandomModule MakeRandomModule(RandomSource random, const RandomModuleOptions& options = {});

}  // namespace collage
