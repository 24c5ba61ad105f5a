// coalesced_cover.cc: which partitions merge, and the layouts at their boundaries.
#include "driver/covers/coalesced_cover.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "partition/extract.h"

namespace collage {
namespace {

/// Layouts by the value that crosses a boundary.
using LayoutOfValue = std::map<BoundaryValue, Layout>;

/// How many of `values` have another layout in `layouts` than in `wanted`.
int CountDifferences(const std::vector<BoundaryValue>& values, const std::vector<Layout>& layouts,
                     const LayoutOfValue& wanted) {
  int count = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto of = wanted.find(values[i]);
    count += of != wanted.end() && of->second != layouts[i] ? 1 : 0;
  }
  return count;
}

class Coalescer {
 public:
  explicit Coalescer(const Candidates& candidates) : candidates_(candidates), graph_(candidates.graph()) {}

  /// Nothing where the toolchain does not take the merged partition.
  std::optional<BoundaryLayouts> LayoutsOf(const CandidatePartition& merged,
                                           const std::vector<const ChosenPartition*>& parts) const {
    if (graph_.boundaries() == Boundaries::kExact) return BoundaryLayouts{};
    const ExtractedFunction extracted = Extract(graph_, merged.sub_graph);
    const std::vector<BoundaryLayouts> choices = candidates_.LayoutsOf(merged, extracted);
    if (choices.empty()) return std::nullopt;
    LayoutOfValue reads, makes;
    for (const ChosenPartition* part : parts) {
      const Boundary boundary = BoundaryOf(graph_, part->candidate->sub_graph);
      for (size_t i = 0; i < boundary.inputs.size(); ++i) reads.emplace(boundary.inputs[i], part->layouts.inputs[i]);
      for (size_t i = 0; i < boundary.outputs.size(); ++i) makes.emplace(boundary.outputs[i], part->layouts.outputs[i]);
    }
    const auto differences = [&](const BoundaryLayouts& choice) {
      return CountDifferences(extracted.boundary.inputs, choice.inputs, reads) +
             CountDifferences(extracted.boundary.outputs, choice.outputs, makes);
    };
    return *std::ranges::min_element(choices, {}, differences);
  }

 private:
  const Candidates& candidates_;
  const DataflowGraph& graph_;
};

}  // namespace

OwnedPartitions Coalesced(const Candidates& candidates, const std::vector<ChosenPartition>& chosen,
                          const std::function<bool(const PartitionSpec& spec)>& merges) {
  OwnedPartitions result;
  std::vector<CandidatePartition> mergeable;
  std::map<int, const ChosenPartition*> part_at;  // by a node that no other part has
  const auto node_of = [&](const CandidatePartition& candidate) {
    return *std::ranges::find_if_not(candidate.sub_graph.members(),
                                     [&](int node) { return candidates.graph().IsCopied(node); });
  };
  const auto keep = [&](const ChosenPartition& partition) {
    result.candidates.push_back(*partition.candidate);
    result.chosen.push_back(partition);
    result.chosen.back().candidate = &result.candidates.back();
  };
  for (const ChosenPartition& partition : chosen) {
    if (!merges(*partition.candidate->spec)) {
      keep(partition);
      continue;
    }
    mergeable.push_back(*partition.candidate);
    part_at[node_of(*partition.candidate)] = &partition;
  }
  const Coalescer coalescer(candidates);
  for (CandidatePartition& merged : MaxCoalesce(candidates.graph(), mergeable, {.allow_taps = true})) {
    std::vector<const ChosenPartition*> parts;
    double seconds = 0;
    for (const int node : merged.sub_graph.members()) {
      const auto part = part_at.find(node);
      if (part == part_at.end()) continue;
      parts.push_back(part->second);
      seconds += part->second->estimated_seconds;
    }
    std::optional<BoundaryLayouts> layouts;
    if (parts.size() > 1) layouts = coalescer.LayoutsOf(merged, parts);
    if (!layouts) {
      for (const ChosenPartition* part : parts) keep(*part);
      continue;
    }
    result.candidates.push_back(std::move(merged));
    result.chosen.push_back({&result.candidates.back(), std::move(*layouts), seconds});
  }
  std::ranges::sort(result.chosen, {}, [](const ChosenPartition& one) { return one.candidate->sub_graph.first(); });
  return result;
}

OwnedPartitions CoalescedForLibraries(const Partitioner& partitioner, const Cover& cover) {
  return Coalesced(partitioner.candidates(), partitioner.ChosenOf(cover),
                   [](const PartitionSpec& spec) { return spec.toolchain->fusion_style() == FusionStyle::kArbitrary; });
}

}  // namespace collage
