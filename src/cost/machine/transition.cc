// transition.cc: empty kernels through the executor, and small partitions one after the other.
#include "cost/machine/transition.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

#include "collage/ir/infer_type.h"
#include "collage/runtime/executable.h"
#include "cost/measure/measure.h"
#include "partition/extract.h"
#include "partition/partition_rule.h"

namespace collage {
namespace {

class NoKernel : public Kernel {
 public:
  void Bind(std::span<void* const>, std::span<void* const>, void*) override {}
  void Run() override { asm volatile("" ::: "memory"); }
};

class NoLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage&) override { return std::make_unique<NoKernel>(); }
};

constexpr const char* kNoLoaderName = "nothing";

/// x → kernel → … → kernel → y, two buffers in turn.
ExecutionPlan EmptyChain(int num_partitions) {
  ExecutionPlan plan;
  const auto add_value = [&](ExecutionPlan::Value::Storage storage, int64_t place) {
    plan.values.push_back({{1, 16}, kFloat32, Layout::kPlain, storage, place});
    return static_cast<int>(plan.values.size()) - 1;
  };
  int previous = add_value(ExecutionPlan::Value::Storage::kInput, 0);
  plan.inputs.push_back({"x", previous});
  plan.blobs.push_back(std::make_shared<const std::vector<std::byte>>(1));
  plan.arena_bytes = 128;
  for (int i = 0; i < num_partitions; ++i) {
    const bool is_last = i + 1 == num_partitions;
    const int next = is_last ? add_value(ExecutionPlan::Value::Storage::kOutput, 0)
                             : add_value(ExecutionPlan::Value::Storage::kArena, 64 * (i % 2));
    ExecutionPlan::KernelEntry kernel;
    kernel.loader = kNoLoaderName;
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

/// Large enough that toolchains use their threads, small enough for the nearest caches.
Function SmallFunction() {
  constexpr int64_t kSize = 128;
  const Var x = MakeVar("x", TensorType(Shape{kSize, kSize}, kFloat32));
  Expr value = MakeCall("nn.dense", {x, MakeConstant(Tensor::Zeros({kSize, kSize}, kFloat32))});
  value = MakeCall("nn.softmax", {value}, {{"axis", -1}});
  value = MakeCall("nn.relu", {value});
  const Function function = MakeFunction({x}, value);
  InferType(function);
  return function;
}

/// A partition that is ready to run.
class SmallPartition {
 public:
  /// The first of SmallPartitions() that `toolchain` compiles; nothing when it takes none.
  static std::unique_ptr<SmallPartition> Of(const Toolchain& toolchain, int num_threads, const CompiledStore* store) {
    for (const PartitionRequest& request : SmallPartitions(toolchain, num_threads)) {
      Result<CompiledPartition> compiled = CompilePartition(toolchain, request, store);
      if (compiled.ok()) return std::make_unique<SmallPartition>(std::move(*compiled), request);
    }
    return nullptr;
  }

  SmallPartition(CompiledPartition compiled, const PartitionRequest& request)
      : buffers_(request), partition_(std::move(compiled), request.num_threads) {
    partition_.Bind(buffers_);
    for (int i = 0; i < 3; ++i) Run();
  }

  void Run() {
    partition_.kernel().Run();
    buffers_.Synchronize();
  }
  void ReadThroughBoundary() const { buffers_.ReadThroughBoundary(); }

 private:
  PartitionBuffers buffers_;
  LoadedPartition partition_;
};

/// Times single runs, each after `prepare`; in the caches that `timing` says.
Samples TimeAfter(const std::function<void()>& prepare, const std::function<void()>& run, const TimingOptions& timing) {
  if (timing.operands != CacheLevel::kNear) return TimeRuns(run, timing, prepare);
  constexpr int kRounds = 41;
  Samples samples;
  for (int round = 0; round < kRounds; ++round) {
    prepare();
    const auto started = std::chrono::steady_clock::now();
    run();
    samples.Add(std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  }
  return samples;
}

}  // namespace

std::vector<PartitionRequest> SmallPartitions(const Toolchain& toolchain, int num_threads) {
  const DataflowGraph graph(SmallFunction());
  RuleLog log;
  std::vector<CandidatePartition> candidates = GatherPartitionRule(toolchain)->AllCandidates(graph, toolchain, log);
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return std::pair(a.sub_graph.members().size(), a.sub_graph.first()) <
           std::pair(b.sub_graph.members().size(), b.sub_graph.first());
  });
  std::vector<PartitionRequest> partitions;
  for (const CandidatePartition& candidate : candidates) {
    const ExtractedFunction extracted = Extract(graph, candidate.sub_graph);
    const BoundaryLayouts plain = PlainLayouts(extracted.boundary.inputs.size(), extracted.boundary.outputs.size());
    partitions.push_back({extracted.function, In(MainMemoryOf(toolchain), plain), num_threads});
  }
  return partitions;
}

TuningRecord MeasureTransition(const TimingOptions& timing) {
  static std::once_flag once;
  std::call_once(once, [] { AddKernelLoader(kNoLoaderName, std::make_unique<NoLoader>()); });
  constexpr int kPartitions = 100;
  ExecutionInstance instance(Executable::FromPlan(EmptyChain(kPartitions)));
  instance.SetInput(0, Tensor::Zeros({1, 16}, kFloat32));
  TimingOptions warm = timing;
  warm.operands = CacheLevel::kNear;
  const Samples samples = TimeRuns([&] { instance.Run(); }, warm);
  Samples per_partition;
  for (double seconds : samples.values()) per_partition.Add(seconds / kPartitions);
  return RecordOf(per_partition, warm);
}

TuningRecord MeasureSwitch(const Toolchain& from, const Toolchain& to, int num_threads, const TimingOptions& timing,
                           const CompiledStore* store) {
  TuningRecord record;
  const std::unique_ptr<SmallPartition> before = SmallPartition::Of(from, num_threads, store);
  const std::unique_ptr<SmallPartition> after = SmallPartition::Of(to, num_threads, store);
  const std::unique_ptr<SmallPartition> like = SmallPartition::Of(to, num_threads, store);
  if (before == nullptr || after == nullptr) {
    record.reason = (before == nullptr ? from : to).name() + " takes none of the operators tried";
    return record;
  }
  // Partitions of models take longer than threads that have nothing to do spin.
  constexpr double kUsualSeconds = 100e-6;
  constexpr int kRepeats = 5;
  const auto run_for_a_while = [&](SmallPartition& partition) {
    const auto started = std::chrono::steady_clock::now();
    do {
      partition.Run();
    } while (std::chrono::steady_clock::now() - started < std::chrono::duration<double>(kUsualSeconds));
  };
  // Candidates are timed after their like, or after their inputs were read. What hands over comes last.
  const bool is_warm = timing.operands == CacheLevel::kNear;
  Samples alone, handed_over;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    for (const bool hands_over : {false, true}) {
      Samples& samples = hands_over ? handed_over : alone;
      const auto prepare = [&] {
        after->ReadThroughBoundary();
        if (hands_over) {
          run_for_a_while(*before);
        } else if (is_warm) {
          run_for_a_while(*like);
        }
      };
      const Samples more = TimeAfter(
          prepare, [&] { after->Run(); }, timing);
      for (double seconds : more.values()) samples.Add(seconds);
    }
  }
  // The difference of medians, where it is more than noise.
  const bool is_clear = handed_over.Quantile(0.25) > alone.Quantile(0.75);
  record.ok = true;
  record.p50 = is_clear ? handed_over.p50() - alone.p50() : 0;
  record.minimum = std::clamp(handed_over.minimum() - alone.p50(), 0.0, record.p50);
  record.p90 = std::max(record.p50, handed_over.p90() - alone.p50());
  record.num_samples = static_cast<int64_t>(handed_over.size());
  return record;
}

}  // namespace collage
