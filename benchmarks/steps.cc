// steps.cc: what sums of partitions say of a run when both are of the same minutes. Each partition of an executable is
// timed alone, as candidates are (docs/costs.md), in turn with runs of the whole in which every step is timed. So the
// machine's own ups and downs, which lie between a search and its play-off, are in neither; what is left is what timing
// alone leaves out: where the values at the boundary are by the time they are read. Two other ways of preparing it are
// shown beside.
//
//   bench_steps [--rounds N] [--all] MODEL.clg
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "collage/runtime/executable.h"
#include "collage/runtime/thread_pool.h"
#include "cost/measure/timing.h"
#include "run_main.h"
#include "runtime/random_inputs.h"

namespace collage {
namespace {

using Clock = std::chrono::steady_clock;

/// What comes between reading the boundary and the timed run.
struct Way {
  const char* name;
  bool passes_near_caches;  ///< other memory is read, four times the near caches
  double waits_seconds;
};

constexpr std::array kWays{Way{"timed alone", false, 0}, Way{"boundary beyond the near caches", true, 0},
                           Way{"0.3 ms later", false, 0.3e-3}};

class StepTimer {
 public:
  StepTimer(const Executable& executable, int step)
      : plan_(executable.plan()),
        step_(plan_.steps[static_cast<size_t>(step)]),
        kernel_(executable.LoadKernel(step_.kernel)) {
    std::vector<void*> inputs, outputs;
    for (int value : step_.inputs) inputs.push_back(Allocate(value));
    for (int value : step_.outputs) outputs.push_back(Allocate(value));
    const size_t bytes = entry().workspace_bytes;
    if (bytes > 0) workspace_ = Tensor::Zeros({static_cast<int64_t>(bytes)}, kUInt8);
    kernel_->Bind(inputs, outputs, bytes > 0 ? workspace_.raw() : nullptr);
  }

  const ExecutionPlan::KernelEntry& entry() const { return plan_.kernels[static_cast<size_t>(step_.kernel)]; }

  double Time(const Way& way, CacheLevel operands) {
    const TimingOptions timing{
        .warmup_seconds = 0, .min_seconds = 0, .min_samples = 3, .budget_seconds = 0, .operands = operands};
    return TimeRuns([&] { kernel_->Run(); }, timing, [&] { Prepare(way); }).p50();
  }

 private:
  void* Allocate(int index) {
    const ExecutionPlan::Value& value = plan_.values[static_cast<size_t>(index)];
    boundary_.push_back(Tensor::Empty(value.shape, value.dtype));
    FillRandom(boundary_.back(), static_cast<uint64_t>(index));
    return boundary_.back().raw();
  }

  void Prepare(const Way& way) const {
    for (const Tensor& tensor : boundary_) ReadThrough(tensor.raw(), tensor.size_bytes());
    if (way.passes_near_caches) {
      static const std::vector<unsigned char> other(
          static_cast<size_t>(4 * CacheBytes(CacheLevel::kNear) * NumThreads()), 1);
      ReadThrough(other.data(), other.size());
    }
    const Clock::time_point started = Clock::now();
    while (std::chrono::duration<double>(Clock::now() - started).count() < way.waits_seconds) {
    }
  }

  const ExecutionPlan& plan_;
  const ExecutionPlan::Step& step_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Tensor> boundary_;
  Tensor workspace_;
};

struct StepTimes {
  std::unique_ptr<StepTimer> timer;  ///< null: a change of layout, which is not timed alone
  Samples in_run;
  std::array<Samples, kWays.size()> alone;
};

int64_t FootprintBytes(const ExecutionPlan& plan) {
  int64_t bytes = 0;
  for (const Tensor& constant : plan.constants) bytes += static_cast<int64_t>(constant.size_bytes());
  for (const ExecutionPlan::Value& value : plan.values) {
    if (value.storage != ExecutionPlan::Value::Storage::kConstant && value.alias_of < 0) {
      bytes += NumElements(value.shape) * static_cast<int64_t>(value.dtype.size_bytes());
    }
  }
  return bytes;
}

/// A row of those steps that take between `least` and `most` seconds in a run.
void PrintRow(const std::string& name, const std::vector<StepTimes>& steps, double least, double most) {
  int count = 0;
  double in_run = 0;
  std::array<double, kWays.size()> alone{}, deviation{};
  for (const StepTimes& step : steps) {
    const double seconds = step.in_run.p50();
    if (!step.timer || seconds < least || seconds >= most) continue;
    ++count;
    in_run += seconds;
    for (size_t way = 0; way < kWays.size(); ++way) {
      alone[way] += step.alone[way].p50();
      deviation[way] += std::abs(std::log(step.alone[way].p50() / seconds));
    }
  }
  if (count == 0) return;
  fmt::print("| {} | {} | {:.3f} ms |", name, count, in_run * 1e3);
  for (size_t way = 0; way < kWays.size(); ++way) {
    fmt::print(" {:.3f} ms, {:+.1f} % | {:.1f} % |", alone[way] * 1e3, 100 * (alone[way] / in_run - 1),
               100 * std::expm1(deviation[way] / count));
  }
  fmt::print("\n");
}

void PrintSteps(const std::vector<StepTimes>& steps) {
  for (const StepTimes& step : steps) {
    if (!step.timer) continue;
    fmt::print("{:10.1f} us in a run, {:10.1f} us alone  {:8} {}\n", step.in_run.p50() * 1e6, step.alone[0].p50() * 1e6,
               step.timer->entry().toolchain, step.timer->entry().label);
  }
}

void PrintTable(const std::vector<StepTimes>& steps) {
  fmt::print("| steps | number | in a run |");
  for (const Way& way : kWays) fmt::print(" {} | deviation |", way.name);
  fmt::print("\n| --- | --- | --- |");
  for (size_t way = 0; way < kWays.size(); ++way) fmt::print(" --- | --- |");
  fmt::print("\n");
  PrintRow("below 50 us", steps, 0, 50e-6);
  PrintRow("50 to 500 us", steps, 50e-6, 500e-6);
  PrintRow("500 us and more", steps, 500e-6, 1e9);
  PrintRow("all", steps, 0, 1e9);
}

int Main(int argc, char** argv) {
  int rounds = 12;
  bool all = false;
  std::string path;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
      rounds = std::max(1, std::atoi(argv[++i]));
    } else if (std::strcmp(argv[i], "--all") == 0) {
      all = true;
    } else {
      path = argv[i];
    }
  }
  if (path.empty()) throw Error(ErrorCategory::kInput, "no executable given", "", "bench_steps MODEL.clg");
  const Executable executable = Executable::Load(path);
  ExecutionInstance instance(executable);  // sets the number of threads
  const std::vector<PortInfo> inputs = executable.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor tensor = Tensor::Empty(inputs[i].shape, inputs[i].dtype);
    FillRandom(tensor, i);
    instance.SetInput(i, tensor);
  }
  std::vector<StepTimes> steps(executable.plan().steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    if (executable.plan().steps[i].kind == ExecutionPlan::Step::kKernel) {
      steps[i].timer = std::make_unique<StepTimer>(executable, static_cast<int>(i));
    }
  }
  const CacheLevel operands = LevelFor(FootprintBytes(executable.plan()));
  constexpr int kRunsPerRound = 5;
  for (int round = 0; round < rounds; ++round) {
    for (int run = 0; run <= kRunsPerRound; ++run) {
      const std::vector<double> seconds = instance.RunTimed();
      for (size_t i = 0; run > 0 && i < steps.size(); ++i) steps[i].in_run.Add(seconds[i]);  // the first one warms up
    }
    for (StepTimes& step : steps) {
      for (size_t way = 0; step.timer && way < kWays.size(); ++way) {
        step.alone[way].Add(step.timer->Time(kWays[way], operands));
      }
    }
  }
  PrintTable(steps);
  if (all) PrintSteps(steps);
  return 0;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) { return collage::RunMain(collage::Main, argc, argv); }
