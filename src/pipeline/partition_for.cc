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

/// Throws kInput, naming the toolchain, for a pass of its preamble that there is not.
void CheckPreamble(const Toolchain& toolchain, const std::vector<std::string>& preamble) {
  try {
    for (const std::string& name : preamble) GetPass(name);
  } catch (const Error& error) {
    throw Error(error.category(), error.message(), fmt::format("preamble of toolchain '{}'", toolchain.name()),
                error.hint());
  }
}

}  // namespace

IRModule OptimizeFor(const Toolchain& toolchain, IRModule module, const PassContext& context) {
  const std::vector<std::string> preamble = toolchain.Preamble();
  CheckPreamble(toolchain, preamble);
  module = PrepareForPartitioning(PrepareGraph(std::move(module), context), context);
  if (std::ranges::all_of(preamble, PreparesEveryModel)) return module;
  PassContext own = context;
  own.required_pass.insert(own.required_pass.end(), preamble.begin(), preamble.end());
  return Sequential(preamble).Run(std::move(module), own);
}

std::vector<std::string> PartitionPasses(const Toolchain& toolchain) {
  std::vector<std::string> passes{"MergeComposite", "AnnotateTarget", "PartitionGraph"};
  if (toolchain.fusion_style() != FusionStyle::kNoFusion) passes.insert(passes.end() - 1, "MergeCompilerRegions");
  return passes;
}

IRModule PartitionFor(const Toolchain& toolchain, IRModule module, const PassContext& context) {
  module = OptimizeFor(toolchain, std::move(module), context);
  PassContext for_one = context;
  for_one.SetConfig("relay.MergeComposite.toolchain", toolchain.name());
  for_one.SetConfig("relay.AnnotateTarget.targets", toolchain.name());
  return Sequential(PartitionPasses(toolchain)).Run(std::move(module), for_one);
}

}  // namespace collage
