// mock_estimator.cc: costs by a table, so that what is chosen can be tried out and tested exactly.
#include <fmt/format.h>

#include "collage/support/error.h"
#include "collage/target/toolchain.h"
#include "cost/estimator/estimators.h"
#include "cost/estimator/given_costs.h"
#include "support/file.h"

namespace collage {
namespace {

class MockEstimator : public CostEstimator {
 public:
  MockEstimator(const JsonText& table, FindSubGraph find) : costs_(table), find_(std::move(find)) {
    if (costs_.coalesce()) {
      throw Error(ErrorCategory::kInput, "'coalesce' is for `collage partition`: here covers are built as chosen",
                  table.file);
    }
    for (const std::string& target : costs_.Targets()) {
      if (ToolchainRegistry::Global().Find(target) != nullptr) continue;
      throw Error(ErrorCategory::kInput, fmt::format("there is no toolchain '{}'", target), table.file,
                  "see collage targets");
    }
  }

  TuningRecord Estimate(const CostQuery& query) override {
    const auto [graph, sub_graph] = find_(query.job);
    const std::string& toolchain = query.toolchain.name();
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

  double HopSeconds() override { return costs_.transition_penalty(); }

  bool TellsPlacesApart() const override { return costs_.has_overrides(); }

 private:
  GivenCosts costs_;
  FindSubGraph find_;
};

}  // namespace

std::unique_ptr<CostEstimator> MakeMockEstimator(EstimatorSetting setting) {
  const std::string& argument = setting.argument;
  const JsonText table =
      argument.starts_with('{') ? JsonText{argument, "estimator"} : JsonText{ReadFile(argument), argument};
  return std::make_unique<MockEstimator>(table, std::move(setting.find_sub_graph));
}

}  // namespace collage
