// custom_estimator.cc: costs by the calling program, through the interface of RFC 0.81, Appendix E.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "collage/ir/structural.h"
#include "collage/support/error.h"
#include "collage/target/target.h"
#include "cost/estimator/estimators.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

class CustomEstimator : public CostEstimator {
 public:
  CustomEstimator(const CandidateSource& candidates, EstimateCandidate estimate)
      : candidates_(candidates), estimate_(std::move(estimate)) {}

  TuningRecord Estimate(const CostQuery& query) override {
    const auto [known, is_new] = known_.emplace(std::pair(query.toolchain.name(), query.workload), 0.0);
    if (is_new) {
      const IRModule module = IRModule::FromFunction(candidates_.Find(query.candidate).first.function);
      known->second = estimate_(module, Target::Parse(TargetText(query.toolchain)));
    }
    const double seconds = known->second;
    if (seconds < 0) {
      throw Error(ErrorCategory::kInput, fmt::format("a cost is not negative, got {} for '{}' on '{}'", seconds,
                                                     query.label, query.toolchain.name()));
    }
    TuningRecord record;
    record.ok = !std::isinf(seconds);
    record.p50 = record.ok ? seconds : 0;
    if (!record.ok) {
      record.reason = "the estimator says that it cannot be run";
      if (is_new) CountFailure(query, record.reason);
    }
    return record;
  }

  double ConvertSeconds(const Shape& shape, DataType dtype, Layout from, Layout to) override {
    return from == to ? 0 : SlowConversionSeconds(shape, dtype);
  }

 private:
  const CandidateSource& candidates_;
  EstimateCandidate estimate_;
  std::map<std::pair<std::string, std::string>, double> known_;  ///< (toolchain, workload) → seconds
};

}  // namespace

std::unique_ptr<CostEstimator> MakeCustomEstimator(const CandidateSource& candidates, EstimateCandidate estimate) {
  return std::make_unique<CustomEstimator>(candidates, std::move(estimate));
}

}  // namespace collage
