// parallel_products.cc: which products can be one, and the one ("horizontal fusion": RFC 0.7, "anchor operators").
#include "backends/native/parallel_products.h"

#include <algorithm>
#include <array>
#include <optional>

#include "backends/native/operators.h"
#include "collage/ir/infer_type.h"
#include "partition/fusion_groups.h"
#include "partition/partition_rule.h"
#include "transform/passes.h"
#include "transform/passes/combine_parallel.h"

namespace collage::native {
namespace {

/// Anchors that are joined, where their weights are constants: to put others side by side would take time in each run.
const std::array<ParallelAnchor, 3>& Anchors() {
  static const std::array<ParallelAnchor, 3> anchors = [] {
    std::array<ParallelAnchor, 3> all{WideDense(), WideBatchMatmul(), WideConv2D()};
    for (ParallelAnchor& anchor : all) {
      anchor.fits = [fits = anchor.fits](const CallNode& a, const CallNode& b) {
        return As<ConstantNode>(a.args()[1]) != nullptr && As<ConstantNode>(b.args()[1]) != nullptr && fits(a, b);
      };
    }
    return all;
  }();
  return anchors;
}

const ParallelAnchor* AnchorOf(const CallNode& call) {
  const auto it = std::ranges::find_if(Anchors(), [&](const ParallelAnchor& one) { return call.op()->name == one.op; });
  return it == Anchors().end() ? nullptr : &*it;
}

bool AreAlike(const ParallelAnchor& anchor, const CallNode& a, const CallNode& b) {
  Attrs x = a.attrs(), y = b.attrs();
  for (const std::string& name : anchor.free_attrs) {
    x.Erase(name);
    y.Erase(name);
  }
  return a.op() == b.op() && a.args()[0] == b.args()[0] && x == y && anchor.fits(a, b);
}

const CallNode& CallAt(const DataflowGraph& graph, int index) { return *As<CallNode>(graph.node(index).expr); }

/// Products that read one value, by node: those of each entry are alike.
std::vector<std::vector<int>> AlikeProducts(const DataflowGraph& graph) {
  std::vector<std::vector<int>> sets;
  for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
    if (graph.OpAt(index) == nullptr || graph.node(index).is_in_primitive) continue;
    const CallNode& call = CallAt(graph, index);
    const ParallelAnchor* anchor = AnchorOf(call);
    if (anchor == nullptr || !IsLowered(call).ok()) continue;
    const auto takes = [&](const std::vector<int>& set) {
      return graph.AreTogether(set[0], index) && AreAlike(*anchor, CallAt(graph, set[0]), call);
    };
    const auto it = std::ranges::find_if(sets, takes);
    if (it != sets.end()) {
      it->push_back(index);
    } else {
      sets.push_back({index});
    }
  }
  std::erase_if(sets, [](const std::vector<int>& set) { return set.size() < 2; });
  return sets;
}

/// The group of FuseOps that holds `anchor`; `anchor` alone where native kernels do not compute all of it.
std::vector<int> WithFollowers(const DataflowGraph& graph, const std::vector<std::vector<int>>& groups, int anchor) {
  const auto group = std::ranges::find_if(
      groups, [&](const std::vector<int>& one) { return std::ranges::binary_search(one, anchor); });
  const bool is_lowered = std::ranges::all_of(
      *group, [&](int index) { return graph.OpAt(index) == nullptr || IsLowered(CallAt(graph, index)).ok(); });
  return is_lowered ? *group : std::vector<int>{anchor};
}

}  // namespace

std::vector<std::vector<Expr>> ParallelProducts(const DataflowGraph& graph) {
  const std::vector<std::vector<int>> sets = AlikeProducts(graph);
  if (sets.empty()) return {};
  const std::vector<std::vector<int>> groups = FusionGroups(graph, kMaxFusedCalls);
  std::vector<std::vector<Expr>> partitions;
  for (std::vector<int> anchors : sets) {
    std::vector<int> members;
    for (const int anchor : anchors) {
      const std::vector<int> group = WithFollowers(graph, groups, anchor);
      members.insert(members.end(), group.begin(), group.end());
    }
    if (!SubGraph(graph, members).CheckRunnable(graph).ok()) members = std::move(anchors);
    std::vector<Expr>& partition = partitions.emplace_back();
    for (const int index : members) partition.push_back(graph.node(index).expr);
  }
  return partitions;
}

Function JoinParallelProducts(const Function& function) {
  Function joined = function;
  for (const ParallelAnchor& anchor : Anchors()) joined = CombineParallel(joined, anchor, 2);
  if (joined == function) return function;
  InferType(joined);
  return FoldConstant(joined);
}

}  // namespace collage::native
