// partition_order.cc: strongly connected components of nodes and variants, by Tarjan's algorithm with an explicit
// stack.
#include "search/partition_order.h"

#include <algorithm>
#include <unordered_set>

namespace collage {
namespace {

/// Components of a directed graph, by vertex.
std::vector<int> ComponentsOf(const std::vector<std::vector<int>>& edges) {
  constexpr int kNone = -1;
  std::vector<int> component(edges.size(), kNone), number(edges.size(), kNone), low(edges.size());
  std::vector<int> open;                       // visited, in no component yet
  std::vector<std::pair<int, size_t>> frames;  // vertex, next edge
  int num_visited = 0, num_components = 0;
  for (int root = 0; root < static_cast<int>(edges.size()); ++root) {
    if (number[root] != kNone) continue;
    frames.emplace_back(root, 0);
    while (!frames.empty()) {
      const int vertex = frames.back().first;
      if (frames.back().second == 0) {
        number[vertex] = low[vertex] = num_visited++;
        open.push_back(vertex);
      }
      if (frames.back().second < edges[vertex].size()) {
        const int to = edges[vertex][frames.back().second++];
        if (number[to] == kNone) {
          frames.emplace_back(to, 0);
        } else if (component[to] == kNone) {
          low[vertex] = std::min(low[vertex], number[to]);
        }
        continue;
      }
      frames.pop_back();
      if (!frames.empty()) {
        int& above = low[frames.back().first];
        above = std::min(above, low[vertex]);
      }
      if (low[vertex] != number[vertex]) continue;
      for (int member = kNone; member != vertex;) {
        member = open.back();
        open.pop_back();
        component[member] = num_components;
      }
      ++num_components;
    }
  }
  return component;
}

}  // namespace

PartitionOrder::PartitionOrder(const CoverProblem& problem) : problem_(problem) {
  if (std::all_of(problem.variants.begin(), problem.variants.end(),
                  [](const CoverVariant& variant) { return variant.members.empty(); })) {
    return;
  }
  node_outputs_.resize(problem.node_inputs.size());
  for (size_t node = 0; node < problem.node_inputs.size(); ++node) {
    for (int input : problem.node_inputs[node]) {
      node_outputs_[input].push_back(static_cast<int>(node));
    }
  }
  FindGroups();
}

/// Vertices are nodes, then variants. A node leads to what reads it and to the variants that hold it, a variant to what
/// reads its members from outside: variants in one component may reach each other in a circle, others never.
void PartitionOrder::FindGroups() {
  std::vector<std::vector<int>> edges = node_outputs_;
  std::vector<VariantIndex> variants;
  for (VariantIndex v : problem_.variants.indices()) {
    const std::vector<int>& members = problem_.variants[v].members;
    if (members.empty() || problem_.variants[v].covers.empty()) continue;
    const auto vertex = static_cast<int>(edges.size());
    variants.push_back(v);
    edges.emplace_back();
    for (int member : members) {
      edges[member].push_back(vertex);
      for (int output : node_outputs_[member]) {
        if (!std::binary_search(members.begin(), members.end(), output)) edges.back().push_back(output);
      }
    }
  }
  const std::vector<int> component = ComponentsOf(edges);
  std::unordered_map<int, std::vector<VariantIndex>> together;
  for (size_t i = 0; i < variants.size(); ++i) {
    together[component[node_outputs_.size() + i]].push_back(variants[i]);
  }
  for (const auto& [_, group] : together) {
    if (group.size() < 2) continue;
    Position last;
    for (VariantIndex v : group) {
      group_[v] = static_cast<int>(last_start_.size());
      last = std::max(last, problem_.variants[v].covers.front());
    }
    last_start_.push_back(last);
  }
}

bool PartitionOrder::CanJoin(const std::vector<VariantIndex>& chosen, VariantIndex variant) {
  if (chosen.empty() || !IsRisky(variant)) return true;
  std::vector<VariantIndex> work{variant};
  std::unordered_set<VariantIndex> seen;
  while (!work.empty()) {
    const VariantIndex from = work.back();
    work.pop_back();
    for (VariantIndex to : chosen) {
      if (seen.contains(to) || !Reaches(from, to)) continue;
      if (Reaches(to, variant)) return false;
      seen.insert(to);
      work.push_back(to);
    }
  }
  return true;
}

bool PartitionOrder::Reaches(VariantIndex from, VariantIndex to) {
  const int64_t key =
      static_cast<int64_t>(from.number()) * static_cast<int64_t>(problem_.variants.size()) + to.number();
  if (auto it = reaches_.find(key); it != reaches_.end()) return it->second;
  const std::vector<int>& targets = problem_.variants[to].members;
  std::vector<int> work = problem_.variants[from].members;
  std::unordered_set<int> seen(work.begin(), work.end());
  bool found = false;
  while (!work.empty() && !found) {
    const int node = work.back();
    work.pop_back();
    for (int output : node_outputs_[node]) {
      if (output > targets.back() || !seen.insert(output).second) continue;  // later nodes do not lead back
      found = found || std::binary_search(targets.begin(), targets.end(), output);
      work.push_back(output);
    }
  }
  return reaches_[key] = found;
}

}  // namespace collage
