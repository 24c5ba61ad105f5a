// overhead.cc: what a partition costs beyond its kernel: a chain of 100 kernels that do nothing, run through the executor.
#include <fmt/format.h>

#include "collage/runtime/executable.h"
#include "cost/timing.h"

namespace {

using collage::ExecutionPlan;

class NoKernel : public collage::Kernel {
 public:
  void Bind(std::span<void* const>, std::span<void* const>, void*) override {}
  void Run() override { asm volatile("" ::: "memory"); }
};

class NoLoader : public collage::KernelLoader {
 public:
  std::unique_ptr<collage::Kernel> Load(const collage::KernelImage&) override { return std::make_unique<NoKernel>(); }
};

constexpr int kPartitions = 100;

ExecutionPlan Chain() {
  ExecutionPlan plan;
  const auto add_value = [&](ExecutionPlan::Value::Storage storage, int64_t place) {
    plan.values.push_back({{1, 16}, collage::kFloat32, collage::Layout::kPlain, storage, place});
    return static_cast<int>(plan.values.size()) - 1;
  };
  int previous = add_value(ExecutionPlan::Value::Storage::kInput, 0);
  plan.inputs.push_back({"x", previous});
  plan.blobs.push_back(std::make_shared<const std::vector<std::byte>>(1));
  plan.arena_bytes = 128;
  for (int i = 0; i < kPartitions; ++i) {
    const bool is_last = i + 1 == kPartitions;
    const int next = is_last ? add_value(ExecutionPlan::Value::Storage::kOutput, 0)
                             : add_value(ExecutionPlan::Value::Storage::kArena, 64 * (i % 2));
    ExecutionPlan::KernelEntry kernel;
    kernel.loader = "nothing";
    kernel.blob = 0;
    plan.kernels.push_back(kernel);
    ExecutionPlan::Step step;
    step.kernel = i;
    step.inputs = {previous};
    step.outputs = {next};
    plan.steps.push_back(step);
    previous = next;
  }
  plan.outputs.push_back({"y", previous});
  return plan;
}

}  // namespace

int main() {
  collage::AddKernelLoader("nothing", std::make_unique<NoLoader>());
  collage::ExecutionInstance instance(collage::Executable::FromPlan(Chain()));
  instance.SetInput(0, collage::Tensor::Zeros({1, 16}, collage::kFloat32));
  const collage::Samples samples = collage::TimeRuns([&] { instance.Run(); }, {.min_seconds = 0.5});
  fmt::print("{} partitions: {:.1f} ns per partition beyond its kernel (p50 of {} batches; p90 {:.1f} ns)\n", kPartitions,
             samples.p50() / kPartitions * 1e9, samples.size(), samples.p90() / kPartitions * 1e9);
}
