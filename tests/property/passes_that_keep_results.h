// passes_that_keep_results.h: passes after which a module computes what it computed before.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "collage/transform/passes.h"

namespace collage {

/// Elements may differ by rounding, since passes fold and reassociate.
inline constexpr double kPassTolerance = 1e-3;

/// All but those that change precision on purpose, and those that do nothing unless a toolchain is named.
inline std::vector<Pass> PassesThatKeepResults() {
  const std::set<std::string> excluded{"ToMixedPrecision", "AnnotateTarget", "MergeComposite"};
  std::vector<Pass> passes;
  for (const Pass& pass : AllPasses()) {
    if (!excluded.contains(pass.name)) passes.push_back(pass);
  }
  return passes;
}

}  // namespace collage
