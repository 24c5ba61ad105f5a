// partition_for.cc: the passes of before, one behind the other.
#include "collage/partition_for.h"

#include <fmt/format.h>

#include <algorithm>

#include "collage/support/error.h"
#include "collage/transform/passes.h"

namespace collage {
namespace {

/// Whether every model is prepared by this pass.
bool PreparesEveryModel(const std::string& name) {
  const auto step = std::ranges::find(PreparationSteps(), name, &PreparationStep::pass);
  return step != PreparationSteps().end() && (step->is_required || GetPass(name).opt_level <= kPreparationLevel);
}

constexpr char kUndone = '-';

bool IsUndone(const std::string& entry) { return entry.starts_with(kUndone); }

/// Throws kInput, naming the toolchain, for a pass of its preamble that there is not, or that is undone in vain.
void CheckPreamble(const Toolchain& toolchain) {
  const std::string where = fmt::format("preamble of toolchain '{}'", toolchain.name());
  for (const std::string& entry : toolchain.Preamble()) {
    const std::string name = IsUndone(entry) ? entry.substr(1) : entry;
    try {
      GetPass(name);
    } catch (const Error& error) {
      throw Error(error.category(), error.message(), where, error.hint());
    }
    const bool is_step =
        std::ranges::find(PreparationSteps(), name, &PreparationStep::pass) != PreparationSteps().end();
    if (!IsUndone(entry) || is_step) continue;
    throw Error(ErrorCategory::kInput, fmt::format("pass '{}' cannot be undone: it prepares no model", name), where);
  }
}

}  // namespace

std::vector<std::string> UndoneFor(const Toolchain& toolchain) {
  CheckPreamble(toolchain);
  std::vector<std::string> undone;
  for (const std::string& entry : toolchain.Preamble()) {
    if (IsUndone(entry)) undone.push_back(entry.substr(1));
  }
  return undone;
}

IRModule OptimizeFor(const Toolchain& toolchain, IRModule module, const PassContext& context) {
  PassContext own = context;
  for (const std::string& name : UndoneFor(toolchain)) own.disabled_pass.push_back(name);
  std::vector<std::string> passes = toolchain.Preamble();
  std::erase_if(passes, IsUndone);
  module = PrepareForPartitioning(PrepareGraph(std::move(module), own), own);
  if (std::ranges::all_of(passes, PreparesEveryModel)) return module;
  own.required_pass.insert(own.required_pass.end(), passes.begin(), passes.end());
  return Sequential(passes).Run(std::move(module), own);
}

std::vector<std::string> PartitionPasses(const Toolchain& toolchain) {
  std::vector<std::string> passes{"MergeComposite", "AnnotateTarget", "PartitionGraph"};
  if (toolchain.fusion_style() != FusionStyle::kNoFusion) passes.insert(passes.end() - 1, "MergeCompilerRegions");
  return passes;
}

IRModule PartitionPrepared(const Toolchain& toolchain, IRModule module, const PassContext& context) {
  PassContext for_one = context;
  for_one.SetConfig("relay.MergeComposite.toolchain", toolchain.name());
  for_one.SetConfig("relay.AnnotateTarget.targets", toolchain.name());
  return Sequential(PartitionPasses(toolchain)).Run(std::move(module), for_one);
}

IRModule PartitionFor(const Toolchain& toolchain, IRModule module, const PassContext& context) {
  return PartitionPrepared(toolchain, OptimizeFor(toolchain, std::move(module), context), context);
}

}  // namespace collage
