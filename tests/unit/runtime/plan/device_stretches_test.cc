#include "runtime/plan/device_stretches.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "collage/runtime/device.h"

namespace collage {
namespace {

constexpr int kExtDevType = 12;

/// Notes what happens: "[" and "]" around what is recorded, "*" for a repetition.
class Recorder : public Device, public RecordsWork {
 public:
  explicit Recorder(std::string& log) : log_(log) {}
  void* Allocate(size_t bytes, Memory) override { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); }
  void Free(void* address) noexcept override { std::free(address); }
  void CopyIn(void* target, const void* source, size_t bytes) override { std::memcpy(target, source, bytes); }
  void CopyOut(void* target, const void* source, size_t bytes) override { std::memcpy(target, source, bytes); }
  void CopyWithin(void* target, const void* source, size_t bytes) override { std::memcpy(target, source, bytes); }
  void Synchronize() override {}

  std::unique_ptr<RecordedWork> Record(const std::function<void()>& work) override {
    if (refuses) return nullptr;
    log_ += "[";
    work();
    log_ += "]";
    return std::make_unique<Repeated>(log_);
  }

  bool refuses = false;

 private:
  struct Repeated : RecordedWork {
    explicit Repeated(std::string& of) : log(of) {}
    void Run() override { log += "*"; }
    std::string& log;
  };

  std::string& log_;
};

class DeviceStretchesTest : public testing::Test {
 protected:
  DeviceStretchesTest() {
    auto recorder = std::make_unique<Recorder>(log_);
    recorder_ = recorder.get();
    AddDevice(kExtDevType, std::move(recorder));
  }

  /// A plan whose steps each read a value in one memory and write one in another: 'h' the host's, 'd' the device's, 'v'
  /// another one of the device.
  static ExecutionPlan Plan(const std::vector<std::string>& steps) {
    ExecutionPlan plan;
    const auto add = [&](char memory) {
      const Memory in = memory == 'h' ? Memory::kHost : memory == 'd' ? Memory::kExtDev : Memory::kExtDevVtcm;
      plan.values.push_back({{4}, kFloat32, In(in, Layout::kPlain)});
      return static_cast<int>(plan.values.size()) - 1;
    };
    for (const std::string& step : steps) plan.steps.push_back({.inputs = {add(step[0])}, .outputs = {add(step[1])}});
    return plan;
  }

  /// Runs once. Returns what happened.
  std::string Run(DeviceStretches& stretches) {
    log_.clear();
    stretches.Run([&](size_t step) { log_ += std::to_string(step); });
    return log_;
  }

  std::string log_;
  Recorder* recorder_ = nullptr;
};

TEST_F(DeviceStretchesTest, StepsOfOneDeviceAreRecordedInTheSecondRunAndRepeated) {
  const ExecutionPlan plan = Plan({"hh", "hd", "dd", "dv", "vd", "dh", "hh"});
  DeviceStretches stretches(plan);
  EXPECT_EQ(Run(stretches), "0123456");
  EXPECT_EQ(Run(stretches), "01[234]*56");
  EXPECT_EQ(Run(stretches), "01*56");
}

TEST_F(DeviceStretchesTest, AnAddressThatChangesIsRecordedAgain) {
  const ExecutionPlan plan = Plan({"dd", "dd", "dh", "hd", "dd"});
  DeviceStretches stretches(plan);
  Run(stretches);
  EXPECT_EQ(Run(stretches), "[01]*23[4]*");
  stretches.Forget(2);
  EXPECT_EQ(Run(stretches), "*23*");
  stretches.Forget(1);
  EXPECT_EQ(Run(stretches), "[01]*23*");
}

TEST_F(DeviceStretchesTest, WhatCannotBeRecordedIsDoneAsItIs) {
  const ExecutionPlan plan = Plan({"dd", "dd"});
  DeviceStretches stretches(plan);
  recorder_->refuses = true;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Run(stretches), "01");
}

TEST_F(DeviceStretchesTest, TheHostsStepsAreJustDone) {
  const ExecutionPlan plan = Plan({"hh", "hh"});
  DeviceStretches stretches(plan);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Run(stretches), "01");
}

}  // namespace
}  // namespace collage
