// partition_property_test.cc: dataflow graphs, sub-graphs and rewriting on random modules of the whole language: let,
// if, match, closures, recursion, references.
#include <gtest/gtest.h>

#include <set>

#include "collage/inspect.h"
#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/eval/interpreter.h"
#include "partition/rewrite.h"
#include "property/for_random_modules.h"
#include "property/random_source.h"
#include "unit/partition/brute_force.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using namespace brute_force;
using testing_graphs::AnyToolchain;

/// What was made of a module can be printed and read, and computes the same.
void ExpectSameMeaning(const RandomModule& random_module, const IRModule& after) {
  EXPECT_NO_THROW(ParseModule(PrintModule(after))) << PrintModule(random_module.module) << PrintModule(after);
  const Value expected = Interpret(random_module.module, "main", random_module.args);
  const Value actual = Interpret(after, "main", random_module.args);
  EXPECT_TRUE(ValuesEqual(expected, actual, 0)) << ToString(expected) << " became " << ToString(actual) << "\nbefore:\n"
                                                << PrintModule(random_module.module) << "after:\n"
                                                << PrintModule(after);
}

/// Whether every node inside is used only within one branch, clause or function: what encloses all uses, by going from
/// each use outwards.
class Enclosing {
 public:
  explicit Enclosing(const DataflowGraph& graph) : graph_(graph), ways_(graph.size()) {
    const int root = static_cast<int>(graph.size()) - 1;
    ways_[static_cast<size_t>(root)] = {};
    for (int user = root; user >= 0; --user) {
      const Expr expr = graph.node(user).expr;
      const ExprKind kind = expr->kind();
      int branch = 0;
      for (const Expr& child : Children(expr)) {
        const bool is_inner = (kind == ExprKind::kFunction && user != root) ||
                              ((kind == ExprKind::kIf || kind == ExprKind::kMatch) && branch > 0);
        AddUse(child, user, is_inner ? branch + 1 : 0);
        ++branch;
      }
      if (kind == ExprKind::kFunction) {
        for (const Var& param : static_cast<const FunctionNode&>(*expr).params())
          AddUse(param, user, user == root ? 0 : 1);
      }
      if (kind == ExprKind::kLet) AddUse(static_cast<const LetNode&>(*expr).var(), user, 0);
    }
  }

  /// The branches around all uses, outermost first.
  const std::vector<std::pair<int, int>>& Of(int node) const { return *ways_[static_cast<size_t>(node)]; }
  bool Has(int node) const { return ways_[static_cast<size_t>(node)].has_value(); }

 private:
  using Way = std::vector<std::pair<int, int>>;

  void AddUse(const Expr& child, int user, int branch) {
    const int index = graph_.IndexOf(child);
    if (index >= user) return;
    Way way = ways_[static_cast<size_t>(user)].value_or(Way{});
    if (branch > 0) way.emplace_back(user, branch);
    std::optional<Way>& known = ways_[static_cast<size_t>(index)];
    if (!known) {
      known = way;
      return;
    }
    const auto [end, ignored] = std::mismatch(known->begin(), known->end(), way.begin(), way.end());
    known->erase(end, known->end());
  }

  const DataflowGraph& graph_;
  std::vector<std::optional<Way>> ways_;
};

TEST(PartitionPropertyTest, DataflowIsConsistent) {
  size_t num_branches = 0;
  ForRandomModules(400, [&](const RandomModule& random_module, uint64_t) {
    for (const auto& [name, function] : random_module.module.functions()) {
      const DataflowGraph graph(function, Boundaries::kExact);
      const Enclosing enclosing(graph);
      std::vector<std::vector<int>> users(graph.size());
      for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
        const DataflowGraph::Node& node = graph.node(index);
        ASSERT_EQ(node.is_external, index + 1 == static_cast<int>(graph.size()));
        for (int input : node.inputs) {
          ASSERT_LT(input, index);
          users[static_cast<size_t>(input)].push_back(index);
        }
        for (const Expr& child : Children(node.expr)) {
          const int at = graph.IndexOf(child);
          const bool is_let_value = node.expr->kind() == ExprKind::kLet && child == Children(node.expr)[0];
          if (at < index && !is_let_value) {
            ASSERT_EQ(std::count(node.inputs.begin(), node.inputs.end(), at) > 0, true) << graph.LabelAt(index);
          }
        }
        num_branches += node.basic_block >= 0 ? 1 : 0;
      }
      for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
        ASSERT_EQ(graph.node(index).outputs, users[static_cast<size_t>(index)]);
        for (int other : {index / 2, index - 1}) {
          if (other < 0 || !enclosing.Has(other) || !enclosing.Has(index)) continue;
          ASSERT_EQ(graph.node(index).scope == graph.node(other).scope, enclosing.Of(index) == enclosing.Of(other))
              << index << " and " << other << " of " << name << "\n"
              << PrintModule(random_module.module);
        }
      }
    }
  });
  EXPECT_GT(num_branches, 1000u);
}

/// Disjoint candidates that can be run one after the other, as Primitive functions.
std::vector<CandidatePartition> RandomChoice(const DataflowGraph& graph, const Toolchain& toolchain,
                                             RandomSource& random) {
  RuleLog log;
  CombineOptions options{.max_depth = 4, .only_valid = false};
  options.join_anything = true;
  options.tuple_args = options.tuple_projections = options.constants = true;
  options.max_candidates = 300;
  std::vector<CandidatePartition> candidates =
      CombineRule(options, OpPredicateRule())->AllCandidates(graph, toolchain, log);
  std::vector<CandidatePartition> chosen;
  while (!candidates.empty()) {
    std::swap(candidates[static_cast<size_t>(random.Below(static_cast<int>(candidates.size())))], candidates.back());
    CandidatePartition candidate = std::move(candidates.back());
    candidates.pop_back();
    const SubGraph& sub_graph = candidate.sub_graph;
    const auto overlaps = [&](const CandidatePartition& one) { return Overlap(graph, one.sub_graph, sub_graph); };
    if (sub_graph.exit().empty() || std::any_of(chosen.begin(), chosen.end(), overlaps)) continue;
    if (!sub_graph.CheckRunnable(graph).ok()) continue;
    std::vector<const SubGraph*> all{&sub_graph};
    for (const CandidatePartition& one : chosen) all.push_back(&one.sub_graph);
    if (!CanBeOrdered(graph, all)) continue;
    candidate.sub_graph = sub_graph.Wrapped({{"Primitive", 1}});
    chosen.push_back(std::move(candidate));
  }
  return chosen;
}

TEST(PartitionPropertyTest, RandomCoversKeepWhatAModuleComputes) {
  const AnyToolchain toolchain;
  size_t num_partitions = 0, num_large = 0, num_in_branches = 0;
  ForRandomModules(600, [&](const RandomModule& random_module, uint64_t seed) {
    RandomSource random(seed);
    IRModule after = random_module.module;
    for (const auto& [name, function] : random_module.module.functions()) {
      const DataflowGraph graph(function, Boundaries::kExact);
      const std::vector<CandidatePartition> chosen = RandomChoice(graph, toolchain, random);
      const std::optional<Function> rewritten = RewriteNested(graph, chosen);
      ASSERT_TRUE(rewritten.has_value()) << PrintModule(random_module.module);
      after.Set(name, *rewritten);
      num_partitions += chosen.size();
      for (const CandidatePartition& one : chosen) {
        num_large += one.sub_graph.members().size() > 1 ? 1 : 0;
        num_in_branches += graph.node(one.sub_graph.last()).basic_block >= 0 ? 1 : 0;
      }
    }
    ExpectSameMeaning(random_module, after);
  });
  EXPECT_GT(num_partitions, 2000u);
  EXPECT_GT(num_large, 500u);
  EXPECT_GT(num_in_branches, 500u);
}

TEST(PartitionPropertyTest, LeastCostCoversKeepWhatAModuleComputes) {
  const char* kTargets = R"([
    {"name": "near", "rule": {"rule": "Composite", "name": "near", "sub_rule": {"rule": "Combine", "max_depth": 3,
      "combiner_rules": [{"combiner": "AllSimple", "kinds": ["A->B", "B->R", "I->I"]}, {"combiner": "TupleProj"}],
      "sub_rule": {"rule": "OpCallByKind"}}}},
    {"name": "far", "external": true, "rule": {"rule": "Primitive", "sub_rule": {"rule": "Combine", "max_depth": 2,
      "combiner_rules": [{"combiner": "JoinAnything"}, {"combiner": "Constant"}],
      "sub_rule": {"rule": "OpPredicate", "attribute": "target.any"}}}}])";
  if (ToolchainRegistry::Global().Find("any") == nullptr) {
    ToolchainRegistry::Global().Add(std::make_unique<AnyToolchain>("any"));
  }
  size_t num_partitions = 0;
  ForRandomModules(250, [&](const RandomModule& random_module, uint64_t seed) {
    RandomSource random(seed);
    IRModule after = random_module.module;
    const std::string costs = R"({"op_cost": {"near": )" + std::to_string(1 + random.Below(3)) + R"(, "far": )" +
                              std::to_string(1 + random.Below(3)) + R"(}, "fusion_benefit": 0.5, "coalesce": )" +
                              (random.OneIn(2) ? "true" : "false") + "}";
    for (const auto& [name, function] : random_module.module.functions()) {
      const CoverReport cover = PartitionByGivenCosts(function, {kTargets}, {costs}, /*rewrite=*/true);
      num_partitions += cover.partitions.size();
      EXPECT_TRUE(cover.is_exact);
      EXPECT_NEAR(cover.least_cost, cover.cost, 1e-9 * cover.cost);
      after.Set(name, cover.rewritten);
    }
    ExpectSameMeaning(random_module, after);
  });
  EXPECT_GT(num_partitions, 700u);
}

}  // namespace
}  // namespace collage
