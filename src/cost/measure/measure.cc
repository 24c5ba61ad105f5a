// measure.cc: one candidate, from function to seconds.
#include "cost/measure/measure.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "collage/ir/structural.h"
#include "collage/ir/visitor.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "cost/machine/roofline.h"
#include "cost/measure/device_timing.h"
#include "cost/measure/drift.h"
#include "cost/measure/leak_check.h"
#include "cost/measure/timing_lock.h"
#include "ir/eval/reference.h"
#include "runtime/compare.h"
#include "target/toolchain_configuration.h"
#include "worker/worker.h"

namespace collage {
namespace {

constexpr size_t kReferencesKept = 64;
// Evaluating the reference takes longer than measuring for partitions that add up more products than this.
constexpr double kSmallPartition = 2e7;

/// Reference results of functions measured lately: one function is tried by several toolchains in several layouts.
/// `inputs` are always the same of one draw, but for those that `layouts` rounds.
Reference ReferenceFor(const Function& function, const BoundaryLayouts& layouts, const std::vector<Tensor>& inputs,
                       Draw draw) {
  static std::deque<std::pair<std::string, Reference>> known;
  std::string key = StructuralHash(function) + std::to_string(static_cast<int>(draw));
  for (const Layout layout : layouts.inputs)
    key += LetterOf(Keeping(Layout::kPlain, NarrowType(layout).value_or(kFloat32)));
  for (const auto& [hash, reference] : known) {
    if (hash == key) return reference;
  }
  Reference reference(function, inputs, {.only_finite = draw == Draw::kWide, .on_operator = {}});
  known.emplace_back(std::move(key), reference);
  if (known.size() > kReferencesKept) known.pop_front();
  return reference;
}

}  // namespace

LoadedPartition::LoadedPartition(CompiledPartition compiled, int num_threads) : compiled_(std::move(compiled)) {
  if (compiled_.workspace_bytes > 0 && compiled_.workspace_memory != Memory::kHost) {
    device_workspace_.emplace(compiled_.workspace_memory, compiled_.workspace_bytes);
  } else if (compiled_.workspace_bytes > 0) {
    workspace_ = Tensor::Zeros({static_cast<int64_t>(compiled_.workspace_bytes)}, kUInt8);
  }
  kernel_ = GetKernelLoader(compiled_.loader).Load({compiled_.blob, compiled_.constants, num_threads});
}

void LoadedPartition::Bind(const PartitionBuffers& buffers) {
  const std::vector<void*> inputs = buffers.InputAddresses();
  const std::vector<void*> outputs = buffers.OutputAddresses();
  void* workspace = workspace_.defined() ? workspace_.raw() : nullptr;
  if (device_workspace_) workspace = device_workspace_->address();
  kernel_->Bind(inputs, outputs, workspace);
}

namespace {

/// Compares what runs leave with what they should have.
class ResultCheck {
 public:
  /// `reference`: of the inputs that runs are timed on.
  ResultCheck(const PartitionBuffers& buffers, Reference reference, std::optional<DataType> computed_in)
      : buffers_(buffers), reference_(std::move(reference)), computed_in_(computed_in) {}

  /// Every element of the last run's results.
  bool Compare() {
    const std::string difference = FindDifference(reference_, /*counts=*/true);
    ++num_checked_;
    if (difference.empty()) {
      ++num_right_;
      right_digests_.insert(buffers_.OutputDigest());
    } else if (difference_.empty()) {
      difference_ = difference;
    }
    return difference.empty();
  }

  /// Compares a run on other inputs, which may be far larger than usual.
  void CompareWith(const Reference& reference, bool is_wide) {
    const std::string difference = FindDifference(reference, /*counts=*/!is_wide);
    ++num_checked_;
    if (difference.empty()) {
      ++num_right_;
    } else if (difference_.empty()) {
      difference_ = difference;
    }
  }

  /// As Compare, at the price of reading the results once where a run whose every element was compared left the same
  /// bytes. Of a kernel that never leaves the same, ever fewer runs are looked at.
  TimingHooks::Check CompareQuickly() {
    ++num_quick_;
    if (right_digests_.contains(buffers_.OutputDigest())) {
      ++num_checked_;
      ++num_right_;
      return TimingHooks::Check::kSame;
    }
    const bool is_due = right_digests_.size() < kDigestsKept || std::has_single_bit(static_cast<uint64_t>(num_quick_));
    if (!is_due) return TimingHooks::Check::kSame;
    return Compare() ? TimingHooks::Check::kDisturbed : TimingHooks::Check::kStop;
  }

  /// Empty when all was right so far.
  std::string Verdict() const {
    if (num_right_ == num_checked_) return "";
    if (num_right_ == 0) return difference_;
    return fmt::format("right in {} of {} runs: {}", num_right_, num_checked_, difference_);
  }
  double max_error() const { return max_error_; }

 private:
  static constexpr size_t kDigestsKept = 16;

  /// `counts`: whether the error is one of those that are told of.
  std::string FindDifference(const Reference& reference, bool counts) {
    const std::vector<Tensor> actual = buffers_.PlainOutputs();
    if (actual.size() != reference.results().size()) return "the number of results differs";
    for (size_t i = 0; i < actual.size(); ++i) {
      const Comparison comparison = reference.Compare(i, actual[i], computed_in_);
      if (counts) max_error_ = std::max(max_error_, comparison.max_relative_error);
      if (!comparison.agrees) return fmt::format("wrong result {}, {}", i, comparison.difference);
    }
    return "";
  }

  const PartitionBuffers& buffers_;
  Reference reference_;
  std::optional<DataType> computed_in_;
  std::set<uint64_t> right_digests_;
  std::string difference_;  ///< of the first run that was wrong
  int64_t num_checked_ = 0;
  int64_t num_right_ = 0;
  int64_t num_quick_ = 0;
  double max_error_ = 0;
};

/// While this lives, and if the pool has one thread, the calling thread stays on the processor that it is on: moving
/// costs what is in its caches. Threads of larger pools are left to the system, which knows which processors share a
/// core; and a library's own threads would share the caller's processor if theirs were set by it.
class StaysOnProcessor {
 public:
  StaysOnProcessor() {
    if (NumThreads() != 1 || sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    const int processor = sched_getcpu();
    if (processor < 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    is_pinned_ = sched_setaffinity(0, sizeof one, &one) == 0;
  }
  ~StaysOnProcessor() {
    if (is_pinned_) sched_setaffinity(0, sizeof before_, &before_);
  }
  StaysOnProcessor(const StaysOnProcessor&) = delete;
  StaysOnProcessor& operator=(const StaysOnProcessor&) = delete;

 private:
  cpu_set_t before_{};
  bool is_pinned_ = false;
};

/// Times a kernel that was right so far, and looks at what its runs leave behind.
class KernelTimer {
 public:
  KernelTimer(Kernel& kernel, PartitionBuffers& buffers, ResultCheck& results, const TimingOptions& timing)
      : kernel_(kernel), buffers_(buffers), results_(results), timing_(timing) {}

  TuningRecord Time() {
    const MemoryInUse before = MemoryInUse::Now();
    TuningRecord record = TimeAlone();
    // Once more as in the beginning: a kernel may have stopped to write anything.
    buffers_.PoisonOutputs();
    Run();
    results_.Compare();
    record.reason = results_.Verdict();
    if (record.reason.empty()) record.reason = buffers_.FindStrayWrites();
    if (record.reason.empty()) record.reason = FindLeak(before, num_runs_, [&] { Run(); });
    if (record.reason.empty()) record.reason = FindBusyThreads([&] { Run(); });
    return record;
  }

 private:
  void Run() {
    kernel_.Run();
    buffers_.Synchronize();
    ++num_runs_;
  }

  TuningRecord TimeAlone() {
    const TimingLock lock(TimingLock::Mode::kAlone);
    const StaysOnProcessor stays;
    TimingHooks hooks{.read_inputs = [&] { buffers_.ReadThroughBoundary(); },
                      .check = [&](int) { return results_.CompareQuickly(); }};
    TimingOptions timing = timing_;
    const Memory memory = buffers_.CommonMemory();
    const std::unique_ptr<DeviceTiming> device = memory == Memory::kHost
                                                     ? nullptr
                                                     : DeviceTiming::Make(
                                                           memory, [&] { kernel_.Run(); }, timing_.operands);
    if (device != nullptr) {
      hooks.time_batch = [&](int num_runs) { return device->Seconds(num_runs); };
      timing = DeviceTiming::ForClock(timing);
    }
    const Undisturbed timed = TimeUndisturbed([&] { return TimeRuns([&] { Run(); }, timing, hooks); },
                                              device == nullptr ? ThisDriftWatch() : device->watch());
    TuningRecord record = RecordOf(timed.samples, timing_);
    record.drift = timed.drift;
    return record;
  }

  Kernel& kernel_;
  PartitionBuffers& buffers_;
  ResultCheck& results_;
  const TimingOptions& timing_;
  int64_t num_runs_ = 0;
};

/// Other inputs in `buffers`, and what is computed of them; nothing where the reference refuses them.
std::optional<Reference> FillWith(Draw draw, const PartitionRequest& request, PartitionBuffers& buffers) {
  buffers.Fill(draw);
  try {
    return ReferenceFor(request.function, request.layouts, buffers.plain_inputs(), draw);
  } catch (const Error&) {  // a scatter beyond the end, say
    return std::nullopt;
  }
}

/// Loads, checks, times; the reason, if any, is in the record.
TuningRecord LoadCheckAndTime(CompiledPartition compiled, const PartitionRequest& request, const TimingOptions& timing,
                              std::optional<DataType> computed_in) {
  auto together = std::make_unique<TimingLock>(TimingLock::Mode::kShared);
  LoadedPartition partition(std::move(compiled), request.num_threads);
  PartitionBuffers buffers(request);
  partition.Bind(buffers);
  ResultCheck results(buffers, ReferenceFor(request.function, request.layouts, buffers.plain_inputs(), Draw::kUnit),
                      computed_in);
  TuningRecord record;
  const auto run = [&] {
    if (!record.reason.empty()) return false;
    buffers.PoisonOutputs();
    partition.kernel().Run();
    record.reason = buffers.FindStrayWrites();
    return record.reason.empty();
  };
  if (run()) results.Compare();
  const bool takes_long = WorkOf(request.function).multiply_adds > kSmallPartition;
  for (const Draw draw : DrawsToCheck(takes_long, computed_in == kFloat16)) {
    if (draw == Draw::kUnit) continue;  // compared above
    if (!record.reason.empty() || !results.Verdict().empty()) break;
    const std::optional<Reference> other = FillWith(draw, request, buffers);
    if (other && run()) results.CompareWith(*other, draw == Draw::kWide);
  }
  // Results follow the inputs, also back to the first ones, which are timed.
  buffers.Fill(Draw::kUnit);
  for (int again = 0; again < 2 && run(); ++again) results.Compare();
  if (record.reason.empty()) record.reason = results.Verdict();
  together.reset();
  if (record.reason.empty()) record = KernelTimer(partition.kernel(), buffers, results, timing).Time();
  record.max_error = results.max_error();
  return record;
}

}  // namespace

TuningRecord RecordOf(const Samples& samples, const TimingOptions& timing) {
  TuningRecord record;
  record.ok = true;
  record.minimum = samples.minimum();
  record.p10 = samples.Quantile(0.1);
  record.p25 = samples.Quantile(0.25);
  record.p50 = samples.p50();
  record.p75 = samples.Quantile(0.75);
  record.p90 = samples.p90();
  record.p99 = samples.p99();
  record.num_samples = static_cast<int64_t>(samples.size());
  const std::optional<Interval> interval = samples.QuantileInterval(timing.percentile);
  record.half_width = interval ? interval->half_width() : (samples.Quantile(1) - samples.minimum()) / 2;
  return record;
}

Result<CompiledPartition> CompilePartition(const Toolchain& toolchain, const PartitionRequest& request,
                                           const CompiledStore* store) {
  if (store != nullptr) {
    if (std::optional<CompiledPartition> kept = store->Find(toolchain, request)) return std::move(*kept);
    if (std::optional<Reason> why = store->WhyNot(toolchain, request)) return std::move(*why);
  }
  SetNumThreads(request.num_threads);
  const TimingLock together(TimingLock::Mode::kShared);
  Result<CompiledPartition> compiled = toolchain.RelayToRuntime(request);
  if (!compiled.ok()) return Reason{"declined: " + compiled.reason().text, compiled.reason().origin};
  return compiled;
}

TuningRecord MeasureCompiled(CompiledPartition compiled, const PartitionRequest& request, const TimingOptions& timing,
                             std::optional<DataType> computed_in) {
  SetNumThreads(request.num_threads);
  try {
    TuningRecord record = LoadCheckAndTime(std::move(compiled), request, timing, computed_in);
    record.ok = record.reason.empty();
    // A kernel with one error may have caused others: nothing more is measured in this process.
    if (!record.ok) AskForFreshWorker();
    return record;
  } catch (...) {
    AskForFreshWorker();
    throw;
  }
}

TuningRecord MeasurePartition(const Toolchain& toolchain, const PartitionRequest& request, const TimingOptions& timing,
                              CompiledStore* store) {
  const std::optional<DataType> computed_in = InferencePrecisionOf(toolchain);
  std::optional<CompiledPartition> kept = store == nullptr ? std::nullopt : store->Find(toolchain, request);
  if (kept) return MeasureCompiled(std::move(*kept), request, timing, computed_in);
  Result<CompiledPartition> compiled = CompilePartition(toolchain, request, store);
  if (!compiled.ok()) {
    TuningRecord record;
    record.reason = compiled.reason().text;
    return record;
  }
  const TuningRecord record = MeasureCompiled(*compiled, request, timing, computed_in);
  if (record.ok && store != nullptr) store->Put(toolchain, request, *compiled);
  return record;
}

Samples MeasureConversion(const Shape& shape, DataType dtype, Layout from, Layout to, int num_threads) {
  SetNumThreads(num_threads);
  const Tensor source = Tensor::Zeros(shape, dtype);
  const Tensor target = Tensor::Zeros(shape, dtype);
  if (MemoryOf(from) == Memory::kHost && MemoryOf(to) == Memory::kHost) {
    return TimeRuns([&] { ConvertLayout(source.raw(), from, target.raw(), to, shape, dtype.size_bytes()); });
  }
  // A buffer in each memory on the way; on the host there are two, one to read and one to write.
  std::map<Memory, DeviceBuffer> buffers;
  const std::vector<Layout> steps = StepsBetween(from, to);
  const auto address = [&](Layout layout, const Tensor& on_host) {
    const Memory memory = MemoryOf(layout);
    if (memory == Memory::kHost) return on_host.raw();
    if (!buffers.contains(memory)) buffers.emplace(memory, DeviceBuffer(memory, source.size_bytes()));
    return buffers.at(memory).address();
  };
  return TimeRuns([&] {
    Layout before = from;
    for (size_t i = 0; i < steps.size(); ++i) {
      const Tensor& read = i % 2 == 0 ? source : target;
      const Tensor& written = i % 2 == 0 ? target : source;
      ConvertLayout(address(before, read), before, address(steps[i], written), steps[i], shape, dtype.size_bytes());
      before = steps[i];
    }
    for (const auto& [_, buffer] : buffers) buffer.device().Synchronize();
  });
}

}  // namespace collage
