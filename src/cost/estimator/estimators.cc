// estimators.cc: the table of estimators.
#include "cost/estimator/estimators.h"

#include <fmt/format.h>

#include "collage/support/error.h"

namespace collage {
namespace {

constexpr EstimatorKind kEstimators[] = {
    {"measure", nullptr, "the tuning database, else compiled, checked and timed in a worker", MakeMeasuringEstimator},
    {"database", nullptr, "the tuning database alone; fails with a list of what is missing", MakeDatabaseEstimator},
    {"analytic", nullptr, "products, elements and bytes at the rates that probes of each toolchain show; no candidate",
     MakeAnalyticEstimator},
    {"mock", "FILE.json", "a table of costs, as for `collage partition`", MakeMockEstimator},
};

std::string UsageOf(const EstimatorKind& kind) {
  return kind.argument == nullptr ? kind.name : fmt::format("{}={}", kind.name, kind.argument);
}

/// The row that `text` names. Throws kInput.
const EstimatorKind& KindOf(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const bool has_argument = equals != std::string::npos;
  std::string known;
  for (const EstimatorKind& kind : kEstimators) {
    known += (known.empty() ? "" : ", ") + UsageOf(kind);
    if (name != kind.name) continue;
    if (has_argument != (kind.argument != nullptr)) {
      throw Error(ErrorCategory::kInput, fmt::format("malformed estimator '{}'", text), "", "write " + UsageOf(kind));
    }
    return kind;
  }
  throw Error(ErrorCategory::kInput, fmt::format("there is no estimator '{}'", name), "", "there are: " + known);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> KnownEstimators() {
  std::vector<std::pair<std::string, std::string>> known;
  for (const EstimatorKind& kind : kEstimators) known.emplace_back(UsageOf(kind), kind.summary);
  return known;
}

std::span<const EstimatorKind> EstimatorKinds() { return kEstimators; }

void CheckEstimator(const std::string& text) { KindOf(text); }

std::unique_ptr<CostEstimator> MakeEstimator(const std::string& text, EstimatorSetting setting) {
  const EstimatorKind& kind = KindOf(text);
  if (kind.argument != nullptr) setting.argument = text.substr(text.find('=') + 1);
  return kind.make(std::move(setting));
}

}  // namespace collage
