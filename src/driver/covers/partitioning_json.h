// partitioning_json.h: a choice of partitions as text, so that phase 4 can run alone, on the result of a search, edited
// or not (RFC 0.81, Phase 3: "materialized and restored").
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collage/ir/module.h"
#include "partition/rewrite.h"

namespace collage {

/// The text of `chosen`:
///
///     {"format": "collage-partitioning", "version": 1,
///      "graph": {"nodes": 431, "hash": "…"},
///      "partitions": [{"toolchain": "dnnl", "inside": [6, 8], "operators": "nn.dense+add", "rule": "dnnl.dense_bias",
///                      "inputs": ["plain"], "outputs": ["plain"], "seconds": 1.2e-05,
///                      "nested": [{"inside": [6, 8], "attrs": {"Composite": "dnnl.dense_bias"}}]}, …]}
///
/// Nodes are post-dfs indices of `graph`, as `collage dataflow` shows them.
std::string PartitioningToJson(const DataflowGraph& graph, const std::vector<ChosenPartition>& chosen);

/// Reads the text of PartitioningToJson, which a person may have changed. Only "toolchain" and "inside" are needed.
/// "operators" is for people, but refused when it is wrong. Without "nested", the nested functions are those of the
/// toolchain's own candidate of these nodes. Without "inputs" and "outputs", layouts are those that the toolchain
/// prefers among the ones that the values may have at all (`eligible`, by node).
///
/// Throws kInput, with all mistakes of a kind at once, when the text is no partitioning, is of another graph, names an
/// unknown toolchain or node, when a partition is no valid sub-graph, when two overlap, when an operator that needs a
/// toolchain is left over, or when partitions need each other in a circle. `where` is the file's name.
OwnedPartitions PartitioningFromJson(std::string_view text, const std::string& where, const DataflowGraph& graph,
                                     const std::vector<bool>& eligible,
                                     const std::vector<const Toolchain*>& toolchains);

/// The digest of a graph in such texts.
std::string GraphDigest(const DataflowGraph& graph);

/// Nested functions in such texts.
nlohmann::ordered_json NestedToJson(const std::vector<NestedSubGraph>& nested);

/// Whether the text says that it is of `graph`: it has the digest of that graph.
bool IsPartitioningOf(std::string_view text, const DataflowGraph& graph);

/// The partitioned and typed module of a choice that was written as text, and the sum of its estimates; `graph` is of
/// @main of `module`. Throws as PartitioningFromJson.
std::pair<IRModule, double> PartitionedFromJson(std::string_view text, const std::string& where, const IRModule& module,
                                                const DataflowGraph& graph,
                                                const std::vector<const Toolchain*>& toolchains);

}  // namespace collage
