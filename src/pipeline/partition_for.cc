// partition_for.cc: the passes of before, one behind the other.
#include "collage/partition_for.h"

#include "collage/transform/passes.h"

namespace collage {

IRModule OptimizeFor(const Toolchain& toolchain, IRModule module, const PassContext& context) {
  return RunPasses(toolchain.Preamble(), std::move(module), context);
}

std::vector<std::string> PartitionPasses(const Toolchain& toolchain) {
  std::vector<std::string> passes{"MergeComposite", "AnnotateTarget", "PartitionGraph"};
  if (toolchain.fusion_style() != FusionStyle::kNoFusion) passes.insert(passes.end() - 1, "MergeCompilerRegions");
  return passes;
}

IRModule PartitionFor(const Toolchain& toolchain, IRModule module, const PassContext& context) {
  PassContext for_one = context;
  for_one.SetConfig("relay.MergeComposite.toolchain", toolchain.name());
  for_one.SetConfig("relay.AnnotateTarget.targets", toolchain.name());
  return RunPasses(PartitionPasses(toolchain), OptimizeFor(toolchain, std::move(module), context), for_one);
}

}  // namespace collage
