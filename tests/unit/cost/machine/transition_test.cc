#include "cost/machine/transition.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "collage/runtime/kernel.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

std::string last_run;  // the toolchain whose kernel ran last

/// A kernel that has to wake up when another toolchain's ran last.
class DrowsyKernel : public Kernel {
 public:
  DrowsyKernel(std::string name, std::chrono::microseconds wakes_in) : name_(std::move(name)), wakes_in_(wakes_in) {}
  void Bind(std::span<void* const>, std::span<void* const>, void*) override {}
  void Run() override {
    if (last_run != name_) std::this_thread::sleep_for(wakes_in_);
    last_run = name_;
  }

 private:
  std::string name_;
  std::chrono::microseconds wakes_in_;
};

/// The blob is the toolchain's name.
class DrowsyLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    const std::string name(reinterpret_cast<const char*>(image.blob.data()), image.blob.size());
    return std::make_unique<DrowsyKernel>(name, std::chrono::microseconds(name == "drowsy" ? 2000 : 0));
  }
};

class DrowsyToolchain : public testing_graphs::AnyToolchain {
 public:
  explicit DrowsyToolchain(const std::string& name, bool takes_all = true)
      : AnyToolchain(name, FusionStyle::kNoFusion), takes_all_(takes_all) {
    static std::once_flag once;
    std::call_once(once, [] { AddKernelLoader("drowsy", std::make_unique<DrowsyLoader>()); });
  }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest&) const override {
    if (!takes_all_) return Reason{"never", name()};
    CompiledPartition compiled;
    compiled.loader = "drowsy";
    for (char c : name()) compiled.blob.push_back(static_cast<std::byte>(c));
    return compiled;
  }

 private:
  bool takes_all_;
};

class SwitchTest : public testing::TestWithParam<CacheLevel> {
 protected:
  TimingOptions Timing() const {
    TimingOptions timing;
    timing.operands = GetParam();
    return timing;
  }
};

INSTANTIATE_TEST_SUITE_P(Operands, SwitchTest, testing::Values(CacheLevel::kNear, CacheLevel::kShared),
                         [](const auto& info) { return info.param == CacheLevel::kNear ? "near" : "shared"; });

TEST_P(SwitchTest, WhoMustBeWokenCostsThat) {
  const DrowsyToolchain drowsy("drowsy"), awake("awake");
  const TuningRecord record = MeasureSwitch(awake, drowsy, 1, Timing());
  ASSERT_TRUE(record.ok) << record.reason;
  EXPECT_GE(record.p50, 1e-3);  // two milliseconds, less what the machine's noise may hide
  EXPECT_LE(record.minimum, record.p50);
  EXPECT_GE(record.p90, record.p50);
}

TEST_P(SwitchTest, WhoTakesNothingHasNone) {
  const DrowsyToolchain awake("awake"), picky("picky", /*takes_all=*/false);
  const TuningRecord record = MeasureSwitch(awake, picky, 1, Timing());
  EXPECT_FALSE(record.ok);
  EXPECT_EQ(record.reason, "picky takes none of the operators tried");
}

TEST(TransitionTest, ATransitionIsMeasured) {
  const TuningRecord record = MeasureTransition({});
  EXPECT_TRUE(record.ok);
  EXPECT_GT(record.p50, 0);
  EXPECT_GT(record.num_samples, 3);
}

}  // namespace
}  // namespace collage
