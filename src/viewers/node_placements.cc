// node_placements.cc: which partitions compute each node of the model.
#include "viewers/node_placements.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace collage {
namespace {

void AddOnce(std::vector<std::string>& texts, const std::string& text) {
  if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
}

std::string NumberOf(const StepProfile& step) {
  if (!step.partition) return step.plan;
  return step.plan.empty() ? std::to_string(*step.partition) : fmt::format("{}:{}", step.plan, *step.partition);
}

double ShareOf(const StepProfile& step, size_t node) {
  if (step.node_products.size() == step.nodes.size()) {
    const double all = std::accumulate(step.node_products.begin(), step.node_products.end(), 0.0);
    if (all > 0) return step.node_products[node] / all;
  }
  return 1.0 / static_cast<double>(step.nodes.size());
}

}  // namespace

std::map<std::string, NodePlacement> PlacementsOf(const ViewedModel& model) {
  std::map<std::string, NodePlacement> placements;
  for (const StepProfile& step : model.steps()) {
    const std::optional<double> seconds = SecondsOf(step);
    for (size_t i = 0; i < step.nodes.size(); ++i) {
      NodePlacement& placement = placements[step.nodes[i]];
      AddOnce(placement.toolchains, step.toolchain);
      AddOnce(placement.partitions, NumberOf(step));
      AddOnce(placement.operators, step.operators);
      if (!seconds) continue;
      placement.seconds = placement.seconds.value_or(0) + ShareOf(step, i) * *seconds;
      placement.partition_seconds = placement.partition_seconds.value_or(0) + *seconds;
    }
  }
  return placements;
}

}  // namespace collage
