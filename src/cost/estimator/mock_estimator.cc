// mock_estimator.cc: costs by a table, so that what is chosen can be tried out and tested exactly.
#include <fmt/format.h>

#include <functional>
#include <utility>

#include "collage/support/error.h"
#include "collage/target/toolchain.h"
#include "cost/estimator/estimators.h"
#include "cost/estimator/given_costs.h"
#include "support/file.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

class GivenEstimator : public CostEstimator {
 public:
  /// Returns the name of the row that a candidate's cost is in.
  using RowOf = std::function<std::string(const CostQuery& query)>;

  GivenEstimator(GivenCosts costs, const CandidateSource& candidates, RowOf row_of)
      : costs_(std::move(costs)), candidates_(candidates), row_of_(std::move(row_of)) {}

  TuningRecord Estimate(const CostQuery& query) override {
    const auto [graph, sub_graph] = candidates_.FindSubGraph(query.candidate);
    const std::string row = row_of_(query);
    const Cost cost = costs_.CostOf(row, graph, sub_graph);
    TuningRecord record;
    record.ok = !cost.is_invalid();
    if (record.ok) {
      record.p50 = cost.ToDouble();
    } else {
      record.reason = costs_.WhyInfinite(row, graph, sub_graph);
      if (record.reason.empty()) record.reason = WhyInvalid();
      CountFailure(query, record.reason);
    }
    return record;
  }

  bool IsAtHand(const CostQuery&) override { return true; }

  /// Rows are quick to look up, functions are not.
  double LowerBound(const CostQuery& query) override {
    if (!costs_.is_table()) return 0;
    const auto [graph, sub_graph] = candidates_.FindSubGraph(query.candidate);
    const Cost cost = costs_.CostOf(row_of_(query), graph, sub_graph);
    return cost.is_unknown() ? 0 : cost.ToDouble();
  }

  double ConvertSeconds(const Shape& shape, DataType dtype, Layout from, Layout to) override {
    double seconds = 0;
    for (const Layout step : StepsBetween(from, to)) {
      const auto bytes = static_cast<double>(NumElements(shape)) * StoredType(step, dtype).size_bytes();
      seconds += MemoryOf(from) == MemoryOf(step) ? costs_.conversion() : costs_.CopySeconds(bytes);
      from = step;
    }
    return seconds;
  }

  double TransitionSeconds() override { return costs_.transition_penalty(); }

  bool TellsPlacesApart() const override { return costs_.has_overrides(); }

 private:
  const char* WhyInvalid() const {
    return costs_.is_table() ? "the table says that it cannot be run" : "its estimate is an infinite cost";
  }

  GivenCosts costs_;
  const CandidateSource& candidates_;
  RowOf row_of_;
};

/// Throws for what a compilation does not do, or has not.
void CheckForCompiling(const GivenCosts& costs, const std::string& file) {
  if (costs.coalesce()) {
    throw Error(ErrorCategory::kInput, "'coalesce' is for `collage partition`: here covers are built as chosen", file);
  }
  for (const std::string& target : costs.Targets()) {
    ToolchainRegistry::Global().Get(RegisteredName(target), file);  // throws when there is none
  }
}

}  // namespace

std::unique_ptr<CostEstimator> MakeGivenEstimator(GivenCosts costs, const CandidateSource& candidates) {
  return std::make_unique<GivenEstimator>(std::move(costs), candidates,
                                          [](const CostQuery& query) { return query.target; });
}

std::unique_ptr<CostEstimator> MakeMockEstimator(EstimatorSetting setting) {
  const std::string& argument = setting.argument;
  const JsonText table =
      argument.starts_with('{') ? JsonText{argument, "estimator"} : JsonText{ReadFile(argument), argument};
  GivenCosts costs(table);
  CheckForCompiling(costs, table.file);
  // A toolchain under options has a row of its own, or that of its name.
  const auto row_of = [rows = costs.Targets()](const CostQuery& query) {
    const std::string name = query.toolchain.name();
    return rows.contains(name) ? name : RegisteredName(name);
  };
  return std::make_unique<GivenEstimator>(std::move(costs), setting.candidates, row_of);
}

}  // namespace collage
