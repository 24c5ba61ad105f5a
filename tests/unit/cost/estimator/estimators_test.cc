// What each estimator answers, and that those which are not to measure do not.
#include "cost/estimator/estimators.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "collage/compile.h"
#include "collage/ir/structural.h"
#include "partition/extract.h"
#include "partition/partition_rule.h"
#include "support/file.h"
#include "unit/partition/graphs.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

using testing_graphs::AnyToolchain;

/// Answers 0.1 ms to all, to candidates with 0.3 ms at the 90th percentile, and rates that bound next to nothing;
/// counts what it is asked. Candidates have schedules: "quick" takes half, "slow" twice as long. Candidate `failing`
/// fails.
class FakeRunner : public Runner {
 public:
  FakeRunner(int& asked, int& num_candidates, const int& failing)
      : asked_(asked), num_candidates_(num_candidates), failing_(failing) {}
  void Run(const std::vector<MeasureRequest>& requests, const OnAnswer& on_answer) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      ++asked_;
      const std::string request = ToText(requests[i]);
      const bool is_candidate = request.find("\"candidate\"") != std::string::npos;
      num_candidates_ += is_candidate ? 1 : 0;
      MeasureAnswer record;
      record.ok = true;
      const bool is_rate = std::holds_alternative<FindRate>(requests[i].task);
      const bool is_long = request.find("\"elements\"") != std::string::npos;  // a probe
      record.minimum = record.p50 = record.p90 = is_rate ? 1e-12 : is_long ? 4e-4 : 1e-4;
      if (is_candidate) record.p90 = 3e-4;
      if (request.find("\"quick\"") != std::string::npos) record.minimum = record.p50 = 5e-5;
      if (request.find("\"slow\"") != std::string::npos) record.p50 = 2e-4;
      if (std::holds_alternative<ListSchedules>(requests[i].task)) record.schedules = {"slow", "quick"};
      record.num_samples = 11;
      const auto* timed = std::get_if<TimePartition>(&requests[i].task);
      if (timed != nullptr && timed->partition.candidate && timed->partition.candidate->number == failing_) {
        record.ok = false;
        record.reason = "its results are wrong";
      }
      if (!on_answer(i, record)) return;
    }
  }

 private:
  int& asked_;
  int& num_candidates_;
  const int& failing_;
};

/// abs, relu, relu, and the candidates of "native" in it.
class EstimatorsTest : public testing::Test, public CandidateSource {
 protected:
  EstimatorsTest() : graph_(testing_graphs::Std()), database_((folder_ / "tuning.db").string()) {
    ProbeToolchains();  // registers the names
    RuleLog log;
    candidates_ = GatherPartitionRule(native_)->AllCandidates(graph_, native_, log);
  }

  std::pair<PartitionRequest, const Toolchain*> Find(CandidateHandle candidate) const override {
    return {RequestOf(candidate), &native_};
  }
  std::pair<const DataflowGraph&, const SubGraph&> FindSubGraph(CandidateHandle candidate) const override {
    return {graph_, At(candidate).sub_graph};
  }

  EstimatorSetting Setting() {
    EstimatorSetting setting{.database = database_,
                             .runner = std::make_unique<FakeRunner>(asked_, num_candidates_asked_, failing_),
                             .candidates = *this,
                             .options = {},
                             .on_measure = nullptr,
                             .argument = ""};
    setting.options.machine = "here";
    return setting;
  }

  const CandidatePartition& At(CandidateHandle candidate) const {
    return candidates_.at(static_cast<size_t>(candidate.number));
  }
  PartitionRequest RequestOf(CandidateHandle candidate) const {
    const ExtractedFunction extracted = Extract(graph_, At(candidate).sub_graph);
    return {extracted.function, PlainLayouts(extracted.boundary.inputs.size(), extracted.boundary.outputs.size()), 1};
  }

  /// The candidate of exactly these nodes.
  CandidateHandle HandleOf(const std::vector<int>& members) const {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].sub_graph.members() == members) return {static_cast<int>(i)};
    }
    throw std::out_of_range("no such candidate");
  }

  TuningRecord Ask(CostEstimator& estimator, const std::vector<int>& members) {
    const CandidateHandle candidate = HandleOf(members);
    const PartitionRequest request = RequestOf(candidate);
    const std::string workload = StructuralHash(request.function, {.constants_by_shape = true});
    const Work work = WorkOf(request.function);
    return estimator.Estimate(
        {workload, request.layouts, work, native_, candidate, At(candidate).sub_graph.OperatorLabel(graph_)});
  }

  /// Any two candidates will do: who is whose rival is for the partitioner to say.
  std::vector<TuningRecord> BreakTies(CostEstimator& estimator, CandidateHandle first, CandidateHandle second) const {
    const PartitionRequest a = RequestOf(first), b = RequestOf(second);
    const Work work = WorkOf(a.function);
    const StructuralHashOptions by_shape{.constants_by_shape = true};
    const std::string hash_a = StructuralHash(a.function, by_shape), hash_b = StructuralHash(b.function, by_shape);
    return estimator.BreakTies(
        {{hash_a, a.layouts, work, native_, first, "a"}, {hash_b, b.layouts, work, native_, second, "b"}});
  }

  std::unique_ptr<CostEstimator> Mock(const std::string& table) { return MakeEstimator("mock=" + table, Setting()); }

  const TemporaryFolder folder_;
  const AnyToolchain native_{"native", FusionStyle::kTVMFusion, 3};
  DataflowGraph graph_;
  TuningDatabase database_;
  std::vector<CandidatePartition> candidates_;
  int asked_ = 0;
  int num_candidates_asked_ = 0;
  int failing_ = -1;
};

TEST_F(EstimatorsTest, AreKnownByName) {
  for (const EstimatorKind& kind : EstimatorKinds()) {
    SCOPED_TRACE(kind.name);
    const std::string text = kind.argument == nullptr ? kind.name : std::string(kind.name) + "={}";
    EXPECT_NE(MakeEstimator(text, Setting()), nullptr);
    const std::string wrong = kind.argument == nullptr ? std::string(kind.name) + "=1" : kind.name;
    ExpectError([&] { MakeEstimator(wrong, Setting()); }, ErrorCategory::kInput, "malformed estimator '" + wrong + "'");
  }
  for (const EstimatorKind& kind : EstimatorKinds()) {
    ExpectError([&] { MakeEstimator("luck", Setting()); }, ErrorCategory::kInput, kind.name);
  }
  ExpectError([&] { MakeEstimator("luck", Setting()); }, ErrorCategory::kInput, "there is no estimator 'luck'");
}

TEST_F(EstimatorsTest, ATableSaysWhatCandidatesCost) {
  const auto mock = Mock(R"({"op_cost": {"native": {"abs": 5, "*": 2}}, "fusion_benefit": 0.5, "conversion": 0.25,
                             "transition_penalty": 0.125})");
  EXPECT_EQ(Ask(*mock, {3}).p50, 5);
  EXPECT_EQ(Ask(*mock, {3, 4}).p50, 2 + 5 * 0.5);
  EXPECT_EQ(mock->TransitionSeconds(), 0.125);
  EXPECT_EQ(mock->ConvertSeconds({2, 3}, kFloat32, Layout::kPlain, Layout::kChannelsLast), 0.25);
  EXPECT_EQ(mock->ConvertSeconds({2, 3}, kFloat32, Layout::kPlain, Layout::kPlain), 0);
  EXPECT_FALSE(mock->TellsPlacesApart());
  EXPECT_EQ(asked_, 0);
}

TEST_F(EstimatorsTest, ATableTellsPlacesApart) {
  const auto mock = Mock(R"({"overrides": [{"target": "native", "inside": [5], "cost": 7}]})");
  EXPECT_EQ(Ask(*mock, {4}).p50, 1);
  EXPECT_EQ(Ask(*mock, {5}).p50, 7);
  EXPECT_TRUE(mock->TellsPlacesApart());
}

TEST_F(EstimatorsTest, ATableKnowsInvalidAndUnknown) {
  const auto mock = Mock(R"({"op_cost": {"native": {"nn.relu": "unknown"}}, "unsupported": {"native": ["abs"]}})");
  const TuningRecord unsupported = Ask(*mock, {3});
  EXPECT_FALSE(unsupported.ok);
  EXPECT_EQ(unsupported.reason, "'abs' is unsupported");
  EXPECT_TRUE(Ask(*mock, {4}).ok);
  EXPECT_TRUE(std::isnan(Ask(*mock, {4}).p50));
  EXPECT_EQ(mock->counts().failed, 1);
}

TEST_F(EstimatorsTest, AMalformedTableIsRefused) {
  const auto refuses = [&](const std::string& table, const std::string& part) {
    ExpectError([&] { Mock(table); }, ErrorCategory::kInput, part);
  };
  refuses(R"({"op_cost": {"nativ": 1}})", "there is no toolchain 'nativ'");
  refuses(R"({"op_cos": {}})", "unknown field 'op_cos'");
  refuses(R"({"coalesce": true})", "'coalesce' is for");
  refuses(R"({"conversion": -1})", "not negative");
  refuses("/nowhere.json", "cannot open");
}

TEST_F(EstimatorsTest, RivalsAreMeasuredInTurnOnce) {
  const std::unique_ptr<CostEstimator> estimator = MakeEstimator("measure", Setting());
  Ask(*estimator, {4});
  Ask(*estimator, {4, 5});
  const int asked = num_candidates_asked_;
  const auto settle = [&](CostEstimator& of) { return BreakTies(of, HandleOf({4}), HandleOf({4, 5})); };
  const std::vector<TuningRecord> settled = settle(*estimator);
  EXPECT_EQ(num_candidates_asked_, asked + 6);  // three rounds of two
  EXPECT_EQ(settled[0].p50, settled[1].p50);
  settle(*estimator);
  EXPECT_EQ(num_candidates_asked_, asked + 6);
  // Nor does another compilation, from the database.
  const std::unique_ptr<CostEstimator> later = MakeEstimator("measure", Setting());
  EXPECT_EQ(settle(*later)[1].p50, settled[1].p50);
  EXPECT_EQ(num_candidates_asked_, asked + 6);
}

TEST_F(EstimatorsTest, RivalsThatFailInTurnAreNotMeasuredAgain) {
  const CandidateHandle fails = HandleOf({4}), other = HandleOf({4, 5});
  const std::unique_ptr<CostEstimator> estimator = MakeEstimator("measure", Setting());
  Ask(*estimator, {4});
  Ask(*estimator, {4, 5});
  failing_ = fails.number;
  const std::vector<TuningRecord> settled = BreakTies(*estimator, fails, other);
  EXPECT_FALSE(settled[0].ok);
  EXPECT_EQ(settled[0].reason, "its results are wrong");
  EXPECT_TRUE(settled[1].ok);
  EXPECT_EQ(estimator->counts().failed, 1);
  // A failure is its cost from now on, for others too.
  const int asked = num_candidates_asked_;
  EXPECT_FALSE(Ask(*estimator, {4}).ok);
  EXPECT_FALSE(Ask(*MakeEstimator("measure", Setting()), {4}).ok);
  EXPECT_EQ(num_candidates_asked_, asked);
}

TEST_F(EstimatorsTest, SchedulesAreTriedOnceAndTheBestIsKept) {
  const CandidateHandle candidate = HandleOf({4});
  const PartitionRequest request = RequestOf(candidate);
  const std::string workload = StructuralHash(request.function, {.constants_by_shape = true});
  const Work work = WorkOf(request.function);
  const CostQuery query{workload, request.layouts, work, native_, candidate, "relu"};
  const auto always = [] { return true; };
  const auto try_both = [&](CostEstimator& estimator) {
    EXPECT_EQ(estimator.SchedulesNear(query, ""), (std::vector<std::string>{"slow", "quick"}));
    return estimator.TrySchedules(query, {"slow", "quick"}, always);
  };
  const auto first = MakeEstimator("measure", Setting());
  EXPECT_EQ(first->Estimate(query).p50, 1e-4);
  const std::vector<TuningRecord> tried = try_both(*first);
  EXPECT_EQ(tried[0].p50, 2e-4);
  EXPECT_EQ(tried[1].p50, 5e-5);
  EXPECT_EQ(tried[1].schedule, "quick");
  EXPECT_EQ(first->counts().trials, 2);
  EXPECT_EQ(first->Estimate(query).p50, 1e-4) << "nothing was adopted";
  EXPECT_EQ(first->AdoptIfFaster(query, "slow").p50, 1e-4);
  EXPECT_EQ(first->AdoptIfFaster(query, "quick").p50, 5e-5);
  EXPECT_EQ(first->Estimate(query).schedule, "quick");
  EXPECT_EQ(first->TrySchedules(query, {""}, always)[0].p50, 1e-4) << "what it was before is remembered";

  // Whoever comes later asks for nothing, with or without trials of its own.
  const int asked = asked_;
  const auto later = MakeEstimator("measure", Setting());
  EXPECT_EQ(later->Estimate(query).schedule, "quick");
  EXPECT_EQ(try_both(*later)[0].p50, 2e-4);
  EXPECT_EQ(later->AdoptIfFaster(query, "slow").schedule, "quick");
  EXPECT_EQ(later->counts().trials, 0);
  EXPECT_EQ(later->counts().known_trials, 2);
  const auto database = MakeEstimator("database", Setting());
  EXPECT_EQ(database->Estimate(query).p50, 5e-5);
  EXPECT_FALSE(database->TriesSchedules());
  EXPECT_EQ(asked_, asked + 6) << "only to adopt 'slow' or not, against another than before";
  // Told to end, it tries nothing that is not known.
  EXPECT_TRUE(later->TrySchedules(query, {"slow", "other"}, [] { return false; })[1].is_skipped);
  EXPECT_EQ(asked_, asked + 6);
}

TEST_F(EstimatorsTest, TheDatabaseAloneListsWhatItLacks) {
  const auto measuring = MakeEstimator("measure", Setting());
  const TuningRecord measured = Ask(*measuring, {3, 4});
  EXPECT_TRUE(measured.ok);
  measuring->ConvertSeconds({1, 8, 4, 4}, kFloat32, Layout::kPlain, Layout::kChannelsLast);
  const int asked_measuring = asked_;
  EXPECT_GT(asked_measuring, 0);

  const auto known = MakeEstimator("database", Setting());
  EXPECT_EQ(Ask(*known, {3, 4}).p50, measured.p50);
  known->ConvertSeconds({1, 8, 4, 4}, kFloat32, Layout::kPlain, Layout::kChannelsLast);
  EXPECT_NO_THROW(known->CheckComplete());
  EXPECT_EQ(known->counts().from_database, measuring->counts().measured);

  const auto lacking = MakeEstimator("database", Setting());
  const TuningRecord bound = Ask(*lacking, {3});
  EXPECT_TRUE(bound.ok) << "the search goes on as if it were as good as can be";
  EXPECT_LT(bound.p50, measured.p50);
  Ask(*lacking, {3});
  Ask(*lacking, {3, 4, 5});
  lacking->ConvertSeconds({1, 8, 2, 2}, kFloat32, Layout::kPlain, Layout::kChannelsLast);
  const auto check = [&] { lacking->CheckComplete(); };
  ExpectError(check, ErrorCategory::kUnavailable,
              "3 costs are not in the tuning database: native: abs [p:p]; native: abs+nn.relu+nn.relu [p:p]; host: "
              "conversion of (1, 8, 2, 2) float32 [plain:channels_last]");
  ExpectError(check, ErrorCategory::kUnavailable, "collage tune");
  EXPECT_EQ(lacking->counts().skipped, 0);
  EXPECT_EQ(asked_, asked_measuring) << "something was measured";
}

TEST_F(EstimatorsTest, ACostIsThePercentileAskedFor) {
  const auto median = MakeEstimator("measure", Setting());
  EXPECT_EQ(median->CostOf(Ask(*median, {3})), 1e-4);
  EXPECT_EQ(num_candidates_asked_, 1);
  const auto at = [&](const std::string& name, double percentile) {
    EstimatorSetting setting = Setting();
    setting.options.context.timing.percentile = percentile;
    return MakeEstimator(name, std::move(setting));
  };
  const auto high = at("measure", 0.9);
  EXPECT_EQ(high->CostOf(Ask(*high, {3})), 3e-4);
  EXPECT_EQ(num_candidates_asked_, 2) << "the samples were taken for another percentile";
  const auto between = at("database", 0.7);
  EXPECT_GT(between->CostOf(Ask(*between, {3})), 0) << "of what is not in the database, the bound";
  EXPECT_THROW(between->CheckComplete(), Error);
  const auto known = at("database", 0.9);
  EXPECT_EQ(known->CostOf(Ask(*known, {3})), 3e-4);
  EXPECT_NO_THROW(known->CheckComplete());
  const auto low = at("analytic", 0.1);
  const TuningRecord modelled = Ask(*low, {3});
  EXPECT_EQ(low->CostOf(modelled), modelled.p50) << "a formula has no samples";
}

TEST_F(EstimatorsTest, TheFormulaMeasuresNoCandidate) {
  const auto analytic = MakeEstimator("analytic", Setting());
  const TuningRecord one = Ask(*analytic, {3});
  const int asked_once = asked_;
  EXPECT_GT(asked_once, 0);
  EXPECT_TRUE(one.ok);
  EXPECT_GT(Ask(*analytic, {3, 4, 5}).p50, one.p50);
  EXPECT_EQ(asked_, asked_once) << "probes are measured once";
  BreakTies(*analytic, HandleOf({3}), HandleOf({4, 5}));
  EXPECT_EQ(num_candidates_asked_, 0);
  const auto measuring = MakeEstimator("measure", Setting());
  Ask(*measuring, {3});
  EXPECT_EQ(num_candidates_asked_, 1);
  // Another compilation finds the probes in the database.
  const int asked_before = asked_;
  EXPECT_EQ(Ask(*MakeEstimator("analytic", Setting()), {3}).p50, one.p50);
  EXPECT_EQ(asked_, asked_before);
}

TEST_F(EstimatorsTest, PausesHoldUpMeasurementsButNotTheProbesOfTheFormula) {
  const auto paused = [&] {
    EstimatorSetting setting = Setting();
    setting.options.pauses = [] { return true; };
    return setting;
  };
  EXPECT_TRUE(Ask(*MakeEstimator("measure", paused()), {3}).is_skipped);
  EXPECT_EQ(asked_, 0);
  const double seconds = Ask(*MakeEstimator("analytic", paused()), {3}).p50;
  EXPECT_GT(asked_, 0);
  EXPECT_EQ(seconds, Ask(*MakeEstimator("analytic", Setting()), {3}).p50);
}

TEST_F(EstimatorsTest, ACustomOneIsAskedOncePerStructure) {
  std::vector<std::string> targets;
  double answer = 0.5;
  const auto custom = MakeCustomEstimator(*this, [&](const IRModule& module, const Target& target) {
    EXPECT_NE(module.main(), nullptr);
    targets.push_back(target.ToString());
    return answer;
  });
  EXPECT_EQ(Ask(*custom, {4}).p50, 0.5);
  EXPECT_EQ(Ask(*custom, {5}).p50, 0.5);  // the same structure
  EXPECT_EQ(targets, std::vector<std::string>{"llvm"});
  answer = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(Ask(*custom, {3}).ok);
  EXPECT_FALSE(Ask(*custom, {3}).ok);
  EXPECT_EQ(custom->counts().failed, 1);
  answer = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(Ask(*custom, {3, 4}).p50));
  answer = -1;
  ExpectError(
      [&] {
        Ask(*custom, {4, 5});
      },
      ErrorCategory::kInput, "a cost is not negative, got -1 for 'nn.relu+nn.relu' on 'native'");
  EXPECT_EQ(asked_, 0);
}

}  // namespace
}  // namespace collage
