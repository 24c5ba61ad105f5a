// node_placements.h: which partitions compute each node of the model, and how much of their time is its own.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "viewers/viewed_model.h"

namespace collage {

struct NodePlacement {
  std::vector<std::string> toolchains;  ///< its partitions' toolchains, each once
  std::vector<std::string> partitions;  ///< "12", in programs "kernel_3:12" or "shaped0"
  std::vector<std::string> operators;   ///< its partitions' operators
  std::optional<double> seconds;        ///< its share of the partitions' time
  std::optional<double> partition_seconds;
};

/// By the model's names of nodes. The time of a partition belongs to its nodes by their products, and in equal parts if
/// it has none, so that times of nodes add up to the model's. Nodes that were folded into constants, or that are other
/// shapes of the same memory, are in no partition.
std::map<std::string, NodePlacement> PlacementsOf(const ViewedModel& model);

}  // namespace collage
