// merge_compiler_regions.cc: regions of one toolchain that feed each other become one, unless something outside would
// then have to run in their middle. Greedy in topological order.
#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "collage/ir/visitor.h"
#include "dataflow/dataflow_graph.h"
#include "partition/byoc/regions.h"
#include "partition/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

/// Units are regions, then all nodes that are in none. Groups are sets of regions that are merged.
class Merger {
 public:
  Merger(const DataflowGraph& graph, const std::vector<Region>& regions) : graph_(graph), regions_(regions) {
    unit_of_.assign(graph.size(), -1);
    for (size_t i = 0; i < regions.size(); ++i) {
      for (const auto* list : {&regions[i].nodes, &regions[i].inputs, &regions[i].outputs}) {
        for (const Expr& expr : *list) unit_of_[graph.IndexOf(expr)] = static_cast<int>(i);
      }
    }
    num_units_ = static_cast<int>(regions.size());
    for (int& unit : unit_of_) {
      if (unit < 0) unit = num_units_++;
    }
    inputs_.resize(num_units_);
    for (int i = 0; i < static_cast<int>(graph.size()); ++i) {
      std::vector<int>& inputs = inputs_[UnitOf(i)];
      for (int input : graph.node(i).inputs) {
        if (UnitOf(input) != UnitOf(i)) inputs.push_back(UnitOf(input));
      }
    }
    parent_.resize(num_units_);
    std::iota(parent_.begin(), parent_.end(), 0);
    members_.resize(regions.size());
    for (size_t i = 0; i < regions.size(); ++i) members_[i] = {static_cast<int>(i)};
  }

  void Run() {
    const std::vector<int> order = TopologicalOrder();
    first_ = last_ = position_;
    for (int unit : order) {
      if (!IsRegion(unit)) continue;
      std::vector<int> neighbours = inputs_[unit];
      std::sort(neighbours.begin(), neighbours.end());
      for (int neighbour : neighbours) {
        if (IsRegion(neighbour)) TryMerge(GroupOf(neighbour), GroupOf(unit));
      }
    }
  }

  bool AreMerged(const Expr& a, const Expr& b) {
    return GroupOf(UnitOf(graph_.IndexOf(a))) == GroupOf(UnitOf(graph_.IndexOf(b)));
  }

 private:
  int UnitOf(int index) const { return unit_of_[index]; }
  bool IsRegion(int unit) const { return unit < static_cast<int>(regions_.size()); }
  const Region& RegionAt(int unit) const { return regions_[unit]; }

  int GroupOf(int unit) {
    while (parent_[unit] != unit) {
      unit = parent_[unit] = parent_[parent_[unit]];
    }
    return unit;
  }

  std::vector<int> TopologicalOrder() {
    std::vector<int> waits_for(num_units_);
    std::vector<std::vector<int>> feeds(num_units_);
    for (int unit = 0; unit < num_units_; ++unit) {
      for (int input : inputs_[unit]) {
        feeds[input].push_back(unit);
        ++waits_for[unit];
      }
    }
    std::vector<int> order;
    for (int unit = 0; unit < num_units_; ++unit) {
      if (waits_for[unit] == 0) order.push_back(unit);
    }
    position_.assign(num_units_, num_units_);
    for (size_t i = 0; i < order.size(); ++i) {
      position_[order[i]] = static_cast<int>(i);
      for (int user : feeds[order[i]]) {
        if (--waits_for[user] == 0) order.push_back(user);
      }
    }
    return order;
  }

  int AnyNodeOf(int unit) const { return graph_.IndexOf(RegionAt(unit).outputs[0]); }

  void TryMerge(int a, int b) {
    if (a == b || RegionAt(a).compiler != RegionAt(b).compiler) return;
    if (!graph_.AreTogether(AnyNodeOf(a), AnyNodeOf(b))) return;
    if (PassesOutside(a, b) || PassesOutside(b, a)) return;
    // The larger one takes the smaller one in.
    if (members_[a].size() < members_[b].size()) std::swap(a, b);
    parent_[b] = a;
    first_[a] = std::min(first_[a], first_[b]);
    last_[a] = std::max(last_[a], last_[b]);
    auto& from = members_[b];
    auto& to = members_[a];
    to.insert(to.end(), from.begin(), from.end());
    from.clear();
  }

  /// Whether a way leads from group `from` to group `to` through something that is in neither.
  bool PassesOutside(int from, int to) {
    const int first = first_[from];  // nothing before it can follow from `from`
    if (last_[to] <= first) return false;
    std::unordered_set<int> seen;
    std::vector<int> stack;
    const auto reach = [&](int unit) {
      if (position_[unit] <= first || !seen.insert(GroupOf(unit)).second) return;
      stack.push_back(GroupOf(unit));
    };
    for (int unit : members_[to]) {
      if (position_[unit] <= first) continue;
      for (int input : inputs_[unit]) {
        if (GroupOf(input) != from && GroupOf(input) != to) reach(input);
      }
    }
    while (!stack.empty()) {
      const int group = stack.back();
      stack.pop_back();
      const std::vector<int> single{group};
      for (int unit : IsRegion(group) ? members_[group] : single) {
        for (int input : inputs_[unit]) {
          if (GroupOf(input) == from) return true;
          if (GroupOf(input) != to) reach(input);
        }
      }
    }
    return false;
  }

  const DataflowGraph& graph_;
  const std::vector<Region>& regions_;
  int num_units_ = 0;
  std::vector<int> unit_of_;               ///< of each node
  std::vector<std::vector<int>> inputs_;   ///< of each unit, other units
  std::vector<int> position_;              ///< of each unit in topological order
  std::vector<int> first_, last_;          ///< least and greatest position in each group, under its representative
  std::vector<int> parent_;                ///< union-find over units
  std::vector<std::vector<int>> members_;  ///< regions of each group, under its representative
};

}  // namespace

Function MergeCompilerRegions(const Function& function, const IRModule&, const PassContext&) {
  const std::vector<Region> regions = FindRegions(function);
  const DataflowGraph graph(function);
  Merger merger(graph, regions);
  merger.Run();
  return AsShared<FunctionNode>(
      RewriteNodes(function, IsOrdinary, [&](const Expr& original, const Expr& expr, const Rewritten& done) -> Expr {
        const CallNode* begin = AsCallOf(original, kCompilerBegin);
        if (begin == nullptr) return expr;
        const CallNode* end = AsCallOf(begin->args()[0], kCompilerEnd);
        if (end == nullptr || !merger.AreMerged(original, begin->args()[0])) return expr;
        return done.at(end->args()[0].get());
      }));
}

}  // namespace collage
