#include "search/find_covers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "collage/ir/infer_type.h"
#include "partition/extract.h"
#include "search/cover_problem.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Random costs, some infinite; counts how many were asked for.
class RandomCosts : public BasicCoverCosts {
 public:
  RandomCosts(size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    for (size_t i = 0; i < count; ++i) costs_.push_back(random() % 8 == 0 ? kInfinity : 1.0 + random() % 16);
  }
  double LowerBound(VariantIndex /*variant*/) override { return 0; }
  double Exact(VariantIndex variant) override { return costs_[variant]; }
  double Convert(int, Format, Format) override { return 0; }
  double Transition(VariantIndex /*variant*/) override { return 0.5; }

 private:
  IndexedVector<VariantIndex, double> costs_;
};

/// Random dataflow of `count` operators over one input.
Function RandomGraph(int count, std::mt19937& random) {
  const Var x = MakeVar("x", TensorType(Shape{4}, kFloat32));
  std::vector<Expr> values{x};
  const auto pick = [&] { return values[values.size() - 1 - random() % std::min<size_t>(values.size(), 3)]; };
  for (int i = 0; i < count; ++i) {
    const Expr last = values.back();  // every value is used
    values.push_back(random() % 2 == 0 ? MakeCall("exp", {last}) : MakeCall("add", {last, pick()}));
  }
  const Function function = MakeFunction({x}, values.back());
  InferType(function);
  return function;
}

/// Least cost by trying all selections of candidates.
double BruteForce(const std::vector<IndexSet>& covers, const IndexSet& left, RandomCosts& costs) {
  if (left.IsZero()) return 0;
  double best = kInfinity;
  const int first = static_cast<int>(left.FirstInside());
  for (size_t i = 0; i < covers.size(); ++i) {
    if (!covers[i].Contains(first) || !covers[i].IsSubset(left)) continue;
    const VariantIndex variant(static_cast<int>(i));
    const double own = costs.Exact(variant) + costs.Transition(variant);
    if (own < best) best = std::min(best, own + BruteForce(covers, left - covers[i], costs));
  }
  return best;
}

TEST(FindCoversTest, EqualsExhaustiveSearchOnRandomGraphs) {
  const testing_graphs::AnyToolchain toolchain;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const DataflowGraph graph(RandomGraph(3 + static_cast<int>(random() % 6), random));
    RuleLog log;
    const CandidateList candidates(GatherPartitionRule(toolchain)->AllCandidates(graph, toolchain, log));
    IndexSet all(graph.size());
    VariantList variants;
    std::vector<IndexSet> covers;
    for (int i = 0; i < static_cast<int>(graph.size()); ++i) {
      if (graph.OpAt(i) != nullptr) all.Add(i);
    }
    for (CandidateIndex i : candidates.indices()) {
      variants.push_back({i, PlainLayouts(candidates[i].sub_graph.input().size(), 1)});
      covers.push_back(candidates[i].sub_graph.inside());
    }
    RandomCosts costs(candidates.size(), seed + 1000);
    const SearchResult found = FindCovers(graph, candidates, variants, std::vector<bool>(graph.size()), costs,
                                          {.num_covers = 3, .beam = 1 << 20});
    const double expected = BruteForce(covers, all, costs);
    if (expected == kInfinity) {
      EXPECT_TRUE(found.covers.empty());
      EXPECT_FALSE(found.stuck_at.empty());
      continue;
    }
    ASSERT_FALSE(found.covers.empty());
    EXPECT_DOUBLE_EQ(found.covers[0].seconds, expected);
    for (size_t i = 1; i < found.covers.size(); ++i) EXPECT_GE(found.covers[i].seconds, found.covers[i - 1].seconds);
  }
}

/// Costs given by hand; counts what was asked for.
class FixedCosts : public BasicCoverCosts {
 public:
  explicit FixedCosts(IndexedVector<VariantIndex, double> exact, double transition = 0)
      : exact_(std::move(exact)), transition_(transition) {}
  double LowerBound(VariantIndex variant) override { return bounds.empty() ? 0 : bounds[variant]; }
  double Exact(VariantIndex variant) override {
    asked.push_back(variant);
    return exact_[variant];
  }
  double Convert(int, Format, Format) override { return convert; }
  double Transition(VariantIndex /*variant*/) override { return transition_; }

  IndexedVector<VariantIndex, double> bounds;
  std::vector<VariantIndex> asked;
  double convert = 0;

 private:
  IndexedVector<VariantIndex, double> exact_;
  double transition_;
};

VariantList PlainVariants(const DataflowGraph& graph, const CandidateList& candidates) {
  VariantList variants;
  for (CandidateIndex i : candidates.indices()) {
    const Boundary boundary = BoundaryOf(graph, candidates[i].sub_graph);
    variants.push_back({i, PlainLayouts(boundary.inputs.size(), boundary.outputs.size())});
  }
  return variants;
}

std::vector<bool> NoneEligible(const DataflowGraph& graph) { return std::vector<bool>(graph.size()); }

TEST(FindCoversTest, AsksOnlyForCostsThatMayMatter) {
  // abs; relu; relu as 3, 4, 5: singles for 1 each, and unions whose bounds say that they cannot win.
  const testing_graphs::AnyToolchain toolchain;
  const DataflowGraph graph(testing_graphs::Std());
  CandidateList candidates;
  for (const std::vector<int>& inside : testing_graphs::Sets{{3}, {4}, {5}, {3, 4}, {4, 5}, {3, 4, 5}}) {
    candidates.push_back({"c", SubGraph(graph, inside), &toolchain});
  }
  FixedCosts costs({1, 1, 1, 9, 9, 9});
  costs.bounds = {0.5, 0.5, 0.5, 8, 8, 8};
  const SearchResult found =
      FindCovers(graph, candidates, PlainVariants(graph, candidates), NoneEligible(graph), costs, {});
  ASSERT_EQ(found.covers.size(), 1u);
  EXPECT_EQ(NumbersOf(found.covers[0].variants), (std::vector<int>{0, 1, 2}));
  EXPECT_DOUBLE_EQ(found.covers[0].seconds, 3);
  EXPECT_EQ(NumbersOf(costs.asked), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(found.num_exact, 3);
}

TEST(FindCoversTest, ATransitionMakesFewerPartitionsBetter) {
  const testing_graphs::AnyToolchain toolchain;
  const DataflowGraph graph(testing_graphs::Std());
  CandidateList candidates;
  for (const std::vector<int>& inside : testing_graphs::Sets{{3}, {4}, {5}, {3, 4, 5}}) {
    candidates.push_back({"c", SubGraph(graph, inside), &toolchain});
  }
  FixedCosts cheap({1, 1, 1, 3.5}, 0.1);
  FixedCosts dear({1, 1, 1, 3.5}, 0.3);
  const auto variants = PlainVariants(graph, candidates);
  EXPECT_EQ(FindCovers(graph, candidates, variants, NoneEligible(graph), cheap, {}).covers[0].variants.size(), 3u);
  EXPECT_EQ(FindCovers(graph, candidates, variants, NoneEligible(graph), dear, {}).covers[0].variants.size(), 1u);
}

TEST(FindCoversTest, TiesFallToPriorityThenOrder) {
  class Second : public testing_graphs::AnyToolchain {
    int priority() const override { return 2; }
  };
  const testing_graphs::AnyToolchain first;
  const Second second;
  const DataflowGraph graph(testing_graphs::Std());
  CandidateList candidates;
  for (int node : {3, 4, 5}) {
    candidates.push_back({"c", SubGraph(graph, {node}), &second});
    candidates.push_back({"c", SubGraph(graph, {node}), &first});
    candidates.push_back({"c", SubGraph(graph, {node}), &first});
  }
  FixedCosts costs(IndexedVector<VariantIndex, double>(9, 1));
  const auto found = FindCovers(graph, candidates, PlainVariants(graph, candidates), NoneEligible(graph), costs, {});
  EXPECT_EQ(NumbersOf(found.covers[0].variants), (std::vector<int>{1, 4, 7}));
}

TEST(FindCoversTest, NamesTheNodesThatNothingCovers) {
  const testing_graphs::AnyToolchain toolchain;
  const DataflowGraph graph(testing_graphs::Std());
  CandidateList candidates{{"c", SubGraph(graph, {3}), &toolchain}, {"c", SubGraph(graph, {4}), &toolchain}};
  FixedCosts costs({1, kInfinity});
  const auto search = [&](const char* strategy) {
    return FindCovers(graph, candidates, PlainVariants(graph, candidates), NoneEligible(graph), costs,
                      {.strategy = strategy});
  };
  EXPECT_TRUE(search("dijkstra").covers.empty());
  const CoverProblem problem =
      MakeCoverProblem(graph, candidates, PlainVariants(graph, candidates), NoneEligible(graph));
  EXPECT_EQ(problem.NodesAt(search("dijkstra").stuck_at), (std::vector<int>{4, 5}));
  // No cost is asked for when there is no cover whatever the costs.
  EXPECT_TRUE(search("sweep").covers.empty());
  EXPECT_EQ(problem.NodesAt(search("sweep").stuck_at), (std::vector<int>{5}));
  EXPECT_EQ(search("sweep").num_exact, 0);
}

TEST(FindCoversTest, DeadEndsArePassedOver) {
  // {3,4} is cheap but 5 alone cannot be run; only {4,5} can.
  const testing_graphs::AnyToolchain toolchain;
  const DataflowGraph graph(testing_graphs::Std());
  CandidateList candidates;
  for (const std::vector<int>& inside : testing_graphs::Sets{{3, 4}, {3}, {4, 5}})
    candidates.push_back({"c", SubGraph(graph, inside), &toolchain});
  FixedCosts costs({0.1, 5, 5});
  const SearchResult found =
      FindCovers(graph, candidates, PlainVariants(graph, candidates), NoneEligible(graph), costs, {});
  ASSERT_EQ(found.covers.size(), 1u);
  EXPECT_EQ(NumbersOf(found.covers[0].variants), (std::vector<int>{1, 2}));
}

TEST(FindCoversTest, CoversThatCannotBeOrderedAreLeftOut) {
  const Var x = testing_graphs::Param("x", {2}), y = testing_graphs::Param("y", {2});
  const Expr a1 = MakeCall("abs", {x}), b1 = MakeCall("exp", {y});
  const Expr a2 = MakeCall("nn.relu", {b1}), b2 = MakeCall("tanh", {a1});
  const DataflowGraph graph(testing_graphs::Typed({x, y}, MakeTuple({a1, b1, a2, b2})));
  const auto at = [&](const Expr& e) { return graph.IndexOf(e); };
  const testing_graphs::AnyToolchain toolchain;
  CandidateList candidates;
  for (const std::vector<int>& inside : testing_graphs::Sets{{at(a1), at(a2)}, {at(b1), at(b2)}, {at(a1)}, {at(a2)}}) {
    candidates.push_back({"c", SubGraph(graph, inside), &toolchain});
  }
  FixedCosts costs({1, 1, 0.6, 0.6});
  const SearchResult found = FindCovers(graph, candidates, PlainVariants(graph, candidates), NoneEligible(graph), costs,
                                        {.num_covers = 2, .slack = 1});
  ASSERT_EQ(found.covers.size(), 1u);
  EXPECT_DOUBLE_EQ(found.covers[0].seconds, 2.2);
}

TEST(FindCoversTest, TheBeamIsReported) {
  // add(abs, exp): with abs covered, add may be too before exp is: two states wait for exp.
  const Var x = testing_graphs::Param("x", {2});
  const Expr abs = MakeCall("abs", {x}), exp = MakeCall("exp", {x}), add = MakeCall("add", {abs, exp});
  const DataflowGraph graph(testing_graphs::Typed({x}, add));
  const auto at = [&](const Expr& e) { return graph.IndexOf(e); };
  const testing_graphs::AnyToolchain toolchain;
  CandidateList candidates;
  for (const std::vector<int>& inside : testing_graphs::Sets{{at(abs)}, {at(exp)}, {at(add)}, {at(abs), at(add)}}) {
    candidates.push_back({"c", SubGraph(graph, inside), &toolchain});
  }
  FixedCosts costs({1, 1, 1, 1.5});
  const auto variants = PlainVariants(graph, candidates);
  const auto search = [&](int beam) {
    return FindCovers(graph, candidates, variants, NoneEligible(graph), costs,
                      {.strategy = "dijkstra", .num_covers = 2, .slack = 9, .beam = beam});
  };
  EXPECT_EQ(search(2).num_dropped, 0);
  EXPECT_EQ(search(2).covers.size(), 2u);
  EXPECT_DOUBLE_EQ(search(2).covers[0].seconds, 2.5);
  EXPECT_GT(search(1).num_dropped, 0);
  EXPECT_FALSE(search(1).is_exact);
  ASSERT_EQ(search(1).covers.size(), 1u);
  EXPECT_DOUBLE_EQ(search(1).covers[0].seconds, 3) << "what the beam dropped was better";
  EXPECT_EQ(search(0).num_dropped, 0);
}

/// All covers as sorted lists of variants.
void AllCovers(const IndexedVector<VariantIndex, IndexSet>& covers, const IndexSet& left,
               std::vector<VariantIndex>& chosen, std::vector<std::vector<VariantIndex>>& all) {
  if (left.IsZero()) {
    all.push_back(chosen);
    std::sort(all.back().begin(), all.back().end());
    return;
  }
  const int first = static_cast<int>(left.FirstInside());
  for (VariantIndex i : covers.indices()) {
    if (!covers[i].Contains(first) || !covers[i].IsSubset(left)) continue;
    chosen.push_back(i);
    AllCovers(covers, left - covers[i], chosen, all);
    chosen.pop_back();
  }
}

/// The maker of a value, and the layout in which it must be for `node` to be had in `layout`: reshapes work on plain
/// ones.
std::pair<int, Layout> SourceOf(const DataflowGraph& graph, int node, Layout layout) {
  while (graph.OpAt(node) != nullptr && graph.OpAt(node)->is_reshape) {
    node = graph.node(node).inputs[1];
    layout = Layout::kPlain;
  }
  return {node, layout};
}

/// Conversions that a cover needs: each value is made in one layout and converted at most once, if anyone wants the
/// other.
double ConversionSeconds(const DataflowGraph& graph, const CandidateList& candidates, const VariantList& variants,
                         const std::vector<VariantIndex>& cover, const std::vector<bool>& eligible, CoverCosts& costs) {
  std::map<int, Layout> made;
  std::set<std::pair<int, Layout>> wanted;
  const int body = graph.IndexOf(graph.function()->body());
  std::vector<int> results{body};
  if (graph.node(body).expr->kind() == ExprKind::kTuple) results = graph.node(body).inputs;
  for (int result : results) {
    const auto source = SourceOf(graph, result, Layout::kPlain);
    if (eligible[static_cast<size_t>(source.first)]) wanted.insert(source);
  }
  for (VariantIndex v : cover) {
    const CandidateVariant& variant = variants[v];
    const Boundary boundary = BoundaryOf(graph, candidates[variant.candidate].sub_graph);
    for (size_t i = 0; i < boundary.outputs.size(); ++i) made[boundary.outputs[i].node] = variant.layouts.outputs[i];
    for (size_t i = 0; i < boundary.inputs.size(); ++i) {
      const auto source = SourceOf(graph, boundary.inputs[i].node, variant.layouts.inputs[i]);
      if (eligible[static_cast<size_t>(source.first)]) wanted.insert(source);
    }
  }
  double seconds = 0;
  for (const auto& [node, layout] : wanted) {
    if (made.at(node) != layout)
      seconds += costs.Convert(node, static_cast<Format>(made.at(node)), static_cast<Format>(layout));
  }
  return seconds;
}

/// A random choice of layouts at each candidate's boundary, two draws for each.
VariantList DrawVariants(const DataflowGraph& graph, const CandidateList& candidates, const std::vector<bool>& eligible,
                         std::mt19937& random) {
  VariantList variants;
  for (CandidateIndex c : candidates.indices()) {
    const Boundary boundary = BoundaryOf(graph, candidates[c].sub_graph);
    std::set<BoundaryLayouts> choices;
    for (int k = 0; k < 2; ++k) {
      const auto draw = [&](const std::vector<BoundaryValue>& values) {
        std::vector<Layout> layouts;
        for (const BoundaryValue& v : values) {
          const bool may = v.field < 0 && eligible[static_cast<size_t>(v.node)];
          layouts.push_back(may && random() % 2 == 0 ? Layout::kChannelsLast : Layout::kPlain);
        }
        return layouts;
      };
      choices.insert({draw(boundary.inputs), draw(boundary.outputs)});
    }
    for (const BoundaryLayouts& layouts : choices) variants.push_back({c, layouts});
  }
  return variants;
}

TEST(FindCoversTest, LayoutsAndTheBestThreeEqualExhaustiveSearch) {
  const testing_graphs::AnyToolchain toolchain;
  int num_converting = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const DataflowGraph graph(testing_graphs::RandomFunction(2 + static_cast<int>(random() % 3), random));
    RuleLog log;
    CandidateList candidates(GatherPartitionRule(toolchain)->AllCandidates(graph, toolchain, log));
    std::shuffle(candidates.begin() + static_cast<std::ptrdiff_t>(candidates.size() / 2), candidates.end(), random);
    std::vector<bool> eligible(graph.size());
    IndexSet all(graph.size());
    for (int i = 0; i < static_cast<int>(graph.size()); ++i) {
      if (graph.OpAt(i) == nullptr || graph.OpAt(i)->is_reshape) continue;
      all.Add(i);
      const bool returned = graph.node(i).outputs.back() >= graph.IndexOf(graph.function()->body());
      eligible[static_cast<size_t>(i)] =
          !returned && AsTensorType(graph.node(i).expr->checked_type()) != nullptr && random() % 2 == 0;
    }
    const VariantList variants = DrawVariants(graph, candidates, eligible, random);
    IndexedVector<VariantIndex, IndexSet> covers;
    for (const CandidateVariant& variant : variants) {
      covers.push_back(candidates[variant.candidate].sub_graph.inside() & all);
    }
    IndexedVector<VariantIndex, double> exact;
    for (size_t v = 0; v < variants.size(); ++v) exact.push_back(1 + random() % 64);
    FixedCosts costs(exact, 2);
    costs.convert = 3;
    for (double cost : exact) costs.bounds.push_back(cost - random() % 2);
    std::vector<std::vector<VariantIndex>> exhaustive;
    std::vector<VariantIndex> chosen;
    AllCovers(covers, all, chosen, exhaustive);
    if (exhaustive.size() > 20'000) continue;
    std::vector<double> totals;
    for (const std::vector<VariantIndex>& cover : exhaustive) {
      double seconds = ConversionSeconds(graph, candidates, variants, cover, eligible, costs);
      for (VariantIndex v : cover) seconds += exact[v] + 2;
      totals.push_back(seconds);
    }
    std::sort(totals.begin(), totals.end());
    const SearchResult found =
        FindCovers(graph, candidates, variants, eligible, costs, {.num_covers = 3, .slack = 100, .beam = 0});
    ASSERT_EQ(found.covers.size(), std::min<size_t>(3, totals.size()));
    for (size_t i = 0; i < found.covers.size(); ++i) {
      EXPECT_DOUBLE_EQ(found.covers[i].seconds, totals[i]) << "cover " << i;
      num_converting += ConversionSeconds(graph, candidates, variants, found.covers[i].variants, eligible, costs) > 0;
    }
  }
  EXPECT_GT(num_converting, 20) << "the test does not try conversions";
}

/// A transformer's blocks: about 30 operators each.
Function Transformer(int blocks) {
  const Var x = testing_graphs::Param("x", {16, 32});
  const auto dense = [](const Expr& e) {
    return MakeCall("add",
                    {MakeCall("nn.dense", {e, testing_graphs::Weights({32, 32})}), testing_graphs::Weights({32})});
  };
  const auto norm = [](const Expr& e) {
    const Expr mean = MakeCall("mean", {e}, {{"axis", std::vector<int64_t>{1}}, {"keepdims", true}});
    const Expr centred = MakeCall("subtract", {e, mean});
    const Expr squares = MakeCall("mean", {MakeCall("multiply", {centred, centred})},
                                  {{"axis", std::vector<int64_t>{1}}, {"keepdims", true}});
    const Expr scaled =
        MakeCall("multiply", {centred, MakeCall("rsqrt", {MakeCall("add", {squares, testing_graphs::Scalar(1e-5)})})});
    return MakeCall("add",
                    {MakeCall("multiply", {scaled, testing_graphs::Weights({32})}), testing_graphs::Weights({32})});
  };
  Expr value = x;
  for (int i = 0; i < blocks; ++i) {
    const Expr a = norm(value);
    const Expr scores = MakeCall("nn.softmax", {MakeCall("nn.dense", {dense(a), dense(a)})}, {{"axis", -1}});
    const Expr mixed =
        MakeCall("nn.dense", {scores, MakeCall("transpose", {dense(a)}, {{"axes", std::vector<int64_t>{1, 0}}})});
    value = MakeCall("add", {value, dense(mixed)});
    const Expr h = dense(norm(value));
    const Expr gate = MakeCall(
        "add", {MakeCall("tanh", {MakeCall("multiply", {h, testing_graphs::Scalar(0.8)})}), testing_graphs::Scalar(1)});
    value = MakeCall("add", {value, dense(MakeCall("multiply", {h, gate}))});
  }
  return testing_graphs::Typed({x}, value);
}

TEST(FindCoversTest, ManyBlocksStayFast) {
  const testing_graphs::AnyToolchain joiner("acme", FusionStyle::kArbitrary, 4, true);
  const testing_graphs::AnyToolchain fuser("native", FusionStyle::kTVMFusion, 8);
  const DataflowGraph graph(Transformer(46));
  ASSERT_GT(graph.size(), 2500u);
  const auto start = std::chrono::steady_clock::now();
  RuleLog log;
  CandidateList candidates(GatherPartitionRule(joiner)->AllCandidates(graph, joiner, log));
  for (CandidatePartition& c : GatherPartitionRule(fuser)->AllCandidates(graph, fuser, log))
    candidates.push_back(std::move(c));
  IndexedVector<VariantIndex, double> exact;
  for (const CandidatePartition& c : candidates)
    exact.push_back(1 + 0.1 * static_cast<double>(c.sub_graph.members().size()));
  FixedCosts costs(exact, 0.5);
  const SearchResult found =
      FindCovers(graph, candidates, PlainVariants(graph, candidates), NoneEligible(graph), costs, {.num_covers = 3});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_FALSE(found.covers.empty());
  // Seconds here, minutes if anything goes up with the square of the graph: no precise clock is needed to tell.
  EXPECT_LT(seconds, 20) << candidates.size() << " candidates, " << found.num_states << " states";
  RecordProperty("candidates", static_cast<int>(candidates.size()));
  std::printf("%zu nodes, %zu candidates, %lld states, %lld dropped, %.2f s\n", graph.size(), candidates.size(),
              static_cast<long long>(found.num_states), static_cast<long long>(found.num_dropped), seconds);
}

}  // namespace
}  // namespace collage
