// random_graphs_test.cc: sub-graphs, Combine, rewriting and coalescing against their definitions, on thousands of
// random graphs. Seeds are printed on failure.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ir/eval/evaluate.h"
#include "partition/coalesce.h"
#include "partition/extract.h"
#include "partition/rewrite.h"
#include "runtime/compare.h"
#include "runtime/random_inputs.h"
#include "unit/partition/brute_force.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using namespace testing_graphs;
using namespace brute_force;

/// A few nodes near each other, operators of calls sometimes among them.
Set RandomSet(const DataflowGraph& graph, std::mt19937& random) {
  const int size = static_cast<int>(graph.size());
  Set set{static_cast<int>(random() % static_cast<uint32_t>(size))};
  const size_t wanted = 1 + random() % 7;
  for (int tries = 0; set.size() < wanted && tries < 40; ++tries) {
    auto it = set.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(random() % set.size()));
    const DataflowGraph::Node& node = graph.node(*it);
    const std::vector<int>& next = random() % 2 == 0 ? node.inputs : node.outputs;
    if (!next.empty()) set.insert(next[random() % next.size()]);
  }
  return set;
}

struct Definition {
  Set entry, exit, input, output;
  int depth = 0;
  bool has_tap = false;
  bool is_convex = true;
};

int LongestTo(const DataflowGraph& graph, const Set& inside, const Set& entry, int node) {
  int longest = entry.contains(node) ? 1 : 0;
  for (int input : graph.node(node).inputs) {
    if (!inside.contains(input)) continue;
    const int before = LongestTo(graph, inside, entry, input);
    if (before > 0) longest = std::max(longest, before + 1);
  }
  return longest;
}

Definition Define(const DataflowGraph& graph, const PathTable& paths, const Set& inside) {
  Definition result;
  for (int i = 0; i < static_cast<int>(graph.size()); ++i) {
    const DataflowGraph::Node& node = graph.node(i);
    for (int output : node.outputs) {
      if (inside.contains(i) && !inside.contains(output)) {
        result.exit.insert(i);
        result.output.insert(output);
      }
      if (!inside.contains(i) && inside.contains(output) && !graph.CanInline(i)) {
        result.input.insert(i);
        result.entry.insert(output);
      }
    }
    if (inside.contains(i) && node.is_external) result.exit.insert(i);
  }
  for (int i : result.exit) {
    result.depth = std::max(result.depth, LongestTo(graph, inside, result.entry, i));
    for (int output : graph.node(i).outputs) result.has_tap |= inside.contains(output);
  }
  result.is_convex = IsConvex(paths, inside);
  return result;
}

TEST(RandomGraphsTest, SubGraphsAreWhatTheirDefinitionSays) {
  int num_valid = 0;
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const DataflowGraph graph(RandomFunction(2 + static_cast<int>(random() % 5), random), Boundaries::kExact);
    const PathTable paths = Paths(graph);
    for (int k = 0; k < 4; ++k) {
      const Set inside = RandomSet(graph, random);
      const Definition expected = Define(graph, paths, inside);
      const SubGraph sub_graph(graph, {inside.begin(), inside.end()});
      ASSERT_EQ(ToSet(sub_graph.entry()), expected.entry);
      ASSERT_EQ(ToSet(sub_graph.exit()), expected.exit);
      ASSERT_EQ(ToSet(sub_graph.input()), expected.input);
      ASSERT_EQ(ToSet(sub_graph.output()), expected.output);
      ASSERT_EQ(sub_graph.depth(), expected.depth);
      const SubGraphConfig config{.max_exits = static_cast<int>(random() % 3),
                                  .max_depth = static_cast<int>(random() % 5),
                                  .allow_taps = random() % 2 == 0};
      const bool valid = expected.is_convex && (config.allow_taps || !expected.has_tap) &&
                         (config.max_exits == 0 || static_cast<int>(expected.exit.size()) <= config.max_exits) &&
                         (config.max_depth == 0 || expected.depth <= config.max_depth);
      ASSERT_EQ(sub_graph.CheckValid(graph, config).ok(), valid) << sub_graph.inside().ToString();
      num_valid += valid ? 1 : 0;
    }
  }
  EXPECT_GT(num_valid, 500);
}

/// Some of `of`, now and then with a node that is none of it.
std::vector<int> SomeOf(const std::vector<int>& of, size_t graph_size, std::mt19937& random) {
  Set some;
  for (int index : of) {
    if (random() % 2 == 0) some.insert(index);
  }
  if (some.empty() || random() % 8 == 0) some.insert(static_cast<int>(random() % graph_size));
  return {some.begin(), some.end()};
}

std::vector<NestedSubGraph> RandomNested(const std::vector<int>& inside, int levels, size_t graph_size,
                                         std::mt19937& random) {
  std::vector<NestedSubGraph> nested;
  for (uint32_t count = levels == 0 ? 0 : random() % 3; count > 0; --count) {
    std::vector<int> some = SomeOf(inside, graph_size, random);
    std::vector<NestedSubGraph> within = RandomNested(some, levels - 1, graph_size, random);
    nested.push_back({std::move(some), {}, std::move(within)});
  }
  return nested;
}

/// Node by node: whoever holds it is held by its parent, and has no sibling that holds it.
bool NestsWell(const Set& inside, const std::vector<NestedSubGraph>& nested) {
  std::map<int, int> num_holders;
  for (const NestedSubGraph& one : nested) {
    for (int index : one.inside) {
      if (!inside.contains(index) || ++num_holders[index] > 1) return false;
    }
    if (!NestsWell({one.inside.begin(), one.inside.end()}, one.nested)) return false;
  }
  return true;
}

TEST(RandomGraphsTest, NestedSubGraphsLieWithinTheirParentsAndApartFromEachOther) {
  int num_good = 0, num_bad = 0;
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const DataflowGraph graph(RandomFunction(2 + static_cast<int>(random() % 5), random), Boundaries::kExact);
    const Set inside = RandomSet(graph, random);
    SubGraph sub_graph(graph, {inside.begin(), inside.end()});
    if (!sub_graph.CheckValid(graph, {.allow_taps = true}).ok()) continue;
    sub_graph.nested = RandomNested(sub_graph.members(), 2, graph.size(), random);
    const bool expected = NestsWell(inside, sub_graph.nested);
    ASSERT_EQ(sub_graph.CheckValid(graph, {.allow_taps = true}).ok(), expected) << sub_graph.inside().ToString();
    if (!sub_graph.nested.empty()) ++(expected ? num_good : num_bad);
  }
  EXPECT_GT(num_good, 100);
  EXPECT_GT(num_bad, 100);
}

/// All that repeated joining of any two yields.
std::set<std::vector<int>> Closure(const DataflowGraph& graph, const Sets& base,
                                   const std::vector<CombinerKinds>& kinds, bool join_anything, int max_depth) {
  const PathTable paths = Paths(graph);
  std::set<std::vector<int>> all(base.begin(), base.end());
  for (size_t before = 0; before != all.size();) {
    before = all.size();
    std::vector<SubGraph> known;
    for (const std::vector<int>& one : all) known.emplace_back(graph, one);
    for (const SubGraph& u : known) {
      for (const SubGraph& d : known) {
        const auto fits = [&](const CombinerKinds& k) {
          return KindByShapes(graph, u) <= k.up && KindByShapes(graph, d) <= k.down;
        };
        if (!join_anything && std::none_of(kinds.begin(), kinds.end(), fits)) continue;
        if (max_depth > 0 && u.depth() + d.depth() > max_depth) continue;
        if (u.inside().Intersects(d.inside())) continue;
        const auto touches = [&](int output) { return std::binary_search(d.entry().begin(), d.entry().end(), output); };
        if (std::none_of(u.output().begin(), u.output().end(), touches)) continue;
        std::vector<int> both = u.members();
        both.insert(both.end(), d.members().begin(), d.members().end());
        std::sort(both.begin(), both.end());
        if (!all.contains(both) && IsConvex(paths, ToSet(both))) all.insert(both);
      }
    }
  }
  return all;
}

TEST(RandomGraphsTest, CombineYieldsTheClosure) {
  using Kind = OpPatternKind;
  const std::vector<CombinerKinds> choices{{Kind::kOutEWiseFusable, Kind::kBroadcast},
                                           {Kind::kBroadcast, Kind::kCommReduce},
                                           {Kind::kInjective, Kind::kInjective},
                                           {Kind::kElemWise, Kind::kOutEWiseFusable}};
  size_t num_sets = 0;
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const DataflowGraph graph(RandomFunction(2 + static_cast<int>(random() % 2), random), Boundaries::kExact);
    CombineOptions options{.max_depth = 2 + static_cast<int>(random() % 3), .only_valid = false};
    for (const CombinerKinds& kinds : choices) {
      if (random() % 2 == 0) options.kinds.push_back(kinds);
    }
    options.join_anything = random() % 4 == 0;
    const Sets base = Find(graph, *OpCallByKindRule());
    const std::set<std::vector<int>> expected =
        Closure(graph, base, options.kinds, options.join_anything, options.max_depth);
    const Sets found = Find(graph, *CombineRule(options, OpCallByKindRule()));
    ASSERT_EQ(std::set<std::vector<int>>(found.begin(), found.end()), expected);
    ASSERT_EQ(found.size(), expected.size()) << "each set once";
    num_sets += expected.size();
  }
  EXPECT_GT(num_sets, 4000u);
}

/// Disjoint candidates, wrapped, that can be put in order.
std::vector<CandidatePartition> RandomChoice(const DataflowGraph& graph, const Toolchain& toolchain,
                                             std::mt19937& random) {
  RuleLog log;
  CombineOptions options{.max_depth = 4, .only_valid = false};
  options.join_anything = true;
  options.tuple_args = options.tuple_projections = options.constants = true;
  options.max_candidates = 400;
  std::vector<CandidatePartition> candidates =
      CombineRule(options, OpPredicateRule())->AllCandidates(graph, toolchain, log);
  std::shuffle(candidates.begin(), candidates.end(), random);
  std::vector<CandidatePartition> chosen;
  for (CandidatePartition& candidate : candidates) {
    const auto overlaps = [&](const CandidatePartition& one) {
      return Overlap(graph, one.sub_graph, candidate.sub_graph);
    };
    if (candidate.sub_graph.exit().empty() || std::any_of(chosen.begin(), chosen.end(), overlaps)) continue;
    std::vector<const SubGraph*> all{&candidate.sub_graph};
    for (const CandidatePartition& one : chosen) all.push_back(&one.sub_graph);
    if (!CanBeOrdered(graph, all)) continue;
    candidate.sub_graph = candidate.sub_graph.Wrapped({{"Primitive", 1}});
    chosen.push_back(std::move(candidate));
  }
  return chosen;
}

TEST(RandomGraphsTest, RewritingKeepsTheMeaning) {
  const AnyToolchain toolchain;
  size_t num_several_results = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const Function function = RandomFunction(3 + static_cast<int>(random() % 4), random);
    const DataflowGraph graph(function, seed % 2 == 0 ? Boundaries::kExact : Boundaries::kTensors);
    const std::vector<CandidatePartition> chosen = RandomChoice(graph, toolchain, random);
    for (const CandidatePartition& one : chosen) num_several_results += one.sub_graph.exit().size() > 1 ? 1 : 0;
    const std::optional<Function> rewritten = RewriteNested(graph, chosen);
    ASSERT_TRUE(rewritten.has_value());
    std::vector<Tensor> inputs;
    for (const Var& param : function->params()) {
      inputs.push_back(Tensor::Empty(AsTensorType(param->checked_type())->static_shape(), kFloat32));
      FillRandom(inputs.back(), seed + inputs.size());
    }
    const std::vector<Tensor> expected = Evaluate(function, inputs), found = Evaluate(*rewritten, inputs);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const Comparison comparison = Compare(found[i], expected[i], {0, 0});
      ASSERT_TRUE(comparison.agrees) << comparison.difference;
    }
  }
  EXPECT_GT(num_several_results, 100u);
}

TEST(RandomGraphsTest, CoalescingMakesNoCirclesAndStopsAtNothingElse) {
  const AnyToolchain first("first"), second("second");
  size_t num_merged = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const DataflowGraph graph(RandomFunction(4 + static_cast<int>(random() % 6), random), Boundaries::kExact);
    std::vector<CandidatePartition> calls;
    for (const std::vector<int>& one : Find(graph, *OpPredicateRule())) {
      calls.push_back({"r", SubGraph(graph, one), random() % 3 == 0 ? &second : &first});
    }
    const std::vector<CandidatePartition> merged = MaxCoalesce(graph, calls, {.allow_taps = true});
    num_merged += calls.size() - merged.size();
    std::vector<const SubGraph*> parts;
    size_t num_members = 0;
    for (const CandidatePartition& one : merged) {
      parts.push_back(&one.sub_graph);
      num_members += one.sub_graph.members().size();
      ASSERT_TRUE(one.sub_graph.CheckConvex(graph).ok());
    }
    ASSERT_EQ(num_members, calls.size());
    ASSERT_TRUE(CanBeOrdered(graph, parts));
    for (size_t i = 0; i < merged.size(); ++i) {
      for (size_t j = 0; j < merged.size(); ++j) {
        if (i == j || merged[i].toolchain != merged[j].toolchain) continue;
        const Set entry = ToSet(parts[j]->entry());
        const auto touches = [&](int output) { return entry.contains(output); };
        if (std::none_of(parts[i]->output().begin(), parts[i]->output().end(), touches)) continue;
        const SubGraph both = DisjointUnion(graph, *parts[i], *parts[j]);
        std::vector<const SubGraph*> with{&both};
        for (size_t k = 0; k < merged.size(); ++k) {
          if (k != i && k != j) with.push_back(parts[k]);
        }
        ASSERT_FALSE(CanBeOrdered(graph, with)) << both.inside().ToString() << " could have been merged";
      }
    }
  }
  EXPECT_GT(num_merged, 1000u);
}

TEST(CoalesceTest, LongChainsAreLinear) {
  const Var x = Param("x", {2});
  Expr value = x;
  for (int i = 0; i < 30'000; ++i) value = MakeCall("nn.relu", {value});
  const DataflowGraph graph(Typed({x}, value), Boundaries::kExact);
  const AnyToolchain toolchain;
  std::vector<CandidatePartition> calls;
  for (int index = 2; index < 30'002; ++index) calls.push_back({"r", SubGraph(graph, {index}), &toolchain});
  EXPECT_EQ(MaxCoalesce(graph, calls, {.allow_taps = true}).size(), 1u);
}

}  // namespace
}  // namespace collage
