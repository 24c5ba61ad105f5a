// passes.h: transformations of whole modules.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collage/ir/module.h"

namespace collage {

/// A named transformation. `run` may rely on a typed module and need not leave one: RunPass infers types again.
struct Pass {
  std::string name;
  std::string summary;
  std::function<Function(const Function& function)> run;
};

/// All passes, in no particular order; the list is in src/transform/passes.cc.
std::span<const Pass> AllPasses();
/// Throws kInput with near misses when there is none.
const Pass& GetPass(std::string_view name);

/// Applies one pass to every function and infers types.
IRModule RunPass(const Pass& pass, IRModule module);
/// Applies several by name, in order.
IRModule RunPasses(const std::vector<std::string>& names, IRModule module);

/// What is done to a model before it is partitioned: passes that are right for every toolchain (RFC 0.81, Appendix C,
/// "safe global"): batch normalisation becomes multiply and add and is folded into weights, constants are folded.
IRModule PrepareForPartitioning(IRModule module);

}  // namespace collage
