// sub_graph.cc: derived node sets, validity, closure operations.
#include "partition/sub_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "collage/support/error.h"
#include "dataflow/needs.h"
#include "support/sort_unique.h"
#include "target/annotations.h"

namespace collage {
namespace {

/// Nested sub-graphs lie within `members` and do not share work.
Result<void> CheckNested(const DataflowGraph& graph, const std::vector<int>& members,
                         const std::vector<NestedSubGraph>& nested) {
  std::vector<int> taken;
  for (const NestedSubGraph& one : nested) {
    if (!std::includes(members.begin(), members.end(), one.inside.begin(), one.inside.end())) {
      return Reason{"a nested sub-graph reaches outside of it", "sub-graph"};
    }
    const Result<void> inner = CheckNested(graph, one.inside, one.nested);
    if (!inner.ok()) return inner;
    std::copy_if(one.inside.begin(), one.inside.end(), std::back_inserter(taken),
                 [&](int index) { return !graph.IsCopied(index); });
  }
  std::sort(taken.begin(), taken.end());
  if (std::adjacent_find(taken.begin(), taken.end()) == taken.end()) return {};
  return Reason{"nested sub-graphs overlap", "sub-graph"};
}

/// Composites in order, each as its name, its nodes, and the Composites in it. Letters are negative, nodes are not.
std::vector<std::vector<int>> CompositeKeys(const std::vector<NestedSubGraph>& nested) {
  constexpr int kEnd = -1;
  std::vector<std::vector<int>> keys;
  for (const NestedSubGraph& one : nested) {
    std::vector<std::vector<int>> inner = CompositeKeys(one.nested);
    if (!one.attrs.Has("Composite")) {
      std::ranges::move(inner, std::back_inserter(keys));
      continue;
    }
    std::vector<int> key;
    for (const char letter : one.attrs.StringOr("Composite", ""))
      key.push_back(kEnd - 1 - static_cast<uint8_t>(letter));
    key.insert(key.end(), one.inside.begin(), one.inside.end());
    for (const std::vector<int>& of : inner) key.insert(key.end(), of.begin(), of.end());
    key.push_back(kEnd);
    keys.push_back(std::move(key));
  }
  std::ranges::sort(keys);
  return keys;
}

}  // namespace

SubGraph::SubGraph(const DataflowGraph& graph, std::vector<int> inside)
    : inside_(graph.size(), inside), members_(std::move(inside)) {
  COLLAGE_CHECK(!members_.empty()) << "an empty sub-graph";
  SortUnique(members_);
  std::vector<int> depths;  // by position in members_: nodes on the longest path from an entry to here
  for (int index : members_) {
    const DataflowGraph::Node& node = graph.node(index);
    int depth = 0;
    bool is_entry = false;
    for (int input : node.inputs) {
      if (inside_.Contains(input)) {
        const auto position = std::lower_bound(members_.begin(), members_.end(), input) - members_.begin();
        depth = std::max(depth, depths[position]);
      } else if (!graph.CanInline(input)) {
        input_.push_back(input);
        is_entry = true;
      }
    }
    if (is_entry) entry_.push_back(index);
    depths.push_back(is_entry || depth > 0 ? depth + 1 : 0);
    const size_t outputs_before = output_.size();
    std::copy_if(node.outputs.begin(), node.outputs.end(), std::back_inserter(output_),
                 [&](int output) { return !inside_.Contains(output); });
    const bool is_exit = (output_.size() > outputs_before && !graph.IsCopied(index)) || node.is_external;
    if (is_exit) {
      exit_.push_back(index);
      depth_ = std::max(depth_, depths.back());
    } else {
      output_.resize(outputs_before);
    }
    kind_ = std::max(kind_, graph.KindAt(index));
  }
  SortUnique(input_);
  SortUnique(output_);
}

std::string SubGraph::Label(const DataflowGraph& graph) const {
  std::string label;
  for (int index : members_) label += (label.empty() ? "" : "+") + graph.LabelAt(index);
  return label;
}

std::string SubGraph::OperatorLabel(const DataflowGraph& graph) const {
  std::string label;
  for (int index : members_) {
    if (graph.OpAt(index) != nullptr) label += (label.empty() ? "" : "+") + graph.LabelAt(index);
  }
  return label;
}

SubGraph SubGraph::Wrapped(Attrs attrs) const {
  SubGraph result = *this;
  result.nested = {{members_, std::move(attrs), nested}};
  return result;
}

Result<void> SubGraph::CheckValid(const DataflowGraph& graph, const SubGraphConfig& config) const {
  if (config.max_exits > 0 && static_cast<int>(exit_.size()) > config.max_exits) {
    return Reason{fmt::format("{} exits, at most {} are allowed", exit_.size(), config.max_exits), "sub-graph"};
  }
  if (config.max_depth > 0 && depth_ > config.max_depth) {
    return Reason{fmt::format("depth {}, at most {} is allowed", depth_, config.max_depth), "sub-graph"};
  }
  for (int index : exit_) {
    if (config.allow_taps) break;
    for (int output : graph.node(index).outputs) {
      if (inside_.Contains(output)) return Reason{fmt::format("node {} is a tap", index), "sub-graph"};
    }
  }
  Result<void> runnable = CheckRunnable(graph);
  if (!runnable.ok()) return runnable;
  return nested.empty() ? Result<void>() : CheckNested(graph, members_, nested);
}

Result<void> SubGraph::CheckRunnable(const DataflowGraph& graph) const {
  for (int index : members_) {
    if (!graph.IsCopied(index) && !graph.AreTogether(index, last())) {
      return Reason{fmt::format("nodes {} and {} are in different branches or functions", index, last()), "sub-graph"};
    }
  }
  // The call stands where all uses of its results can see it, which must be where its arguments can be computed.
  if (exit_.empty()) return CheckConvex(graph);
  const ScopeTree& scopes = graph.scopes();
  int place = graph.node(exit_[0]).place;
  for (int index : exit_) place = scopes.Common(place, graph.node(index).place);
  for (int index : members_) {
    const ExprKind kind = graph.node(index).expr->kind();
    const bool binds = kind == ExprKind::kLet || kind == ExprKind::kIf || kind == ExprKind::kMatch;
    if (binds || kind == ExprKind::kFunction) continue;  // what it is made of stays within it
    for (int input : graph.node(index).inputs) {
      if (inside_.Contains(input) || scopes.IsWithin(place, graph.node(input).bound_in)) continue;
      return Reason{fmt::format("node {} needs a variable that is not bound wherever the results are used", input),
                    "sub-graph"};
    }
  }
  return CheckConvex(graph);
}

Result<void> SubGraph::CheckConvex(const DataflowGraph& graph) const {
  // Nodes between first and last that depend on the sub-graph from outside must not feed it: post-dfs order is
  // topological, so one sweep finds them. A constant inside may have other users, it depends on nothing.
  std::vector<char> tainted(last() - first() + 1);
  for (int index = first(); index <= last(); ++index) {
    const bool is_inside = inside_.Contains(index);
    bool is_tainted = false, comes_back = false;
    ForEachNeed(graph, index, [&](int input) {
      if (input < first()) return;
      const bool from_tainted = tainted[input - first()] != 0;
      comes_back = comes_back || (is_inside && from_tainted);
      is_tainted = is_tainted || from_tainted || (inside_.Contains(input) && !graph.IsCopied(input));
    });
    if (comes_back) return Reason{fmt::format("a path leaves and comes back at node {}", index), "sub-graph"};
    tainted[index - first()] = !is_inside && is_tainted ? 1 : 0;
  }
  return {};
}

std::vector<NestedSubGraph> WithoutPrimitives(std::vector<NestedSubGraph> nested) {
  std::vector<NestedSubGraph> result;
  for (NestedSubGraph& one : nested) {
    std::vector<NestedSubGraph> inner = WithoutPrimitives(std::move(one.nested));
    if (one.attrs.IntOr(kAttrPrimitive, 0) != 0) {
      std::ranges::move(inner, std::back_inserter(result));
    } else {
      result.push_back({std::move(one.inside), std::move(one.attrs), std::move(inner)});
    }
  }
  return result;
}

std::vector<int> KeyOf(std::vector<int> members, const std::vector<NestedSubGraph>& nested) {
  for (const std::vector<int>& key : CompositeKeys(nested)) members.insert(members.end(), key.begin(), key.end());
  return members;
}

SubGraph DisjointUnion(const DataflowGraph& graph, const SubGraph& a, const SubGraph& b, std::vector<int> between) {
  between.insert(between.end(), a.members().begin(), a.members().end());
  between.insert(between.end(), b.members().begin(), b.members().end());
  SubGraph result(graph, std::move(between));
  result.nested = a.nested;
  AddNested(result.nested, b.nested);
  return result;
}

void AddNested(std::vector<NestedSubGraph>& nested, const std::vector<NestedSubGraph>& more) {
  for (const NestedSubGraph& other : more) {
    auto same = std::find_if(nested.begin(), nested.end(), [&](const NestedSubGraph& one) {
      return one.attrs == other.attrs && !one.attrs.Has("Composite");
    });
    if (same == nested.end()) {
      nested.push_back(other);
      continue;
    }
    same->inside.insert(same->inside.end(), other.inside.begin(), other.inside.end());
    SortUnique(same->inside);
    same->nested.insert(same->nested.end(), other.nested.begin(), other.nested.end());
  }
}

bool Overlap(const DataflowGraph& graph, const SubGraph& a, const SubGraph& b) {
  if (a.inside().AreDisjoint(b.inside())) return false;
  const SubGraph& fewer = a.members().size() < b.members().size() ? a : b;
  const SubGraph& more = &fewer == &a ? b : a;
  return std::any_of(fewer.members().begin(), fewer.members().end(),
                     [&](int index) { return !graph.IsCopied(index) && more.inside().Contains(index); });
}

}  // namespace collage
