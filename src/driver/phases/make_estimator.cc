// make_estimator.cc: what answers for costs: an estimator, and the runner that measures for it.
#include <algorithm>
#include <chrono>

#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "cost/estimator/estimators.h"
#include "driver/compilation.h"
#include "driver/phases/equal_constants.h"
#include "support/machine.h"

namespace collage {
namespace {

/// Returns the cache that holds `bytes` on `machine`, or on this one.
CacheLevel LevelOn(const std::optional<MeasuredMachine>& machine, int64_t bytes) {
  if (!machine) return LevelFor(bytes);
  if (bytes <= machine->near_bytes) return CacheLevel::kNear;
  return bytes <= machine->shared_bytes ? CacheLevel::kShared : CacheLevel::kMemory;
}

}  // namespace

int64_t FootprintBytes(const IRModule& module) {
  int64_t bytes = 0;
  EqualConstants constants;
  PostOrder(module.main(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (const ConstantNode* constant = As<ConstantNode>(expr)) {
      constants.NumberOf(constant->value());
    } else if (call != nullptr && call->op() != nullptr && !call->op()->is_reshape) {
      for (const Type& type : FlattenTensorTypes(call->checked_type())) {
        const TensorTypeNode* tensor = AsTensorType(type);
        bytes += NumElements(tensor->static_shape()) * static_cast<int64_t>(tensor->dtype().size_bytes());
      }
    }
  });
  return bytes + constants.SumOfBytes();
}

WorkerLimits Compilation::Limits() const {
  return {.timeout = std::chrono::milliseconds(static_cast<int64_t>(options_.candidate_timeout_seconds * 1000)),
          .memory_bytes = options_.candidate_memory_bytes};
}

RunnerContext Compilation::ForRunner(const Candidates& candidates) const {
  RunnerContext context{candidates, Limits(), report_.num_threads, {}, options_.runner_python, {}, compiled_.get()};
  for (const ToolchainReport& probed : report_.toolchains) {
    if (probed.takes_part) context.versions[probed.name] = TuningVersion(probed);
  }
  if (options_.progress != nullptr) {
    context.on_warning = [progress = options_.progress](const std::string& text) { progress->Warn(text); };
  }
  return context;
}

MeasuringEstimator::Options Compilation::Estimating() const {
  MeasuringEstimator::Options estimating;
  estimating.machine = Fingerprint();
  estimating.context.num_threads = report_.num_threads;
  estimating.context.timing.operands =
      options_.operands.empty() ? LevelOn(machine_, FootprintBytes(module_)) : CacheLevelFromString(options_.operands);
  estimating.context.timing.percentile = options_.percentile / 100.0;
  estimating.versions = Versions();
  estimating.max_measurements = options_.max_measurements;
  if (estimating.max_measurements) {
    const int64_t left = *estimating.max_measurements - report_.num_measured;  // by the search of another form
    estimating.max_measurements = std::max(left, int64_t{0});
  }
  estimating.should_stop = [this] { return IsStopped(); };
  estimating.pauses = [this] { return checkpoints_.PausesSearch(); };
  if (machine_) estimating.max_measurements = 0;  // there is nothing to measure on
  return estimating;
}

std::unique_ptr<CostEstimator> Compilation::MakeEstimatorFor(const Candidates& candidates) const {
  const MeasuringEstimator::Options estimating = Estimating();
  if (options_.estimate) return MakeCustomEstimator(candidates, options_.estimate);
  const auto on_measure = [this](const EstimatorCounts& counts, const std::string& label) {
    if (options_.progress == nullptr) return;
    options_.progress->Measuring(counts.measured, counts.from_database, label);
  };
  return MakeEstimator(options_.estimator, {.database = *database_,
                                            .runner = MakeRunner(options_.runner, ForRunner(candidates)),
                                            .candidates = candidates,
                                            .options = estimating,
                                            .on_measure = on_measure,
                                            .argument = ""});
}

}  // namespace collage
