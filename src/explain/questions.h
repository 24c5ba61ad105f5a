// questions.h: which partition of an explanation a question is about.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "explain/explanation.h"

namespace collage {

/// A partition of the winner of one graph.
struct PartitionPlace {
  size_t graph = 0;
  size_t partition = 0;
};

/// The graph at `number`. Throws kInput, naming `where`, for one that is not there.
const GraphExplanation& GraphAt(const Explanation& explanation, int64_t number, const std::string& where);

/// The partition at `number` of a graph. Throws kInput, naming `where`, for one that is not there.
PartitionPlace PartitionAt(const Explanation& explanation, size_t graph, int64_t number, const std::string& where);

/// The partitions that compute nodes of the model called `name`, in the order of graphs and partitions. Throws kInput,
/// with near misses, when no partition does.
std::vector<PartitionPlace> PartitionsOf(const Explanation& explanation, const std::string& name);

/// The calls of a graph that the model calls `name`, ascending.
std::vector<int> NodesNamed(const GraphExplanation& graph, const std::string& name);

/// The numbers of a graph's configurations of a toolchain, by its registered name or a configuration's.
std::vector<int> ConfigurationsOf(const GraphExplanation& graph, const std::string& toolchain);

/// Throws kInput, with near misses, unless the compilation knew a toolchain of this name.
void CheckToolchain(const Explanation& explanation, const std::string& toolchain);

/// The operators that a candidate computes: "nn.conv2d+nn.relu".
std::string OperatorsOf(const GraphExplanation& graph, const ExplainedCandidate& candidate);

/// Names in the model of the calls at `nodes`, each once; a call without one has its operator's in brackets.
std::vector<std::string> NamesOf(const GraphExplanation& graph, const std::vector<int>& nodes);

/// "channels_last", or "plain, channels_last" where they differ, each once; "plain" for none.
std::string FormatsText(const std::vector<std::string>& formats);

/// The candidate of a partition.
const ExplainedCandidate& CandidateOf(const GraphExplanation& graph, const ExplainedPartition& partition);
/// The cost of a candidate; null where it has none.
const ExplainedCost* CostOf(const GraphExplanation& graph, const ExplainedCandidate& candidate);

}  // namespace collage
