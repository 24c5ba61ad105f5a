#include "search/find_covers.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "collage/ir/infer_type.h"

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Anything : public Toolchain {
 public:
  std::string name() const override { return "acme"; }
  std::string description() const override { return "for tests"; }
  Availability Probe() const override { return {true, "1", "", ""}; }
  int priority() const override { return 1; }
  Result<void> SupportsCall(const CallNode&) const override { return {}; }
  FusionStyle fusion_style() const override { return FusionStyle::kArbitrary; }
  int max_depth() const override { return 3; }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest&) const override { return Reason{"never", "acme"}; }
};

/// Random costs, some infinite; counts how many were asked for.
class RandomCosts : public CoverCosts {
 public:
  RandomCosts(size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    for (size_t i = 0; i < count; ++i) costs_.push_back(random() % 8 == 0 ? kInfinity : 1.0 + random() % 16);
  }
  double LowerBound(int) override { return 0; }
  double Exact(int variant) override { return costs_[static_cast<size_t>(variant)]; }
  double Convert(int, Layout, Layout) override { return 0; }
  double Transition() override { return 0.5; }

 private:
  std::vector<double> costs_;
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
    const double own = costs.Exact(static_cast<int>(i)) + costs.Transition();
    if (own < best) best = std::min(best, own + BruteForce(covers, left - covers[i], costs));
  }
  return best;
}

TEST(FindCoversTest, EqualsExhaustiveSearchOnRandomGraphs) {
  const Anything toolchain;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const DataflowGraph graph(RandomGraph(3 + static_cast<int>(random() % 6), random));
    RuleLog log;
    const auto candidates = GatherPartitionRule(toolchain)->AllCandidates(graph, toolchain, log);
    IndexSet all(graph.size());
    std::vector<CandidateVariant> variants;
    std::vector<IndexSet> covers;
    for (int i = 0; i < static_cast<int>(graph.size()); ++i) {
      if (graph.OpAt(i) != nullptr) all.Add(i);
    }
    for (size_t i = 0; i < candidates.size(); ++i) {
      variants.push_back({static_cast<int>(i), PlainLayouts(candidates[i].sub_graph.input().size(), 1)});
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

}  // namespace
}  // namespace collage
