// passes.h: all passes by name, and how they are run one behind the other.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "collage/ir/module.h"
#include "collage/transform/pass.h"
#include "collage/transform/pass_context.h"

namespace collage {

/// All passes, by name.
const std::deque<Pass>& AllPasses();
/// Adds a pass of a stage that this one does not know, at start-up: before anything looks passes up. Its name is new.
void RegisterPass(Pass pass);
/// Throws kInput with near misses when there is none.
const Pass& GetPass(std::string_view name);
/// Throws kInput with near misses if `context` requires or disables a pass that does not exist.
void CheckPassNames(const PassContext& context);

/// Applies one pass, whatever its level, and infers types; the context's instruments are told.
IRModule RunPass(const Pass& pass, IRModule module, const PassContext& context = {});
/// Applies several by name, in order, whatever their levels.
IRModule RunPasses(const std::vector<std::string>& names, IRModule module, const PassContext& context = {});

/// Passes one behind the other, each if the context enables it (level, required_pass, disabled_pass). A pass's required
/// passes run first, unless they ran since the module last changed; types are inferred behind every pass, so that
/// InferType always has.
class Sequential {
 public:
  /// Throws kInput for a name that is no pass.
  explicit Sequential(const std::vector<std::string>& names);
  explicit Sequential(std::vector<Pass> passes) : passes_(std::move(passes)) {}

  const std::vector<Pass>& passes() const { return passes_; }
  IRModule Run(IRModule module, const PassContext& context = {}) const;
  /// This as one pass.
  Pass AsPass(std::string name, int opt_level, std::string summary) const;

 private:
  std::vector<Pass> passes_;
};

/// Passes that run before a model is partitioned and are right for every toolchain (RFC 0.81, Appendix C, "safe
/// global"): batch normalisation becomes multiply and add and is folded into weights, constants are folded.
const Sequential& PreparationPasses();
/// Runs PreparationPasses at level 3 on a module whose types need not be known.
IRModule PrepareForPartitioning(IRModule module);

}  // namespace collage
