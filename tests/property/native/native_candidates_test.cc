// native_candidates_test.cc: every function that pass FuseOps would make of operators that native kernels compute is
// among the native toolchain's candidates, on random functions of tensors and on random modules of the whole language.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "backends/builtin_toolchains.h"
#include "collage/ir/text.h"
#include "partition/fusion_groups.h"
#include "partition/partition_spec.h"
#include "property/for_random_modules.h"
#include "property/native/function_generator.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

const Toolchain& Native() {
  if (ToolchainRegistry::Global().All().empty()) AddBuiltinToolchains(ToolchainRegistry::Global());
  return *ToolchainRegistry::Global().Native();
}

using Set = std::set<int>;

bool IsFree(const DataflowGraph& graph, int index) {
  const ExprKind kind = graph.node(index).expr->kind();
  const OpDef* op = graph.OpAt(index);
  return kind == ExprKind::kTuple || kind == ExprKind::kTupleGetItem || (op != nullptr && op->is_reshape);
}

/// The rest of `group` when reshapes, tuples and projections at its ends go, one after the other; with
/// `and_dequantize`, also conversions of 8-bit integers at which it ends.
Set WithoutFreeEnds(const DataflowGraph& graph, Set group, bool and_dequantize) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const int index : group) {
      const auto is_inside = [&](int other) { return group.contains(other); };
      const bool is_start = std::ranges::none_of(graph.node(index).inputs, is_inside);
      const bool is_end = std::ranges::none_of(graph.node(index).outputs, is_inside);
      const bool is_dequantize = graph.OpAt(index) != nullptr && graph.OpAt(index)->name == "qnn.dequantize";
      const bool goes = IsFree(graph, index) ? is_start || is_end : and_dequantize && is_dequantize && is_end;
      if (!goes) continue;
      group.erase(index);
      changed = true;
      break;
    }
  }
  return group;
}

/// Whether the toolchain computes all operators of a group, none of which has a kernel already.
bool TakesAll(const DataflowGraph& graph, const std::vector<int>& group) {
  return std::ranges::all_of(group, [&](int index) {
    if (graph.node(index).is_in_primitive) return false;
    return graph.OpAt(index) == nullptr || Native().SupportsCall(*As<CallNode>(graph.node(index).expr)).ok();
  });
}

/// Checks all groups of one function; returns how many of them are made of several nodes.
size_t CheckGroups(const Function& function, const PartitionSpec& native) {
  const DataflowGraph graph(function);
  std::set<Set> candidates;
  RuleLog log;
  for (const CandidatePartition& one : native.AllCandidates(graph, log)) {
    candidates.emplace(one.sub_graph.members().begin(), one.sub_graph.members().end());
  }
  size_t num_large = 0;
  for (const std::vector<int>& group : FusionGroups(graph, kMaxFusedCalls)) {
    if (!TakesAll(graph, group)) continue;
    const Set trimmed = WithoutFreeEnds(graph, {group.begin(), group.end()}, false);
    if (trimmed.empty()) continue;
    const Set as_integers = WithoutFreeEnds(graph, trimmed, true);
    EXPECT_TRUE(candidates.contains(trimmed) || candidates.contains(as_integers))
        << SubGraph(graph, group).OperatorLabel(graph) << " of\n"
        << PrintExpr(function);
    num_large += trimmed.size() > 1 ? 1 : 0;
  }
  return num_large;
}

TEST(NativeCandidatesTest, HoldAllThatFuseOpsFuses) {
  const PartitionSpec native = SpecOf(Native());
  size_t num_large = 0;
  ForRandomSeeds(Setting("COLLAGE_PROPERTY_MODULES", 150), [&](uint64_t seed) {
    num_large += CheckGroups(FunctionGenerator(seed).Make().function, native);
    std::mt19937 random(static_cast<uint32_t>(seed));
    num_large += CheckGroups(testing_graphs::RandomFunction(3 + static_cast<int>(seed % 8), random), native);
    const RandomModule random_module = MakeRandomModule(seed);
    for (const auto& [name, of_module] : random_module.module.functions()) num_large += CheckGroups(of_module, native);
  });
  fmt::print("{} groups of several operators\n", num_large);
  EXPECT_GT(num_large, 100U);
}

}  // namespace
}  // namespace collage
