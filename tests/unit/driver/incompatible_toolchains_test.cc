// A compilation with toolchains that cannot be in one process: kernels of theirs that meet end it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>

#include "collage/compile.h"
#include "collage/ir/text.h"
#include "collage/runtime/executable.h"
#include "collage/runtime/kernel.h"
#include "support/file.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

class ReluKernel : public Kernel {
 public:
  explicit ReluKernel(size_t count) : count_(count) {}
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

/// Ends the process that another of its kind was used in.
class JealousLoader : public KernelLoader {
 public:
  explicit JealousLoader(std::string name) : name_(std::move(name)) {}
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    static std::set<std::string> used;
    used.insert(name_);
    if (used.size() > 1) std::abort();
    size_t count = 0;
    std::memcpy(&count, image.blob.data(), sizeof count);
    return std::make_unique<ReluKernel>(count);
  }

 private:
  std::string name_;
};

/// Takes nn.relu.
class Jealous : public testing_graphs::AnyToolchain {
 public:
  Jealous(const std::string& name, std::string rival)
      : AnyToolchain(name, FusionStyle::kNoFusion), rival_(std::move(rival)) {}
  std::vector<Incompatibility> Incompatible() const override {
    return {{rival_, "one runtime has its signal handlers"}};
  }
  Result<void> SupportsCall(const CallNode& call) const override {
    if (call.op()->name == "nn.relu") return {};
    return Reason{"only nn.relu", name()};
  }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    const TensorTypeNode& type = *AsTensorType(request.function->body()->checked_type());
    const auto count = static_cast<size_t>(NumElements(type.static_shape()));
    CompiledPartition compiled;
    compiled.loader = name();
    compiled.blob.resize(sizeof count);
    std::memcpy(compiled.blob.data(), &count, sizeof count);
    return compiled;
  }

 private:
  std::string rival_;
};

TEST(IncompatibleToolchainsTest, AreMeasuredTimedAndChosenApart) {
  ProbeToolchains();  // registers the built-in ones
  for (const char* name : {"othello", "cassio"}) {
    AddKernelLoader(name, std::make_unique<JealousLoader>(name));
    ToolchainRegistry::Global().Add(
        std::make_unique<Jealous>(name, std::string(name) == "othello" ? "cassio" : "othello"));
  }
  const TemporaryFolder folder;
  CompileOptions options;
  options.output = folder / "model.clg";
  options.database = (folder / "tuning.db").string();
  options.num_threads = 1;
  options.toolchains = {"native", "othello", "cassio"};
  const IRModule module =
      ParseModule("def @main(%x: Tensor[(64, 64), float32]) { nn.relu(exp(nn.relu(%x))) }", "relus");
  const CompileReport report = CompileModule(module, "relus", options);
  std::set<std::string> took_part;
  for (const Contender& contender : report.contenders) {
    EXPECT_TRUE(contender.failure.empty()) << contender.name << ": " << contender.failure;
    EXPECT_FALSE(contender.partitions.contains("othello") && contender.partitions.contains("cassio")) << contender.name;
    for (const auto& [name, _] : contender.partitions) took_part.insert(name);
  }
  EXPECT_TRUE(took_part.contains("othello") && took_part.contains("cassio")) << "nobody could have met";
  for (const auto& [kind, failure] : report.failures) ADD_FAILURE() << kind << ": " << failure.second;
  EXPECT_GT(report.num_measured, 0);
  const auto is_winner = [&](const Contender& one) { return one.name == report.winner; };
  EXPECT_TRUE(std::any_of(report.contenders.begin(), report.contenders.end(), is_winner));
  EXPECT_NO_THROW(Executable::Load(options.output));
  for (const ToolchainReport& probed : report.toolchains) {
    if (probed.name != "othello" && probed.name != "cassio") continue;
    ASSERT_EQ(probed.incompatible.size(), 1u) << probed.name;
    EXPECT_EQ(probed.incompatible[0].second, "one runtime has its signal handlers");
  }
}

}  // namespace
}  // namespace collage
