// alternatives.cc: the most expensive partitions of a cover with their alternatives, for a report.
#include "driver/covers/alternatives.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "driver/covers/alternative_finder.h"
#include "ir/place.h"

namespace collage {
namespace {

// Partitions that are explained: a report of more would not be read.
constexpr size_t kMostChoices = 10;
constexpr double kLeastShare = 5e-3;

PartitionChoice ChoiceOf(Partitioner& partitioner, const Cover& cover, AlternativeFinder& finder, size_t number) {
  const VariantIndex chosen = cover.variants[number];
  const Candidates& candidates = partitioner.candidates();
  const CandidatePartition& partition = candidates.CandidateOf(chosen);
  const std::vector<Position>& covers = partitioner.Problem().variants[chosen].covers;
  const int first_node = partitioner.NodesAt({covers.front()}).front();
  PartitionChoice choice;
  choice.operators = partition.sub_graph.OperatorLabel(candidates.graph());
  choice.num_operators = static_cast<int>(covers.size());
  choice.first_node = PlaceOf(candidates.graph().node(first_node).expr->span());
  choice.toolchain = partition.toolchain->name();
  choice.seconds = finder.known().Of(chosen).seconds;
  choice.share = choice.seconds / finder.seconds();
  const AlternativeFinder::Ways ways = finder.Within(number);
  for (const CoverAlternative& one : ways.alternatives) {
    PartitionAlternative& alternative = choice.alternatives.emplace_back();
    for (const VariantIndex v : one.variants) ++alternative.partitions[candidates.CandidateOf(v).toolchain->name()];
    alternative.extra_seconds = one.extra_seconds;
    alternative.is_bound = one.is_bound;
  }
  for (const auto& [toolchain, reason] : ways.refusals) choice.refusals[toolchain->name()] = reason;
  return choice;
}

}  // namespace

std::vector<PartitionChoice> ExplainChoices(Partitioner& partitioner, const Cover& cover,
                                            const std::function<bool(CandidateIndex candidate)>& allowed) {
  AlternativeFinder finder(partitioner, cover, allowed);
  if (!finder.IsExplained()) return {};
  const auto seconds_of = [&](size_t number) { return finder.known().Of(cover.variants[number]).seconds; };
  std::vector<size_t> dearest(cover.variants.size());
  std::iota(dearest.begin(), dearest.end(), size_t{0});
  std::ranges::stable_sort(dearest, std::greater(), seconds_of);
  if (dearest.size() > kMostChoices) dearest.resize(kMostChoices);
  std::vector<PartitionChoice> choices;
  for (const size_t number : dearest) {
    if (seconds_of(number) >= kLeastShare * finder.seconds()) {
      choices.push_back(ChoiceOf(partitioner, cover, finder, number));
    }
  }
  return choices;
}

}  // namespace collage
