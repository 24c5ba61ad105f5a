// answer_request.cc: measures what a request asks for.
#include <fmt/format.h>

#include <optional>
#include <set>

#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "cost/machine/probes.h"
#include "cost/machine/roofline.h"
#include "cost/machine/transition.h"
#include "cost/measure/measure.h"
#include "cost/runner/measure_request.h"
#include "target/toolchain_configuration.h"
#include "worker/worker.h"

namespace collage {
namespace {

/// By its name, or a configuration's text.
const Toolchain& ToolchainNamed(const std::string& name) {
  static ConfiguredToolchains toolchains(ToolchainRegistry::Global());  // this process's; calls are one at a time
  const Toolchain* toolchain = toolchains.Find(name);
  if (toolchain == nullptr) throw Error(ErrorCategory::kUnavailable, fmt::format("there is no toolchain '{}'", name));
  return *toolchain;
}

/// Toolchains that one cannot be in a process with never meet here: a measurement that would bring them together is
/// made in another worker.
const Toolchain& KeepApart(const Toolchain& wanted) {
  static std::set<std::string> used;  // by this process; calls are one at a time
  const std::string wanted_name = RegisteredName(wanted.name());
  for (const std::string& name : used) {
    const Toolchain* other = ToolchainRegistry::Global().Find(name);
    if (other == nullptr || name == wanted_name) continue;
    if (const std::optional<std::string> why = WhyIncompatible(wanted, *other)) {
      AskForFreshWorker();
      throw Error(ErrorCategory::kUnavailable,
                  fmt::format("'{}' cannot share a process with '{}': {}", wanted.name(), name, *why));
    }
  }
  used.insert(wanted_name);
  return wanted;
}

TuningRecord Rate(const std::string& name) {
  const double rate = name == "multiply_adds" ? MeasureMultiplyAddRate() : MeasureReadRate(CacheLevelFromString(name));
  TuningRecord record;
  record.ok = true;
  record.minimum = record.p50 = record.p90 = 1 / rate;
  record.num_samples = 1;
  return record;
}

/// Does each kind of task.
class Measurer {
 public:
  Measurer(const MeasureContext& context, const CandidateSource* candidates, CompiledStore* compiled)
      : context_(context), candidates_(candidates), compiled_(compiled) {}

  MeasureAnswer operator()(const TimePartition& task) const {
    const auto [partition, toolchain] = Find(task.partition);
    return {MeasurePartition(*toolchain, partition, context_.timing, compiled_), {}};
  }

  MeasureAnswer operator()(const KeepCompiled& task) const {
    const auto [partition, toolchain] = Find(task.partition);
    if (compiled_ == nullptr) throw Error(ErrorCategory::kInput, "there is no store of what is compiled");
    const Result<CompiledPartition> compiled = CompilePartition(*toolchain, partition, compiled_);
    MeasureAnswer answer;
    answer.ok = compiled.ok();
    if (compiled.ok()) {
      compiled_->Put(*toolchain, partition, *compiled);
    } else {
      answer.reason = compiled.reason().text;
    }
    return answer;
  }

  MeasureAnswer operator()(const ListSchedules& task) const {
    const auto [partition, toolchain] = Find(task.partition);
    MeasureAnswer answer;
    const Result<std::vector<std::string>> listed = toolchain->Schedules(partition);
    answer.ok = listed.ok();
    if (listed.ok()) {
      answer.schedules = *listed;
    } else {
      answer.reason = listed.reason().text;
    }
    return answer;
  }

  MeasureAnswer operator()(const TimeProbe& task) const {
    const Toolchain& toolchain = KeepApart(ToolchainNamed(task.toolchain));
    return {MeasureProbe(toolchain, ProbeNamed(task.probe), context_.num_threads, context_.timing, compiled_), {}};
  }

  MeasureAnswer operator()(const TimeTransition&) const { return {MeasureTransition(context_.timing), {}}; }

  MeasureAnswer operator()(const TimeSwitch& task) const {
    const Toolchain& from = KeepApart(ToolchainNamed(task.from));
    const Toolchain& to = KeepApart(ToolchainNamed(task.to));
    return {MeasureSwitch(from, to, context_.num_threads, context_.timing, compiled_), {}};
  }

  MeasureAnswer operator()(const FindRate& task) const { return {Rate(task.rate), {}}; }

  MeasureAnswer operator()(const TimeConversion& task) const {
    return {RecordOf(MeasureConversion(task.shape, task.dtype, task.from, task.to, context_.num_threads), {}), {}};
  }

 private:
  std::pair<PartitionRequest, const Toolchain*> Find(const RequestedPartition& wanted) const {
    std::pair<PartitionRequest, const Toolchain*> found;
    if (wanted.held) {
      found = {wanted.held->request, &ToolchainNamed(wanted.held->toolchain)};
      found.first.num_threads = context_.num_threads;
    } else if (!wanted.candidate) {
      throw Error(ErrorCategory::kInput, "no request to measure something: it names no partition");
    } else if (candidates_ == nullptr) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("candidate {} is not known here: it must be sent whole", wanted.candidate->number));
    } else {
      found = candidates_->Find(*wanted.candidate);
    }
    KeepApart(*found.second);
    found.first.schedule = wanted.schedule;
    return found;
  }

  const MeasureContext& context_;
  const CandidateSource* candidates_;
  CompiledStore* compiled_;
};

}  // namespace

std::string AnswerMeasureRequest(const std::string& text, const CandidateSource* candidates, CompiledStore* compiled) {
  const MeasureRequest request = MeasureRequestFromText(text);
  SetNumThreads(request.context.num_threads);
  return ToText(std::visit(Measurer(request.context, candidates, compiled), request.task));
}

}  // namespace collage
