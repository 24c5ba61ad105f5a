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

/// A pass that runs before a model is partitioned: a row of the table in src/pipeline/preparation.cc.
struct PreparationStep {
  std::string_view pass;
  /// Whether few toolchains take the operators that the pass replaces. It then runs at every level, unless it is
  /// disabled.
  bool is_required = false;
  /// Whether the pass has something to do in a module; null: always.
  bool (*applies)(const IRModule& module, const PassContext& context) = nullptr;
};

/// The level at which models are prepared unless something else is asked for.
inline constexpr int kPreparationLevel = 3;

/// The table, in the order in which passes run. All are right for every toolchain (RFC 0.81, Appendix C, "safe
/// global"): batch normalisation becomes multiply and add and is folded into weights, constants are folded.
std::span<const PreparationStep> PreparationSteps();
/// Runs the steps that `context` enables and that apply, and InferType, on a module whose types need not be known.
/// Throws kInput if `context` names a pass that does not exist.
IRModule PrepareForPartitioning(IRModule module, const PassContext& context = PassContext(kPreparationLevel));
/// Runs ToGraphNormalForm at every level, unless `context` disables it, and InferType: straight-line code becomes a
/// graph. It precedes PrepareForPartitioning.
IRModule PrepareGraph(IRModule module, const PassContext& context = PassContext(kPreparationLevel));
/// Returns which passes `context` requires although no compilation runs them.
std::vector<std::string> RequiredInVain(const PassContext& context);

}  // namespace collage
