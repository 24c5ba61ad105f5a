// graph_level.h: the paper's graph-level search: which partitions of an op-level cover are handed to graph toolchains,
// decided by what the whole takes when it runs.
#pragma once

#include <functional>
#include <vector>

#include "partition/partition_rule.h"
#include "search/strategies/evolution.h"

namespace collage {

/// The partitions of `base` after each was kept (`choice[i]` null) or handed to a toolchain. Neighbours of one
/// toolchain become one partition, as far as it stays valid and all can still be put in order: more than any rule would
/// make a candidate of. Partitions that the base had with that toolchain already take part.
std::vector<CandidatePartition> HandOver(const DataflowGraph& graph, const std::vector<CandidatePartition>& base,
                                         const std::vector<const Toolchain*>& choice);

struct GraphLevelResult {
  std::vector<CandidatePartition> partitions;
  double seconds = 0;  ///< fitness of these
  int64_t num_evaluations = 0;
};

/// Evolves the choice: one gene for each partition of `base` that another of the graph `toolchains` supports whole, by
/// its predicate for operators. `measure` says how long partitions take end to end; infinity when they fail. The base
/// itself is the first that is tried, so the result is never slower.
GraphLevelResult EvolveGraphLevel(const DataflowGraph& graph, const std::vector<CandidatePartition>& base,
                                  const std::vector<const Toolchain*>& toolchains, const EvolutionOptions& options,
                                  const std::function<double(const std::vector<CandidatePartition>&)>& measure);

}  // namespace collage
