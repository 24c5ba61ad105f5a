// compilation.cc: the order of the phases.
#include "driver/compilation.h"

#include <fmt/format.h>

#include <cmath>

#include "collage/support/error.h"
#include "driver/unsearched.h"
#include "support/stopwatch.h"

namespace collage {

/// A large model takes seconds to be built and checked: these begin before anything is measured.
double Compilation::FirstCheckpointSeconds() const {
  constexpr int64_t kLargeBytes = int64_t{64} << 20;
  const double seconds = options_.first_checkpoint_seconds;
  return std::isfinite(seconds) && FootprintBytes(module_) >= kLargeBytes ? 0 : seconds;
}

/// The rest of the budget is for the play-off, if there is one.
double Compilation::SearchBudget() const {
  constexpr double kSearchShare = 0.75;
  return options_.budget_seconds * (builds_covers_ ? kSearchShare : 1);
}

CompileReport Compilation::Run(Purpose purpose) {
  {
    const Stopwatch stopwatch(report_.total_seconds);
    const bool searches = options_.partition_for.empty() && options_.partitioning.empty();
    Prepare(/*runs_passes=*/true);
    const bool runs_here = !machine_.has_value();
    const bool writes_early = purpose == Purpose::kModel || options_.on_checkpoint;
    if (writes_early && searches && runs_here && options_.require.empty()) {
      checkpoints_.Begin(FirstCheckpointSeconds());
    }
    leaves_out_unknown_ = machine_.has_value();
    builds_covers_ = true;
    std::vector<ContenderModule> contenders = FindContenders(/*must_cover=*/true);
    if (machine_ && report_.budget_spent) WarnOfUnknownCosts();
    PlayOffResult result;
    try {
      result = CompareUnlessStopped(contenders);
    } catch (const Error& error) {
      // A toolchain may decline, when it is to build, what nothing was left of the budget to try.
      if (error.category() != ErrorCategory::kUnsupported || !report_.budget_spent) throw;
      Warn("the measuring budget ran out: unmeasured candidates are ignored, native ones excepted");
      leaves_out_unknown_ = true;
      contenders = FindContenders(/*must_cover=*/true);
      result = CompareUnlessStopped(contenders);
    }
    ReportRanking(result, contenders);
    if (purpose == Purpose::kModel) CheckRequired(options_, report_, model_.string());
    if (Explains()) Explain(contenders, contenders[static_cast<size_t>(result.winner)]);
    Write(result, contenders[static_cast<size_t>(result.winner)]);
  }
  return std::move(report_);
}

void Compilation::WarnOfUnknownCosts() const {
  Warn(fmt::format("not all costs are known of machine '{}': candidates without are ignored, native ones excepted",
                   machine_->name));
}

IRModule Compilation::Partition() {
  Prepare(/*runs_passes=*/false);
  return FindContenders(/*must_cover=*/true).front().module;
}

CompileReport Compilation::Tune() {
  {
    const Stopwatch stopwatch(report_.total_seconds);
    Prepare(/*runs_passes=*/true);
    FindContenders(/*must_cover=*/false);
  }
  return std::move(report_);
}

}  // namespace collage
