// device_stretches.cc: a stretch is as long as all operands are in memories of one device.
#include "runtime/plan/device_stretches.h"

#include <algorithm>

#include "collage/runtime/device.h"

namespace collage {
namespace {

using Step = ExecutionPlan::Step;

/// The memory that all operands of `step` are in, if these are of one device that is not the host; else the host's.
Memory DeviceMemoryOf(const ExecutionPlan& plan, const Step& step) {
  std::vector<int> values = step.inputs;
  values.insert(values.end(), step.outputs.begin(), step.outputs.end());
  const auto memory_of = [&](int value) { return MemoryOf(plan.values[static_cast<size_t>(value)].layout); };
  const bool is_one = !values.empty() && std::ranges::all_of(values, [&](int value) {
    return DeviceTypeOf(memory_of(value)) == DeviceTypeOf(memory_of(values[0]));
  });
  return is_one ? memory_of(values[0]) : Memory::kHost;
}

}  // namespace

DeviceStretches::DeviceStretches(const ExecutionPlan& plan) {
  int device_type = DeviceTypeOf(Memory::kHost);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Memory memory = DeviceMemoryOf(plan, plan.steps[i]);
    if (stretches_.empty() || DeviceTypeOf(memory) != device_type) {
      device_type = DeviceTypeOf(memory);
      RecordsWork* device = memory == Memory::kHost ? nullptr : dynamic_cast<RecordsWork*>(&GetDevice(memory));
      stretches_.push_back({i, i, device});
    }
    stretches_.back().end = i + 1;
  }
}

void DeviceStretches::Run(const std::function<void(size_t)>& run_step) {
  for (Stretch& stretch : stretches_) Run(stretch, run_step);
}

void DeviceStretches::Run(Stretch& stretch, const std::function<void(size_t)>& run_step) {
  const auto run_all = [&] {
    for (size_t step = stretch.begin; step < stretch.end; ++step) run_step(step);
  };
  if (stretch.recorded != nullptr) return stretch.recorded->Run();
  constexpr int kFirst = 1;  // run, and not recorded
  if (stretch.device == nullptr || stretch.num_runs++ < kFirst) return run_all();
  stretch.recorded = stretch.device->Record(run_all);
  if (stretch.recorded != nullptr) return stretch.recorded->Run();
  stretch.device = nullptr;
  run_all();
}

void DeviceStretches::Forget(size_t step) {
  for (Stretch& stretch : stretches_) {
    if (step >= stretch.begin && step < stretch.end) stretch.recorded.reset();
  }
}

}  // namespace collage
