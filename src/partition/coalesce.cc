// coalesce.cc: contracting edges of the partition graph under a topological order that is kept up to date: a merge
// moves only what stands between its two ends (after Pearce and Kelly, "A dynamic topological sort algorithm", 2006).
#include "partition/coalesce.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "collage/support/error.h"
#include "dataflow/needs.h"

namespace collage {
namespace {

/// Parts and the nodes in none, as units; merged units are represented by one of them.
class PartitionGraph {
 public:
  PartitionGraph(const DataflowGraph& graph, const std::vector<const SubGraph*>& parts) : unit_of_(graph.size(), -1) {
    for (size_t i = 0; i < parts.size(); ++i) {
      for (int index : parts[i]->members()) {
        if (!graph.IsCopied(index)) unit_of_[index] = static_cast<int>(i);
      }
    }
    int num_units = static_cast<int>(parts.size());
    for (int& unit : unit_of_) {
      if (unit < 0) unit = num_units++;
    }
    feeds_.resize(num_units);
    for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
      ForEachNeed(graph, index, [&](int input) {
        const int from = unit_of_[input];
        const int to = unit_of_[index];
        if (from != to) feeds_[from].push_back(to);
      });
    }
    parent_.resize(num_units);
    std::iota(parent_.begin(), parent_.end(), 0);
    Sort();
  }

  int UnitOf(int node) { return Find(unit_of_[node]); }

  /// Merges `from` and `to`, of which the first feeds the second; false, and nothing changes, when there is another way
  /// from one to the other.
  bool Merge(int from, int to) {
    const int begin = Position(from), end = Position(to);
    std::erase_if(feeds_[from], [&](int user) { return Find(user) == from; });  // merged before
    std::unordered_set<int> below;  // units that `from` reaches on the way to `to`
    std::vector<int> work{from};
    while (!work.empty()) {
      const int unit = work.back();
      work.pop_back();
      for (int next : feeds_[unit]) {
        next = Find(next);
        if (next == to && unit != from) return false;
        if (next == to || next == from || Position(next) > end || !below.insert(next).second) continue;
        work.push_back(next);
      }
    }
    // Units between the two: what `from` does not reach goes before the merged one, the rest behind it.
    std::vector<int> before, behind;
    for (int at = begin + 1; at < end; ++at) {
      const int unit = order_[at];
      if (unit < 0) continue;
      (below.contains(unit) ? behind : before).push_back(unit);
    }
    Unite(from, to);
    int at = begin;
    const auto place = [&](int unit) {
      order_[at] = unit;
      if (unit >= 0) position_[unit] = at;
      ++at;
    };
    const int num_units = static_cast<int>(before.size() + behind.size()) + 1;
    while (at <= end - num_units) place(-1);  // at the front: nets are merged in their order, so the next ends are near
    for (int unit : before) place(unit);
    place(Find(from));
    for (int unit : behind) place(unit);
    return true;
  }

 private:
  int Find(int unit) {
    while (parent_[unit] != unit) {
      int& parent = parent_[unit];
      unit = parent = parent_[parent];
    }
    return unit;
  }
  int Position(int unit) const { return position_[unit]; }

  void Unite(int from, int to) {
    std::vector<int>& a = feeds_[from];
    std::vector<int>& b = feeds_[to];
    const bool keeps_from = a.size() >= b.size();
    std::vector<int>& more = keeps_from ? a : b;
    std::vector<int>& fewer = keeps_from ? b : a;
    more.insert(more.end(), fewer.begin(), fewer.end());
    fewer.clear();
    parent_[keeps_from ? to : from] = keeps_from ? from : to;
  }

  void Sort() {
    std::vector<int> waits_for(feeds_.size());
    for (const std::vector<int>& users : feeds_) {
      for (int user : users) ++waits_for[user];
    }
    for (int unit = 0; unit < static_cast<int>(feeds_.size()); ++unit) {
      if (waits_for[unit] == 0) order_.push_back(unit);
    }
    for (size_t i = 0; i < order_.size(); ++i) {
      for (int user : feeds_[order_[i]]) {
        if (--waits_for[user] == 0) order_.push_back(user);
      }
    }
    COLLAGE_CHECK(order_.size() == feeds_.size()) << "sub-graphs that depend on each other in a circle";
    position_.resize(order_.size());
    for (size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = static_cast<int>(i);
  }

  std::vector<int> unit_of_;             ///< by node: before merging
  std::vector<std::vector<int>> feeds_;  ///< by representative; users as they were before merging, with duplicates
  std::vector<int> parent_;              ///< towards the representative
  std::vector<int> order_;               ///< representatives in topological order; -1 where one was merged away
  std::vector<int> position_;            ///< by representative: where in `order_`
};

}  // namespace

std::vector<int> CoalesceGroups(
    const DataflowGraph& graph, const std::vector<const SubGraph*>& parts,
    const std::function<bool(const std::vector<int>& a, const std::vector<int>& b)>& allows) {
  PartitionGraph units(graph, parts);
  const int num_parts = static_cast<int>(parts.size());
  std::vector<std::vector<int>> members(parts.size());  // by representative: which parts
  for (int part = 0; part < num_parts; ++part) members[part] = {part};
  // A merge may open the way for one that was refused before (two ways between the ends may become one): repeat until
  // none is left. Each round but the last merges something, so there are fewer rounds than parts.
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
      for (int output : graph.node(index).outputs) {
        const int from = units.UnitOf(index), to = units.UnitOf(output);
        if (from == to || from >= num_parts || to >= num_parts) continue;
        std::vector<int>& a = members[from];
        std::vector<int>& b = members[to];
        if (!allows(a, b) || !units.Merge(from, to)) continue;
        is_changed = true;
        const bool keeps_from = units.UnitOf(index) == from;
        std::vector<int>& kept = keeps_from ? a : b;
        std::vector<int>& gone = keeps_from ? b : a;
        if (kept.size() < gone.size()) kept.swap(gone);
        kept.insert(kept.end(), gone.begin(), gone.end());
        gone.clear();
      }
    }
  }
  std::vector<int> group(parts.size(), -1);
  for (const std::vector<int>& merged : members) {
    if (merged.empty()) continue;
    const int first = *std::min_element(merged.begin(), merged.end());
    for (int part : merged) group[part] = first;
  }
  return group;
}

SubGraph UnionOf(const DataflowGraph& graph, const std::vector<const SubGraph*>& parts) {
  SubGraph result = *parts.front();
  if (parts.size() > 1) {
    // Node sets at once: joining one by one would be quadratic.
    std::vector<int> members;
    for (const SubGraph* part : parts) members.insert(members.end(), part->members().begin(), part->members().end());
    result = SubGraph(graph, std::move(members));
    for (const SubGraph* part : parts) AddNested(result.nested, part->nested);
  }
  return result;
}

}  // namespace collage
