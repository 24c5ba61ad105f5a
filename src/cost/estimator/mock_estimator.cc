// mock_estimator.cc: costs by a table, so that what is chosen can be tried out and tested exactly.
#include <fmt/format.h>

#include <set>

#include "collage/support/error.h"
#include "collage/target/toolchain.h"
#include "cost/estimator/estimators.h"
#include "cost/estimator/given_costs.h"
#include "support/file.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

class MockEstimator : public CostEstimator {
 public:
  MockEstimator(const JsonText& table, const CandidateSource& candidates) : costs_(table), candidates_(candidates) {
    if (costs_.coalesce()) {
      throw Error(ErrorCategory::kInput, "'coalesce' is for `collage partition`: here covers are built as chosen",
                  table.file);
    }
    targets_ = costs_.Targets();
    for (const std::string& target : targets_) {
      if (ToolchainRegistry::Global().Find(RegisteredName(target)) != nullptr) continue;
      throw Error(ErrorCategory::kInput, fmt::format("there is no toolchain '{}'", target), table.file,
                  "see collage targets");
    }
  }

  TuningRecord Estimate(const CostQuery& query) override {
    const auto [graph, sub_graph] = candidates_.FindSubGraph(query.candidate);
    const std::string toolchain = RowOf(query.toolchain);
    const Cost cost = costs_.CostOf(toolchain, graph, sub_graph);
    TuningRecord record;
    record.ok = !cost.is_invalid();
    if (record.ok) {
      record.p50 = cost.ToDouble();
    } else {
      const std::string why = costs_.WhyInfinite(toolchain, graph, sub_graph);
      record.reason = why.empty() ? "the table says that it cannot be run" : why;
      CountFailure(query, record.reason);
    }
    return record;
  }

  bool IsAtHand(const CostQuery&) override { return true; }

  double ConvertSeconds(const Shape&, DataType, Layout from, Layout to) override {
    return from == to ? 0 : costs_.conversion();
  }

  double TransitionSeconds() override { return costs_.transition_penalty(); }

  bool TellsPlacesApart() const override { return costs_.has_overrides(); }

 private:
  /// A toolchain under options has a row of its own, or that of its name.
  std::string RowOf(const Toolchain& toolchain) const {
    const std::string name = toolchain.name();
    return targets_.contains(name) ? name : RegisteredName(name);
  }

  GivenCosts costs_;
  const CandidateSource& candidates_;
  std::set<std::string> targets_;  ///< that the table has rows of
};

}  // namespace

std::unique_ptr<CostEstimator> MakeMockEstimator(EstimatorSetting setting) {
  const std::string& argument = setting.argument;
  const JsonText table =
      argument.starts_with('{') ? JsonText{argument, "estimator"} : JsonText{ReadFile(argument), argument};
  return std::make_unique<MockEstimator>(table, setting.candidates);
}

}  // namespace collage
