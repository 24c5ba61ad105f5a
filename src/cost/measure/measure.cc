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
#include "cost/measure/input_toggle.h"
#include "cost/measure/leak_check.h"
#include "cost/measure/timing_lock.h"
#include "ir/eval/reference.h"
#include "runtime/compare.h"
#include "target/toolchain_configuration.h"
#include "worker/worker.h"

namespace collage {
namespace {

/// Compares what runs leave with what they should have.
class ResultCheck {
 public:
  /// `reference`: of the inputs that runs are timed on.
  ResultCheck(const PartitionBuffers& buffers, Reference reference, std::optional<DataType> computed_in)
      : buffers_(buffers), reference_(std::move(reference)), computed_in_(computed_in) {}

  /// Every element of the last run's results.
  bool Compare() {
    const std::string difference = FindDifference();
    ++num_checked_;
    if (difference.empty()) {
      ++num_right_;
      right_digests_.insert(buffers_.OutputDigest());
    } else if (difference_.empty()) {
      difference_ = difference;
    }
    return difference.empty();
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

  std::string FindDifference() {
    const std::vector<Tensor> actual = buffers_.PlainOutputs();
    if (actual.size() != reference_.results().size()) return "the number of results differs";
    for (size_t i = 0; i < actual.size(); ++i) {
      const Comparison comparison = reference_.Compare(i, actual[i], computed_in_);
      max_error_ = std::max(max_error_, comparison.max_relative_error);
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
  KernelTimer(LoadedPartition& partition, PartitionBuffers& buffers, ResultCheck& results, const TimingOptions& timing)
      : partition_(partition), kernel_(partition.kernel()), buffers_(buffers), results_(results), timing_(timing) {}

  TuningRecord Time() {
    const MemoryInUse before = MemoryInUse::Now();
    TuningRecord record = TimeAlone();
    // Once more as in the beginning: a kernel may have stopped to write anything.
    buffers_.PoisonOutputs();
    Run();
    results_.Compare();
    record.reason = results_.Verdict();
    if (record.reason.empty()) record.reason = buffers_.FindStrayAccesses();
    if (record.reason.empty()) record.reason = partition_.FindStrayAccesses();
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

  /// Runs on other inputs than the run before.
  void RunOn(InputToggle& toggle) {
    toggle.Set(!toggle.is_changed());
    Run();
  }

  /// Looks at the results of a batch whose last run had the usual inputs: those of the changed ones are not known.
  TimingHooks::Check CheckBatch(int num_runs, InputToggle& toggle) {
    if (!toggle.is_changed()) return results_.CompareQuickly();
    if (num_runs % 2 == 0) toggle.Set(false);  // else all batches would end so
    return TimingHooks::Check::kSame;
  }

  TuningRecord TimeAlone() {
    const TimingLock lock(TimingLock::Mode::kAlone);
    const StaysOnProcessor stays;
    InputToggle toggle(buffers_.HostInputs());
    TimingHooks hooks{.read_inputs = [&] { buffers_.ReadThroughBoundary(); },
                      .check = [&](int num_runs) { return CheckBatch(num_runs, toggle); }};
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
    const Undisturbed timed = TimeUndisturbed([&] { return TimeRuns([&] { RunOn(toggle); }, timing, hooks); },
                                              device == nullptr ? ThisDriftWatch() : device->watch());
    toggle.Set(false);
    TuningRecord record = RecordOf(timed.samples, timing_);
    record.drift = timed.drift;
    return record;
  }

  const LoadedPartition& partition_;
  Kernel& kernel_;
  PartitionBuffers& buffers_;
  ResultCheck& results_;
  const TimingOptions& timing_;
  int64_t num_runs_ = 0;
};

/// Loads, checks, times; the reason, if any, is in the record.
TuningRecord LoadCheckAndTime(CompiledPartition compiled, const PartitionRequest& request, const TimingOptions& timing,
                              const TrialOptions& trying) {
  auto together = std::make_unique<TimingLock>(TimingLock::Mode::kShared);
  LoadedPartition partition(std::move(compiled), request.num_threads);
  TuningRecord record;
  record.reason = TryKernel(partition, request, trying, record.max_error);
  if (!record.reason.empty()) return record;
  PartitionBuffers buffers(request);
  partition.Bind(buffers);
  ResultCheck results(buffers, ReferenceFor(request, buffers.plain_inputs(), Draw::kUnit), trying.computed_in);
  partition.kernel().Run();
  results.Compare();
  record.reason = results.Verdict();
  together.reset();
  const double max_error = record.max_error;
  if (record.reason.empty()) record = KernelTimer(partition, buffers, results, timing).Time();
  record.max_error = std::max(max_error, results.max_error());
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
                             const TrialOptions& trying) {
  SetNumThreads(request.num_threads);
  try {
    TuningRecord record = LoadCheckAndTime(std::move(compiled), request, timing, trying);
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
  const TrialOptions trying = TrialOptionsFor(toolchain);
  std::optional<CompiledPartition> kept = store == nullptr ? std::nullopt : store->Find(toolchain, request);
  if (kept) {
    const TuningRecord record = MeasureCompiled(std::move(*kept), request, timing, trying);
    if (record.ok) store->MarkTried(toolchain, request);
    return record;
  }
  Result<CompiledPartition> compiled = CompilePartition(toolchain, request, store);
  if (!compiled.ok()) {
    TuningRecord record;
    record.reason = compiled.reason().text;
    return record;
  }
  const TuningRecord record = MeasureCompiled(*compiled, request, timing, trying);
  if (record.ok && store != nullptr) {
    store->Put(toolchain, request, *compiled);
    store->MarkTried(toolchain, request);
  }
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
