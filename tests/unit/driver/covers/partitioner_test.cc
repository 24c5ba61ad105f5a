#include "driver/covers/partitioner.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "collage/compile.h"
#include "collage/ir/visitor.h"
#include "cost/estimator/estimators.h"
#include "driver/covers/greedy_cover.h"
#include "support/file.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

/// Costs that are drawn anew for each kind of partition and seed; some fail.
class RandomEstimator : public CostEstimator {
 public:
  RandomEstimator(uint32_t seed, bool may_fail) : seed_(seed), may_fail_(may_fail) {}

  TuningRecord Estimate(const CostQuery& query) override {
    std::mt19937 random(seed_ ^ static_cast<uint32_t>(std::hash<std::string>{}(query.toolchain.name() + query.label)));
    TuningRecord record;
    const bool is_single = query.label.find('+') == std::string::npos;
    record.ok = !may_fail_ || (query.toolchain.is_native() && is_single) || random() % 5 != 0;
    if (!record.ok) record.reason = "declined: by chance";
    record.p50 = 1e-6 * (1 + static_cast<double>(random() % 1000) / 100);
    return record;
  }
  double ConvertSeconds(const Shape&, DataType, Layout from, Layout to) override { return from == to ? 0 : 1e-6; }

 private:
  uint32_t seed_;
  bool may_fail_;
};

double SecondsOf(Partitioner& partitioner, const Cover& cover) {
  double seconds = 0;
  for (VariantIndex variant : cover.variants) seconds += partitioner.Exact(variant) + partitioner.Transition(variant);
  return seconds;
}

TEST(PartitionerTest, WithOneExternalToolchainNeverCostsMoreThanItsOwnPartitioning) {
  const testing_graphs::AnyToolchain native("native", FusionStyle::kTVMFusion, 8);
  int num_better = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto style = static_cast<FusionStyle>(seed % 3);
    const testing_graphs::AnyToolchain acme("acme", style, 2 + static_cast<int>(seed % 4), seed % 2 == 0);
    const Function function = testing_graphs::RandomFunction(3 + static_cast<int>(random() % 10), random);
    const std::vector<PartitionSpec> specs = testing_graphs::SpecsOf({&native, &acme});
    const Candidates candidates(function, specs, 1);
    RandomEstimator estimator(seed, seed % 4 != 0);
    Partitioner partitioner(candidates, estimator);
    const std::optional<Cover> greedy = GreedyCover(partitioner, acme, {.fall_back = &native}, nullptr);
    ASSERT_TRUE(greedy.has_value());
    const double of_greedy = SecondsOf(partitioner, *greedy);
    for (const char* strategy : {"dijkstra", "astar", "sweep"}) {
      SCOPED_TRACE(strategy);
      const SearchResult found = partitioner.Search([](CandidateIndex) { return true; }, {.strategy = strategy});
      ASSERT_FALSE(found.covers.empty());
      EXPECT_LE(found.covers[0].seconds, of_greedy * (1 + 1e-12));
      EXPECT_NEAR(found.covers[0].seconds, SecondsOf(partitioner, found.covers[0]), 1e-12);
      num_better += found.covers[0].seconds < of_greedy * 0.999 ? 1 : 0;
    }
  }
  EXPECT_GT(num_better, 100) << "the costs never favour a mix";
}

TEST(PartitionerTest, AChosenPartitionIsPrimitiveOnceWhateverItsRuleSays) {
  const testing_graphs::AnyToolchain acme("acme");
  const Function function = testing_graphs::Std();
  const std::string text = R"json({"rule": "Primitive", "sub_rule": {"rule": "Union", "sub_rules": [
      {"rule": "Composite", "name": "acme.relu", "sub_rule": {"rule": "DFPattern", "pattern": "nn.relu(*)"}},
      {"rule": "OpCallByKind"}]}})json";
  std::vector<PartitionSpec> specs;
  specs.push_back(SpecOf(acme, {}, text));
  const IRModule module = IRModule::FromFunction(function);
  const Candidates candidates(function, specs, 1);
  RandomEstimator estimator(1, /*may_fail=*/false);
  Partitioner partitioner(candidates, estimator);
  ASSERT_EQ(candidates.candidates().size(), 5U);
  for (VariantIndex variant : candidates.variants().indices()) {
    int num_composites = 0;
    PostOrder(candidates.Find(CandidateHandle{variant.number()}).first.function, [&](const Expr& expr) {
      const FunctionNode* inner = As<FunctionNode>(expr);
      if (inner == nullptr) return;
      EXPECT_FALSE(inner->attrs().Has("Primitive"));
      num_composites += inner->attrs().Has("Composite") ? 1 : 0;
    });
    EXPECT_EQ(num_composites, variant.number() < 2 ? 1 : 0);
  }
  const std::optional<Cover> cover = GreedyCover(partitioner, acme, {}, nullptr);
  ASSERT_TRUE(cover.has_value());
  const std::optional<IRModule> chosen = partitioner.Apply(partitioner.ChosenOf(*cover), module);
  ASSERT_TRUE(chosen.has_value());
  int num_primitive = 0;
  PostOrder(chosen->main(), [&](const Expr& expr) {
    const FunctionNode* inner = As<FunctionNode>(expr);
    num_primitive += inner != nullptr && inner->attrs().Has("Primitive") ? 1 : 0;
  });
  EXPECT_EQ(num_primitive, 3);
}

TEST(PartitionerTest, RulesOfOneToolchainCompete) {
  const testing_graphs::AnyToolchain native("native");
  const std::string singles = R"({"rule": "OpCallByKind"})";
  const std::string pairs = R"json({"rule": "Union", "sub_rules": [
      {"rule": "DFPattern", "pattern": "nn.relu(abs(*))"}, {"rule": "DFPattern", "pattern": "nn.relu(*)"}]})json";
  std::vector<PartitionSpec> specs;
  specs.push_back(SpecOf(native, {}, singles));
  specs.push_back(SpecOf(native, {}, pairs));
  const Candidates candidates(testing_graphs::Std(), specs, 1);
  EXPECT_EQ(candidates.candidates().size(), 4U) << "three operators and a pair: what both rules find, once";
  EXPECT_EQ(candidates.classes().size(), 3U) << "abs, relu, and the pair";
  RandomEstimator estimator(1, /*may_fail=*/false);
  Partitioner partitioner(candidates, estimator);
  const SearchResult found = partitioner.Search([](CandidateIndex) { return true; }, {});
  ASSERT_FALSE(found.covers.empty());
  std::set<const PartitionSpec*> of_pair;
  for (const CandidateIndex i : candidates.candidates().indices()) {
    if (candidates.at(i).sub_graph.members().size() == 2) of_pair.insert(candidates.at(i).spec);
  }
  EXPECT_EQ(of_pair, (std::set<const PartitionSpec*>{&specs[1]}));
}

TEST(PartitionerTest, RowsThatAreNotGreedyAreForSearches) {
  class Library : public testing_graphs::AnyToolchain {
   public:
    Library() : AnyToolchain("library", FusionStyle::kNoFusion) {}
    std::vector<PatternTableEntry> PatternTable() const override {
      return {{"library.dense", "nn.dense(*, *)", {}}, {"library.exp", "exp(*)", {}, /*is_greedy=*/false}};
    }
  };
  const testing_graphs::AnyToolchain native("native", FusionStyle::kTVMFusion, 8);
  const Library library;
  const Var x = testing_graphs::Param("x", {4, 4});
  const Expr product = MakeCall("nn.dense", {x, testing_graphs::Weights({4, 4})});
  const Function function = testing_graphs::Typed({x}, MakeCall("nn.relu", {MakeCall("exp", {product})}));
  RandomEstimator estimator(1, /*may_fail=*/false);
  const std::vector<PartitionSpec> specs = testing_graphs::SpecsOf({&native, &library});
  const Candidates candidates(function, specs, 1);
  Partitioner partitioner(candidates, estimator);
  const auto chosen = [&](const Cover& cover) {
    std::multiset<std::string> toolchains;
    for (VariantIndex variant : cover.variants)
      toolchains.insert(partitioner.candidates().CandidateOf(variant).toolchain->name());
    return toolchains;
  };
  // Exponential and relu stay together, as the fall-back fuses them.
  const std::optional<Cover> greedy = GreedyCover(partitioner, library, {.fall_back = &native}, nullptr);
  ASSERT_TRUE(greedy.has_value());
  EXPECT_EQ(chosen(*greedy), (std::multiset<std::string>{"library", "native"}));
  // A search may take them.
  int num_candidates = 0;
  for (CandidateIndex candidate : partitioner.candidates().candidates().indices()) {
    num_candidates += partitioner.candidates().ToolchainOf(candidate) == &library ? 1 : 0;
  }
  EXPECT_EQ(num_candidates, 2);

  // Where nobody else computes an operator, they are taken after all.
  const Function bare = testing_graphs::Typed({x}, MakeCall("exp", {product}));
  const std::vector<PartitionSpec> specs_of_alone = testing_graphs::SpecsOf({&library});
  const Candidates candidates_of_alone(bare, specs_of_alone, 1);
  Partitioner alone(candidates_of_alone, estimator);
  const std::optional<Cover> own = GreedyCover(alone, library, {}, nullptr);
  ASSERT_TRUE(own.has_value());
  EXPECT_EQ(own->variants.size(), 2U);
  const SearchResult found = alone.Search([](CandidateIndex) { return true; }, {});
  ASSERT_FALSE(found.covers.empty());
  EXPECT_EQ(found.covers[0].variants.size(), 2U);
}

TEST(PartitionerTest, GreedyCoversLeaveToAnchorsWhatIsComputedInTheirRegisters) {
  const testing_graphs::AnyToolchain native("native", FusionStyle::kTVMFusion, 8);
  const Var x = testing_graphs::Param("x", {4, 4});
  const Expr scale = MakeScalar(0.5, kFloat32), zero = MakeScalar(0, kUInt8);
  const auto product = [&] { return MakeCall("nn.dense", {x, testing_graphs::Weights({4, 4})}); };
  const auto biased = [&] { return MakeCall("add", {product(), testing_graphs::Weights({4, 4})}); };
  const auto rounded = [&] {
    const Expr bytes = MakeCall("qnn.quantize", {biased(), scale, zero}, {{"out_dtype", kUInt8}});
    return MakeCall("qnn.dequantize", {bytes, scale, zero}, {{"out_dtype", kFloat32}});
  };
  // Of each partition of the sum of two branches how many products, additions, and operators between numbers and bytes
  // it has.
  using Counts = std::multiset<std::vector<int>>;
  const auto counts_of = [&](const Expr& a, const Expr& b) {
    const Function function = testing_graphs::Typed({x}, MakeCall("nn.relu", {MakeCall("add", {a, b})}));
    RandomEstimator estimator(1, /*may_fail=*/false);
    const std::vector<PartitionSpec> specs = testing_graphs::SpecsOf({&native});
    const Candidates candidates(function, specs, 1);
    Partitioner partitioner(candidates, estimator);
    const std::optional<Cover> greedy = GreedyCover(partitioner, native, {}, nullptr);
    EXPECT_TRUE(greedy.has_value());
    Counts counts;
    for (VariantIndex variant : greedy->variants) {
      std::vector<int> count(3);
      PostOrder(candidates.Find(CandidateHandle{variant.number()}).first.function->body(), [&](const Expr& expr) {
        const CallNode* call = As<CallNode>(expr);
        if (call == nullptr || call->op() == nullptr) return;
        count[0] += call->op()->name == "nn.dense" ? 1 : 0;
        count[1] += call->op()->name == "add" ? 1 : 0;
        count[2] += call->op()->name.starts_with("qnn.") ? 1 : 0;
      });
      counts.insert(count);
    }
    return counts;
  };
  EXPECT_EQ(counts_of(product(), product()), (Counts{{1, 0, 0}, {1, 1, 0}}));
  EXPECT_EQ(counts_of(biased(), biased()), (Counts{{1, 1, 0}, {1, 2, 0}}));
  EXPECT_EQ(counts_of(rounded(), rounded()), (Counts{{1, 1, 1}, {1, 2, 3}}));
}

TEST(PartitionerTest, IncompatibleToolchainsAreNeverMixed) {
  class Loner : public testing_graphs::AnyToolchain {
   public:
    using AnyToolchain::AnyToolchain;
    std::vector<Incompatibility> Incompatible() const override { return {{"acme", "for the test"}}; }
  };
  const testing_graphs::AnyToolchain native("native", FusionStyle::kTVMFusion, 8);
  const testing_graphs::AnyToolchain acme("acme", FusionStyle::kTVMFusion, 3);
  const Loner loner("loner", FusionStyle::kTVMFusion, 3);
  const testing_graphs::AnyToolchain friendly("loner", FusionStyle::kTVMFusion, 3);
  int num_dearer = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const Function function = testing_graphs::RandomFunction(2 + static_cast<int>(random() % 8), random);
    RandomEstimator estimator(seed, false);
    const auto search = [&](Partitioner& partitioner) {
      return partitioner.Search([](CandidateIndex) { return true; }, {.num_covers = 5, .slack = 1}).covers;
    };
    const std::vector<PartitionSpec> specs = testing_graphs::SpecsOf({&native, &acme, &loner});
    const Candidates candidates(function, specs, 1);
    const std::vector<PartitionSpec> unhindered_specs = testing_graphs::SpecsOf({&native, &acme, &friendly});
    const Candidates unhindered_candidates(function, unhindered_specs, 1);
    Partitioner partitioner(candidates, estimator);
    Partitioner unhindered(unhindered_candidates, estimator);
    std::vector<Cover> covers = search(partitioner);
    ASSERT_FALSE(covers.empty());
    num_dearer += covers[0].seconds > search(unhindered).at(0).seconds ? 1 : 0;
    if (const auto all = partitioner.AllCovers(1000)) covers.insert(covers.end(), all->begin(), all->end());
    if (const auto greedy = GreedyCover(partitioner, acme, {.fall_back = &loner}, nullptr)) covers.push_back(*greedy);
    for (const Cover& cover : covers) {
      std::set<std::string> met;
      for (VariantIndex variant : cover.variants)
        met.insert(partitioner.candidates().CandidateOf(variant).toolchain->name());
      EXPECT_FALSE(met.contains("acme") && met.contains("loner"));
    }
  }
  EXPECT_GT(num_dearer, 10) << "the costs never favour such a mix";
}

TEST(PartitionerTest, EqualPartitionsAreAskedForOnce) {
  class Counting : public CostEstimator {
   public:
    TuningRecord Estimate(const CostQuery& query) override {
      ++asked[query.workload];
      TuningRecord record;
      record.ok = true;
      record.p50 = query.work.boundary_bytes;
      return record;
    }
    double LowerBound(const CostQuery& query) override { return query.work.boundary_bytes / 2; }
    double ConvertSeconds(const Shape&, DataType, Layout, Layout) override { return 0; }
    std::map<std::string, int> asked;
  };
  const Var x = testing_graphs::Param("x", {2});
  Expr value = x;
  for (int block = 0; block < 6; ++block) value = MakeCall("exp", {MakeCall("tanh", {value})});
  const IRModule module = IRModule::FromFunction(testing_graphs::Typed({x}, value));
  const testing_graphs::AnyToolchain native("native", FusionStyle::kArbitrary, 2);
  for (const char* strategy : {"dijkstra", "astar", "sweep", "dp"}) {
    SCOPED_TRACE(strategy);
    Counting estimator;
    const std::vector<PartitionSpec> specs = testing_graphs::SpecsOf({&native});
    const Candidates candidates(module.main(), specs, 1);
    Partitioner partitioner(candidates, estimator);
    const SearchResult found = partitioner.Search([](CandidateIndex) { return true; }, {.strategy = strategy});
    ASSERT_FALSE(found.covers.empty());
    EXPECT_EQ(found.covers[0].variants.size(), 6U);
    // tanh, exp, tanh+exp and exp+tanh are all that there is.
    EXPECT_LE(found.num_exact, 4);
    EXPECT_LE(estimator.asked.size(), 4U);
    for (const auto& [_, times] : estimator.asked) EXPECT_EQ(times, 1);
    // What is known is a bound for the next search, which asks for nothing.
    partitioner.Search([](CandidateIndex) { return true; }, {.strategy = strategy});
    for (const auto& [_, times] : estimator.asked) EXPECT_EQ(times, 1);
  }
}

TEST(PartitionerTest, RivalsAreThoseThatDoTheSameAtNearlyTheSameCost) {
  class TieBreak : public CostEstimator {
   public:
    TuningRecord Estimate(const CostQuery& query) override {
      static const std::map<std::string, double> seconds{{"native", 1.03}, {"near", 1.0}, {"far", 1.2}};
      return Took(seconds.at(query.toolchain.name()));
    }
    std::vector<TuningRecord> BreakTies(const std::vector<CostQuery>& rivals) override {
      std::vector<TuningRecord> records;
      settled.emplace_back();
      for (const CostQuery& rival : rivals) {
        settled.back().push_back(rival.toolchain.name() + " " + rival.label);
        records.push_back(Took(rival.toolchain.name() == "native" ? 0.9 : 1.0));
      }
      return records;
    }
    double ConvertSeconds(const Shape&, DataType, Layout, Layout) override { return 0; }
    std::vector<std::vector<std::string>> settled;

   private:
    static TuningRecord Took(double seconds) {
      TuningRecord record;
      record.ok = true;
      record.p50 = seconds;
      return record;
    }
  };
  const testing_graphs::AnyToolchain native("native", FusionStyle::kNoFusion), near("near", FusionStyle::kNoFusion),
      far("far", FusionStyle::kNoFusion);
  const Var x = testing_graphs::Param("x", {2});
  const Expr body = MakeCall("exp", {MakeCall("tanh", {MakeCall("tanh", {x})})});
  TieBreak estimator;
  const std::vector<PartitionSpec> specs = testing_graphs::SpecsOf({&native, &near, &far});
  const Candidates candidates(testing_graphs::Typed({x}, body), specs, 1);
  Partitioner partitioner(candidates, estimator);
  const auto search = [&] {
    return partitioner.Search([](CandidateIndex) { return true; }, {.strategy = "dp"}).covers.at(0);
  };
  const Cover before = search();
  for (VariantIndex variant : before.variants)
    EXPECT_EQ(partitioner.candidates().CandidateOf(variant).toolchain->name(), "near");
  partitioner.BreakTies(before);
  // Equal partitions are settled once.
  const std::vector<std::vector<std::string>> wanted{{"native tanh", "near tanh"}, {"native exp", "near exp"}};
  EXPECT_EQ(estimator.settled, wanted);
  for (VariantIndex variant : search().variants)
    EXPECT_EQ(partitioner.candidates().CandidateOf(variant).toolchain->name(), "native");
}

TEST(PartitionerTest, ATableDecidesTheCover) {
  ProbeToolchains();  // registers the names
  const testing_graphs::AnyToolchain native("native", FusionStyle::kArbitrary, 2);
  const testing_graphs::AnyToolchain dnnl("dnnl", FusionStyle::kNoFusion);
  // tanh 3, exp 4, tanh 5, exp 6: equal pairs, of which the table tells the second apart.
  const Var x = testing_graphs::Param("x", {2});
  Expr value = x;
  for (int block = 0; block < 2; ++block) value = MakeCall("exp", {MakeCall("tanh", {value})});
  const IRModule module = IRModule::FromFunction(testing_graphs::Typed({x}, value));
  const TemporaryFolder folder;
  TuningDatabase database((folder / "tuning.db").string());
  const std::string table = R"({"op_cost": {"native": {"tanh": 5, "exp": 4}, "dnnl": {"tanh": 2, "exp": 6}},
      "fusion_benefit": 0.25, "overrides": [{"target": "native", "inside": [5, 6], "cost": 100}]})";
  for (const char* strategy : {"dijkstra", "astar", "sweep", "dp", "exhaustive"}) {
    SCOPED_TRACE(strategy);
    const std::vector<PartitionSpec> specs = testing_graphs::SpecsOf({&native, &dnnl});
    const Candidates candidates(module.main(), specs, 1);
    const auto estimator = MakeEstimator("mock=" + table, {.database = database,
                                                           .runner = nullptr,
                                                           .candidates = candidates,
                                                           .options = {},
                                                           .on_measure = nullptr,
                                                           .argument = ""});
    Partitioner partitioner(candidates, *estimator);
    const SearchResult found = partitioner.Search([](CandidateIndex) { return true; }, {.strategy = strategy});
    ASSERT_FALSE(found.covers.empty());
    std::vector<std::pair<std::string, std::vector<int>>> chosen;
    for (VariantIndex variant : found.covers[0].variants) {
      chosen.emplace_back(partitioner.candidates().CandidateOf(variant).toolchain->name(),
                          partitioner.candidates().CandidateOf(variant).sub_graph.members());
    }
    // Both pairs together would be 10.5, all operators apart 12.
    const std::vector<std::pair<std::string, std::vector<int>>> wanted{
        {"native", {3, 4}}, {"dnnl", {5}}, {"native", {6}}};
    EXPECT_EQ(chosen, wanted);
    EXPECT_NEAR(found.covers[0].seconds, 5.25 + 2 + 4, 1e-6);
  }
}

/// Takes what is not refused.
class Picky : public testing_graphs::AnyToolchain {
 public:
  Picky(std::string name, std::set<std::string> refused)
      : AnyToolchain(std::move(name), FusionStyle::kNoFusion), refused_(std::move(refused)) {}
  Result<void> SupportsCall(const CallNode& call) const override {
    if (call.op() != nullptr && refused_.contains(call.op()->name)) return Reason{"no " + call.op()->name, name()};
    return {};
  }

 private:
  std::set<std::string> refused_;
};

TEST(PartitionerTest, AGraphThatCannotBeCoveredIsExplained) {
  const Picky native("native", {"tanh", "exp"}), acme("acme", {"tanh"});
  const Var x = testing_graphs::Param("x", {2});
  const Expr tanh = MakeCall("tanh", {MakeCall("abs", {x})});
  tanh->set_span({"tanh_7"});
  const Expr exp = MakeCall("exp", {tanh});
  exp->set_span({"exp_9"});
  class Failing : public CostEstimator {
   public:
    TuningRecord Estimate(const CostQuery& query) override {
      TuningRecord record;
      record.ok = query.label != "exp";
      record.reason = record.ok ? "" : "crashed with signal 11";
      record.p50 = 1;
      return record;
    }
    double ConvertSeconds(const Shape&, DataType, Layout, Layout) override { return 0; }
  } estimator;
  const std::vector<PartitionSpec> specs = testing_graphs::SpecsOf({&native, &acme});
  const Candidates candidates(testing_graphs::Typed({x}, exp), specs, 1);
  Partitioner partitioner(candidates, estimator);
  for (const char* strategy : {"dijkstra", "astar", "sweep", "dp", "exhaustive"}) {
    SCOPED_TRACE(strategy);
    const SearchResult found = partitioner.Search([](CandidateIndex) { return true; }, {.strategy = strategy});
    EXPECT_TRUE(found.covers.empty());
    const std::string text = partitioner.ExplainStuck(partitioner.NodesAt(found.stuck_at));
    EXPECT_NE(text.find("'tanh' (node tanh_7), acme: no tanh, native: no tanh"), std::string::npos) << text;
    // What was never asked for is no reason: with tanh in nobody's candidates the search may not come to exp.
    if (text.find("'exp'") == std::string::npos) continue;
    EXPECT_NE(text.find("'exp' (node exp_9), acme: crashed with signal 11, native: no exp"), std::string::npos) << text;
  }
  std::vector<int> open;
  EXPECT_FALSE(GreedyCover(partitioner, acme, {.fall_back = &native}, &open).has_value());
  EXPECT_NE(partitioner.ExplainStuck(open).find("'tanh'"), std::string::npos);
}

}  // namespace
}  // namespace collage
