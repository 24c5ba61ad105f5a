// estimator.cc: what all estimators share.
#include "cost/estimator/estimator.h"

namespace collage {
namespace {

/// "crashed with signal 11", "wrong result", "declined: …" up to its first detail: what failures are counted by.
std::string FailureKind(const std::string& toolchain, const std::string& reason) {
  return toolchain + ": " + reason.substr(0, reason.find_first_of(",(:", 9));
}

}  // namespace

double SlowConversionSeconds(const Shape& shape, DataType dtype) {
  // Read and write once at 5 GB/s, slower than any machine this runs on.
  constexpr double kSlowBytesPerSecond = 5e9;
  return 2.0 * static_cast<double>(NumElements(shape)) * static_cast<double>(dtype.size_bytes()) / kSlowBytesPerSecond;
}

std::vector<TuningRecord> CostEstimator::EstimateAll(const std::vector<CostQuery>& queries) {
  std::vector<TuningRecord> records;
  for (const CostQuery& query : queries) records.push_back(Estimate(query));
  return records;
}

void CostEstimator::CountFailure(const CostQuery& query, const std::string& reason) {
  ++counts_.failed;
  auto& [count, example] = failures_[FailureKind(query.toolchain.name(), reason)];
  if (count++ == 0) example = query.label + ": " + reason;
}

}  // namespace collage
