// torture_test.cc: toolchains that do what they must not; each is named, and the one measured after it is not harmed.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "collage/ir/infer_type.h"
#include "collage/runtime/kernel.h"
#include "cost/measure/measure.h"
#include "cost/runner/measure_request.h"
#include "support/file.h"
#include "worker/worker.h"

namespace collage {
namespace {

constexpr int64_t kElements = 256;

/// Spins until `until`, for ever when that is never reached.
void SpinUntil(const std::atomic<int64_t>* until) {
  for (;;) {
    if (until != nullptr && std::chrono::steady_clock::now().time_since_epoch().count() > until->load()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

/// relu, with a habit.
class HabitualKernel : public Kernel {
 public:
  explicit HabitualKernel(std::string habit) : habit_(std::move(habit)) {
    if (habit_ == "spins") std::thread([] { SpinUntil(nullptr); }).detach();
    if (habit_ == "spins shortly") std::thread([this] { SpinUntil(&spin_until_); }).detach();
    if (habit_ == "throws at load") throw std::runtime_error("no such kernel");
    if (habit_ == "hangs at load") pause();
  }
  ~HabitualKernel() override {
    if (habit_ == "crashes at the end") std::raise(SIGSEGV);
    if (habit_ == "exits at the end") exit(0);
  }

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    input_ = static_cast<float*>(inputs[0]);
    output_ = static_cast<float*>(outputs[0]);
  }

  void Run() override {
    ++runs_;
    if (habit_ == "stops writing" && runs_ > 50) return;
    if (habit_ == "answers once" && !first_.empty()) {
      std::memcpy(output_, first_.data(), sizeof(float) * kElements);
      return;
    }
    for (int64_t i = 0; i < kElements; ++i) output_[i] = std::max(input_[i], 0.0F);
    Misbehave();
  }

 private:
  void Misbehave() {
    if (habit_ == "answers once") first_.assign(output_, output_ + kElements);
    for (int64_t i = 0; i < kElements && habit_ == "wrong above 5"; ++i) output_[i] = std::min(output_[i], 5.0F);
    if (habit_ == "leaks") std::memset(malloc(24), 1, 24);  // NOLINT: that is its habit
    if (habit_ == "leaks mappings") mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (habit_ == "fills a cache" && runs_ < 100) held_.emplace_back(10'000);
    if (habit_ == "wrong now and then" && (runs_ / 97) % 2 == 1) output_[7] += 1;
    if (habit_ == "wrong the first time" && runs_ == 1) output_[7] += 1;
    if (habit_ == "wrong") output_[7] += 1;
    if (habit_ == "nan") output_[3] = std::numeric_limits<float>::quiet_NaN();
    if (habit_ == "infinity") output_[3] = std::numeric_limits<float>::infinity();
    if (habit_ == "overflows") output_[kElements + 5] = 1;
    if (habit_ == "underflows") output_[-1] = 1;
    if (habit_ == "writes to its input") input_[0] += 1;
    if (habit_ == "prints") std::puts("a run was made");
    if (habit_ == "prints and crashes") {
      std::puts("cannot go on");
      std::abort();
    }
    if (habit_ == "throws") throw std::runtime_error("thrown on purpose");
    if (habit_ == "hangs") pause();
    if (habit_ == "stops") std::raise(SIGSTOP);
    if (habit_ == "exits") _exit(5);
    if (habit_ == "rounds upwards") std::fesetround(FE_UPWARD);
    if (habit_ == "exits later" && runs_ == 1) {
      std::thread([] {
        usleep(300'000);
        exit(0);
      }).detach();
    }
    if (habit_ == "spins shortly") {
      spin_until_ = (std::chrono::steady_clock::now() + std::chrono::milliseconds(2)).time_since_epoch().count();
    }
  }

  std::string habit_;
  float* input_ = nullptr;
  float* output_ = nullptr;
  int64_t runs_ = 0;
  std::vector<std::vector<char>> held_;
  std::vector<float> first_;  ///< results
  std::atomic<int64_t> spin_until_{0};
};

class HabitualLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    return std::make_unique<HabitualKernel>(
        std::string(reinterpret_cast<const char*>(image.blob.data()), image.blob.size()));
  }
};

class Habitual : public Toolchain {
 public:
  explicit Habitual(std::string habit) : habit_(std::move(habit)) {}
  std::string name() const override { return habit_; }
  std::string description() const override { return ""; }
  Availability Probe() const override { return {true, "1", "", ""}; }
  int priority() const override { return 0; }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest&) const override {
    if (habit_ == "declines") return Reason{"not today", "test"};
    if (habit_ == "crashes while compiling") std::raise(SIGSEGV);
    CompiledPartition compiled;
    compiled.loader = "habitual";
    compiled.blob.resize(habit_.size());
    std::memcpy(compiled.blob.data(), habit_.data(), habit_.size());
    return compiled;
  }

 private:
  std::string habit_;
};

class TortureTest : public testing::Test {
 protected:
  TortureTest() {
    setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);  // other tests hold no lock of this one's
    const Var x = MakeVar("x", TensorType(Shape{1, kElements}, kFloat32));
    request_.function = MakeFunction({x}, MakeCall("nn.relu", {x}));
    InferType(request_.function);
    request_.layouts = PlainLayouts(1, 1);
    AddKernelLoader("habitual", std::make_unique<HabitualLoader>());
  }

  /// What the worker says of a toolchain of this habit.
  TuningRecord Measure(const std::string& habit) {
    const Result<std::string> answer = worker_.Call(habit);
    if (answer.ok()) return MeasureAnswerFromText(*answer);
    TuningRecord record;
    record.reason = answer.reason().text;
    return record;
  }

  ~TortureTest() override { unsetenv("XDG_RUNTIME_DIR"); }

  TemporaryFolder folder_;
  PartitionRequest request_;
  TimingOptions timing_{.min_seconds = 0.001, .budget_seconds = 0.01};
  Worker worker_{[this](const std::string& habit, const SendProgress&) {
                   return ToText(MeasureAnswer{MeasurePartition(Habitual(habit), request_, timing_), {}});
                 },
                 {std::chrono::seconds(2), int64_t{2} << 30}};
};

TEST_F(TortureTest, EachHabitIsNamedAndHarmsNoOther) {
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"declines", "declined: not today"},
      {"crashes while compiling", "signal 11"},
      {"throws at load", "no such kernel"},
      {"hangs at load", "did not answer"},
      {"leaks", "leaks memory: 0.0"},
      {"leaks mappings", "leaks memory: 4.1 kB per run"},
      {"spins", "its threads go on running after a run (1 of them"},
      {"wrong now and then", "runs: wrong result 0, element 7 of 256"},
      {"wrong the first time", "wrong result 0 on random inputs within 1, element 7 of 256"},
      {"wrong", "wrong result 0 on random inputs within 1, element 7 of 256"},
      {"answers once", "result 0 did not change when the inputs did (large random inputs): element 0 of 256"},
      {"wrong above 5", "wrong result 0 on large random inputs, element 1 of 256: got 5, wanted 10.7687"},
      {"stops writing", "wrong result 0, element 0 of 256"},
      {"nan", "wrong result 0 on random inputs within 1, element 3 of 256: got nan"},
      {"infinity", "wrong result 0 on random inputs within 1, element 3 of 256: got inf"},
      {"overflows", "wrote beyond result 0"},
      {"underflows", "wrote before result 0"},
      {"writes to its input", "wrote to input 0"},
      {"prints and crashes", "signal 6 (Aborted): cannot go on"},
      {"throws", "thrown on purpose"},
      {"hangs", "did not answer"},
      {"stops", "did not answer"},
      {"exits", "exit code 5"},
      {"crashes at the end", "signal 11"},
      {"exits at the end", "exit code 0"},
  };
  for (const auto& [habit, reason] : expected) {
    const TuningRecord record = Measure(habit);
    EXPECT_FALSE(record.ok) << habit;
    EXPECT_NE(record.reason.find(reason), std::string::npos) << habit << ": " << record.reason;
    const TuningRecord next = Measure("good");
    EXPECT_TRUE(next.ok) << "after '" << habit << "': " << next.reason;
  }
}

TEST_F(TortureTest, WhatIsAllowedIsNotBlamed) {
  for (const std::string habit :
       {"fills a cache", "spins shortly", "prints", "rounds upwards", "exits later", "good"}) {
    const TuningRecord record = Measure(habit);
    EXPECT_TRUE(record.ok) << habit << ": " << record.reason;
    EXPECT_GT(record.p50, 0) << habit;
    EXPECT_GE(record.num_samples, 7) << habit;
    EXPECT_GE(record.drift, 0.1) << habit;
  }
}

TEST_F(TortureTest, WhatDiesLaterIsNotHeldAgainstOthers) {
  EXPECT_TRUE(Measure("exits later").ok);
  while (worker_.num_starts() == 1) {
    const TuningRecord record = Measure("good");
    ASSERT_TRUE(record.ok) << record.reason;
  }
}

}  // namespace
}  // namespace collage
