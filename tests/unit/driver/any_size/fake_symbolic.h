// fake_symbolic.h: a toolchain that computes nn.relu of any size, or fails in a way that its name tells.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "collage/runtime/kernel.h"
#include "collage/target/symbolic_sizes.h"
#include "unit/partition/graphs.h"

namespace collage::testing_symbolic {

/// Multiplies the dimensions that it is told for its input; the blob is the rank, and whether it is wrong.
class FakeKernel : public Kernel {
 public:
  FakeKernel(size_t rank, bool is_wrong) : rank_(rank), is_wrong_(is_wrong) {}
  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    from_ = static_cast<const float*>(inputs[0]);
    dims_ = static_cast<const int64_t*>(inputs[1]);
    to_ = static_cast<float*>(outputs[0]);
  }
  void Run() override {
    int64_t count = 1;
    for (size_t i = 0; i < rank_; ++i) count *= dims_[i];
    for (int64_t i = 0; i < count; ++i) to_[i] = is_wrong_ ? 7.0F : std::max(from_[i], 0.0F);
  }

 private:
  size_t rank_;
  bool is_wrong_;
  const float* from_ = nullptr;
  const int64_t* dims_ = nullptr;
  float* to_ = nullptr;
};

class FakeLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    return std::make_unique<FakeKernel>(static_cast<size_t>(image.blob[0]), image.blob[1] != std::byte{0});
  }
};

/// "any_relu" is right, "any_relu_wrong" computes something else, "any_relu_crash" and "any_relu_declines" do not
/// compile.
class FakeSymbolic : public testing_graphs::AnyToolchain, public HasSymbolicSizes {
 public:
  explicit FakeSymbolic(const std::string& name) : AnyToolchain(name, FusionStyle::kNoFusion) {}
  bool is_default() const override { return false; }
  Result<void> SupportsCall(const CallNode&) const override { return Reason{"only any sizes", name()}; }
  Result<void> SupportsSymbolicSizes(const CallNode& call) const override {
    if (call.op()->name == "nn.relu") return {};
    return Reason{"only nn.relu of any size", name()};
  }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    if (name().ends_with("crash")) std::abort();
    if (name().ends_with("declines")) return Reason{"it is tired", name()};
    CompiledPartition compiled;
    compiled.loader = "any_relu";
    compiled.blob = {static_cast<std::byte>(AsTensorType(request.function->body()->checked_type())->rank()),
                     static_cast<std::byte>(name().ends_with("wrong"))};
    return compiled;
  }
};

/// Registers the toolchain of that name when it is first asked for.
inline const FakeSymbolic& Symbolic(const std::string& name) {
  ToolchainRegistry& registry = ToolchainRegistry::Global();
  if (registry.Find(name) == nullptr) {
    AddKernelLoader("any_relu", std::make_unique<FakeLoader>());
    registry.Add(std::make_unique<FakeSymbolic>(name));
  }
  return static_cast<const FakeSymbolic&>(*registry.Find(name));
}

}  // namespace collage::testing_symbolic
