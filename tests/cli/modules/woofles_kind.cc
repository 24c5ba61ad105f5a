// woofles_kind.cc: a target kind of a module: element-wise operators as loops, which native code compiles.
#include "collage/target/target_kind.h"

namespace {

using namespace collage;

Result<void> TakesRelu(const CallNode& call, const Attrs&) {
  if (call.op()->name == "nn.relu") return {};
  return Reason{"takes 'nn.relu', not '" + call.op()->name + "'", "woofles"};
}

Result<LoweredPartition> WriteLoops(const PartitionRequest& request, const Attrs& options) {
  constexpr int64_t kTooHard = 7;
  if (options.Int("level") == kTooHard) return Reason{"level 7 is too hard", "woofles"};
  return ToolchainRegistry::Global().Native()->RelayToTIR(request);
}

TargetKind MakeWoofles() {
  return TargetKind("woofles", kDLCPU, "loops of a module")
      .add_attr_option({"level", AttrKind::kInt, 0, "how hard it tries"})
      .set_attr<FTVMRelayToTIR>("RelayToTIR", WriteLoops)
      .set_attr<FSupportsCall>("SupportsCall", TakesRelu)
      .set_attr<bool>("IsDefault", false);
}

}  // namespace

COLLAGE_TARGET_KIND_MODULE(MakeWoofles)
