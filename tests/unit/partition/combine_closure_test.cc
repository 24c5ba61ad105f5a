// combine_closure_test.cc: Combine with all its combiners against the closure by trying everything with everything
// until nothing new comes, on random graphs with tuples and constants. Seeds are printed on failure.
#include <gtest/gtest.h>

#include <set>

#include "unit/partition/brute_force.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using namespace testing_graphs;
using namespace brute_force;
using Kind = OpPatternKind;
using SetOfSets = std::set<std::vector<int>>;

/// One round of all combiners over all that is known, by their definitions.
class Round {
 public:
  Round(const DataflowGraph& graph, const PathTable& paths, const CombineOptions& options, const SetOfSets& known)
      : graph_(graph), paths_(paths), options_(options), result_(known) {
    for (const std::vector<int>& one : known) all_.emplace_back(graph, one);
  }

  SetOfSets Run() {
    for (const SubGraph& one : all_) {
      for (const SubGraph& other : all_) JoinPair(one, other);
      if (options_.tuple_projections) AddProjections(one);
      if (options_.constants) AddConstants(one);
      if (options_.tuple_args && one.kind() <= Kind::kInjective) AddTuples(one);
    }
    return result_;
  }

 private:
  void Add(const Set& members) {
    if (IsConvex(paths_, members)) result_.insert({members.begin(), members.end()});
  }

  static bool Touch(const SubGraph& up, const SubGraph& down) {
    const Set entry = ToSet(down.entry());
    return std::any_of(up.output().begin(), up.output().end(), [&](int output) { return entry.contains(output); });
  }

  void JoinPair(const SubGraph& up, const SubGraph& down) {
    const bool fits = std::any_of(options_.kinds.begin(), options_.kinds.end(), [&](const CombinerKinds& kinds) {
      return KindByShapes(graph_, up) <= kinds.up && KindByShapes(graph_, down) <= kinds.down;
    });
    if (!options_.join_anything && !fits) return;
    if (options_.max_depth > 0 && up.depth() + down.depth() > options_.max_depth) return;
    if (up.inside().Intersects(down.inside()) || !Touch(up, down)) return;
    Set both = ToSet(up.members());
    both.insert(down.members().begin(), down.members().end());
    Add(both);
  }

  void AddProjections(const SubGraph& one) {
    for (int output : one.output()) {
      if (graph_.LabelAt(output) != "proj") continue;
      Set more = ToSet(one.members());
      more.insert(output);
      Add(more);
    }
  }

  void AddConstants(const SubGraph& one) {
    Set more = ToSet(one.members());
    for (int input : one.input()) {
      if (graph_.IsConstant(input)) more.insert(input);
    }
    if (more.size() > one.members().size()) Add(more);
  }

  void AddTuples(const SubGraph& consumer) {
    for (int tuple : consumer.input()) {
      if (graph_.LabelAt(tuple) != "tuple") continue;
      Set with = ToSet(consumer.members());
      with.insert(tuple);
      const Set fields = ToSet(graph_.node(tuple).inputs);
      AddMakers({fields.begin(), fields.end()}, 0, with, {});
    }
  }

  /// Every choice of an injective candidate for each field that has it as an exit; two are disjoint or the same.
  void AddMakers(const std::vector<int>& fields, size_t from, const Set& with,
                 const std::vector<const SubGraph*>& chosen) {
    if (from == fields.size()) return Add(with);
    for (const SubGraph& maker : all_) {
      const Set exit = ToSet(maker.exit());
      if (maker.kind() > Kind::kInjective || !exit.contains(fields[from])) continue;
      const bool is_chosen = std::any_of(chosen.begin(), chosen.end(),
                                         [&](const SubGraph* one) { return one->members() == maker.members(); });
      const auto is_taken = [&](int index) { return with.contains(index); };
      if (!is_chosen && std::any_of(maker.members().begin(), maker.members().end(), is_taken)) continue;
      Set more = with;
      more.insert(maker.members().begin(), maker.members().end());
      std::vector<const SubGraph*> all = chosen;
      all.push_back(&maker);
      AddMakers(fields, from + 1, more, all);
    }
  }

  const DataflowGraph& graph_;
  const PathTable& paths_;
  const CombineOptions& options_;
  SetOfSets result_;
  std::vector<SubGraph> all_;
};

constexpr size_t kMostSets = 250;  // more take too long to try all with all

SetOfSets Closure(const DataflowGraph& graph, const CombineOptions& options, const Sets& base) {
  const PathTable paths = Paths(graph);
  SetOfSets known(base.begin(), base.end());
  for (size_t before = 0; before != known.size() && known.size() <= kMostSets;) {
    before = known.size();
    known = Round(graph, paths, options, known).Run();
  }
  return known;
}

TEST(CombineClosureTest, AllCombinersTogether) {
  const std::vector<CombinerKinds> choices{{Kind::kOutEWiseFusable, Kind::kBroadcast},
                                           {Kind::kBroadcast, Kind::kCommReduce},
                                           {Kind::kInjective, Kind::kInjective},
                                           {Kind::kTuple, Kind::kOpaque}};
  size_t num_sets = 0, num_tuples = 0, num_constants = 0, num_graphs = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const DataflowGraph graph(RandomFunction(1 + static_cast<int>(random() % 3), random), Boundaries::kExact);
    CombineOptions options{.max_depth = 1 + static_cast<int>(random() % 4), .only_valid = false};
    for (const CombinerKinds& kinds : choices) {
      if (random() % 2 == 0) options.kinds.push_back(kinds);
    }
    options.join_anything = random() % 8 == 0;
    options.tuple_args = random() % 2 == 0;
    options.tuple_projections = random() % 2 == 0;
    options.constants = random() % 2 == 0;
    options.max_tuple_choices = 1'000'000;
    const SetOfSets expected = Closure(graph, options, Find(graph, *OpCallByKindRule()));
    if (expected.size() > kMostSets) continue;
    const Sets found = Find(graph, *CombineRule(options, OpCallByKindRule()));
    ASSERT_EQ(SetOfSets(found.begin(), found.end()), expected);
    ASSERT_EQ(found.size(), expected.size()) << "each set once";
    ++num_graphs;
    num_sets += expected.size();
    for (const std::vector<int>& set : expected) {
      const auto has = [&](const char* label) {
        return std::any_of(set.begin(), set.end(), [&](int index) { return graph.LabelAt(index) == label; });
      };
      num_tuples += has("tuple") ? 1 : 0;
      num_constants += has("const") ? 1 : 0;
    }
  }
  EXPECT_GT(num_graphs, 2000u);
  EXPECT_GT(num_sets, 10'000u);
  EXPECT_GT(num_tuples, 500u);
  EXPECT_GT(num_constants, 500u);
}

TEST(CombineRuleTest, BroadcastsAreElementWiseWhereShapesAgree) {
  const Var x = Param("x", {4, 6}), y = Param("y", {4, 6}), row = Param("row", {6});
  const auto num_pairs = [&](const Expr& sum) {
    const DataflowGraph graph(Typed({x, y, row}, MakeCall("nn.dense", {sum, Weights({5, 6})})));
    const CombineOptions options{.kinds = {{Kind::kElemWise, Kind::kOutEWiseFusable}}};
    return std::ranges::count_if(Find(graph, *CombineRule(options, OpCallByKindRule())),
                                 [](const std::vector<int>& one) { return one.size() == 2; });
  };
  EXPECT_EQ(num_pairs(MakeCall("nn.relu", {x})), 1);
  EXPECT_EQ(num_pairs(MakeCall("add", {x, y})), 1);
  EXPECT_EQ(num_pairs(MakeCall("add", {x, Weights({6})})), 1) << "each element from one of x";
  EXPECT_EQ(num_pairs(MakeCall("add", {x, row})), 0);
}

TEST(CombineRuleTest, ACompositeAndTheBareCallAreBothCombined) {
  const DataflowGraph graph(Std());
  std::vector<PartitionRulePtr> both;
  both.push_back(OpCallByKindRule());
  both.push_back(CompositeRule("relu", DFPatternRule("p", ParsePattern("nn.relu(*)"), {})));
  both.push_back(CompositeRule("other", DFPatternRule("p", ParsePattern("nn.relu(*)"), {})));
  CombineOptions options{.kinds = {{Kind::kElemWise, Kind::kElemWise}}, .limits = {.max_exits = 1}};
  const PartitionRulePtr rule = CombineRule(options, UnionRule(std::move(both)));
  // Three ways for each relu; abs with the first, both relus, all three.
  Sets expected{{3}};
  for (int i = 0; i < 3; ++i) expected.insert(expected.end(), {{4}, {5}, {3, 4}});
  for (int i = 0; i < 9; ++i) expected.insert(expected.end(), {{4, 5}, {3, 4, 5}});
  std::ranges::sort(expected);
  EXPECT_EQ(Find(graph, *rule), expected);
}

}  // namespace
}  // namespace collage
