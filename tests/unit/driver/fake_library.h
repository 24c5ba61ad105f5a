// fake_library.h: a toolchain for nn.relu that counts how often it compiles, whichever process does.
#pragma once

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "collage/runtime/kernel.h"
#include "collage/target/toolchain.h"
#include "support/file.h"
#include "unit/partition/graphs.h"

namespace collage::testing_library {

class FakeKernel : public Kernel {
 public:
  explicit FakeKernel(size_t count) : count_(count) {}
  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    from_ = static_cast<const float*>(inputs[0]);
    to_ = static_cast<float*>(outputs[0]);
  }
  void Run() override {
    for (size_t i = 0; i < count_; ++i) to_[i] = std::max(from_[i], 0.0F);
  }

 private:
  size_t count_;
  const float* from_ = nullptr;
  float* to_ = nullptr;
};

class FakeLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    size_t count = 0;
    std::memcpy(&count, image.blob.data(), sizeof count);
    return std::make_unique<FakeKernel>(count);
  }
};

/// Takes nn.relu. Each compilation is a line of a file.
class FakeLibrary : public testing_graphs::AnyToolchain {
 public:
  explicit FakeLibrary(const std::string& name) : AnyToolchain(name, FusionStyle::kNoFusion) {}
  bool is_default() const override { return false; }  // other tests go without
  Result<void> SupportsCall(const CallNode& call) const override {
    if (call.op()->name == "nn.relu") return {};
    return Reason{"only nn.relu", name()};
  }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    const TensorTypeNode& type = *AsTensorType(request.function->body()->checked_type());
    const auto count = static_cast<size_t>(NumElements(type.static_shape()));
    std::ofstream(log(), std::ios::app) << count << std::endl;
    CompiledPartition compiled;
    compiled.loader = name();
    compiled.blob.resize(sizeof count);
    std::memcpy(compiled.blob.data(), &count, sizeof count);
    return compiled;
  }

  /// How often a relu of `count` elements was compiled.
  int64_t NumCompiled(size_t count) const {
    std::ifstream lines(log());
    return std::count(std::istream_iterator<size_t>(lines), {}, count);
  }

 private:
  std::filesystem::path log() const { return folder_ / "compiled"; }

  TemporaryFolder folder_;
};

/// The library of that name, registered when it is first asked for.
inline const FakeLibrary& Library(const std::string& name) {
  ToolchainRegistry& registry = ToolchainRegistry::Global();
  if (registry.Find(name) == nullptr) {
    AddKernelLoader(name, std::make_unique<FakeLoader>());
    registry.Add(std::make_unique<FakeLibrary>(name));
  }
  return static_cast<const FakeLibrary&>(*registry.Find(name));
}

}  // namespace collage::testing_library
