// toolchain.cc: a toolchain that computes relu, and lies as its name says: "liar_late" writes its results late.
// Compiled once for each lie, which kernels.cc has.
#include <cstring>

#include "collage/target/toolchain_module.h"
#include "collage/target/varying_results.h"

namespace {

using namespace collage;

class Liar : public Toolchain, public HasVaryingResults {
 public:
  std::string name() const override { return std::string("liar_") + COLLAGE_LIE; }
  std::string description() const override { return std::string("a relu that lies: ") + COLLAGE_LIE; }
  Availability Probe() const override { return {true, "1", "", ""}; }
  int priority() const override { return 1; }
  bool is_default() const override { return false; }
  std::vector<AttrField> Options() const override {
    return {{"accuracy", AttrKind::kString, "standard", "exact or standard: the same here"}};
  }

  /// As "random", but it says so.
  bool results_vary() const override { return COLLAGE_LIE == std::string("varies"); }

  Result<void> SupportsCall(const CallNode& call) const override {
    const TensorTypeNode* type = AsTensorType(call.checked_type());
    if (call.op()->name == "nn.relu" && type != nullptr && type->dtype() == kFloat32) return {};
    return Reason{"takes 'nn.relu' of float32 only", name()};
  }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    const std::string lie = COLLAGE_LIE;
    const int64_t count = NumElements(AsTensorType(request.function->body()->checked_type())->static_shape());
    CompiledPartition compiled;
    compiled.loader = "liar";
    compiled.blob.resize(sizeof count + lie.size());
    std::memcpy(compiled.blob.data(), &count, sizeof count);
    std::memcpy(compiled.blob.data() + sizeof count, lie.data(), lie.size());
    compiled.constants = {Tensor::Of<float>({2}, kFloat32, std::vector<float>{1, 0})};
    compiled.workspace_bytes = 64;
    return compiled;
  }
};

std::unique_ptr<Toolchain> Make() { return std::make_unique<Liar>(); }

}  // namespace

COLLAGE_TOOLCHAIN_MODULE(Make)
