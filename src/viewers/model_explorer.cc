// model_explorer.cc: the formats are those of the package ai-edge-model-explorer, whose classes `Graph` and
// `GraphNodeData` read them.
#include "viewers/model_explorer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "viewers/node_placements.h"

namespace collage {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMicrosecond = 1e-6;

Json KeyValue(const std::string& key, const std::string& value) { return {{"key", key}, {"value", value}}; }

std::string Microseconds(double seconds) { return fmt::format("{:.3f}", seconds / kMicrosecond); }

/// A name that the viewer does not take for a path.
std::string WithoutSlashes(std::string name) {
  std::ranges::replace(name, '/', '.');
  return name;
}

std::string Shortened(const std::string& text) {
  constexpr size_t kMost = 60;
  return text.size() <= kMost ? text : text.substr(0, kMost - 3) + "...";
}

/// The graph of partitions.
class PartitionGraph {
 public:
  explicit PartitionGraph(const ViewedModel& viewed) : viewed_(viewed) {}

  Json Make() {
    for (const NamedPlan& plan : viewed_.plans()) AddPlan(plan);
    for (const StepProfile& step : viewed_.steps()) {
      if (step.kind == "any size") nodes_.push_back(NodeOf(step, step.plan, "any size"));
    }
    return {{"id", "partitions"}, {"nodes", std::move(nodes_)}};
  }

 private:
  static int Root(const ExecutionPlan& plan, int value) {
    const int root = plan.values[static_cast<size_t>(value)].alias_of;
    return root >= 0 ? root : value;
  }

  static std::string TypeOf(const ExecutionPlan& plan, int index) {
    const ExecutionPlan::Value& value = plan.values[static_cast<size_t>(index)];
    const std::string type = value.dtype.ToString() + ToString(value.shape);
    return value.layout == Layout::kPlain ? type : fmt::format("{} {}", type, ToString(value.layout));
  }

  Json NodeOf(const StepProfile& step, const std::string& id, const std::string& group) const {
    Json attrs = Json::array();
    if (step.partition) attrs.push_back(KeyValue("partition", std::to_string(*step.partition)));
    attrs.push_back(KeyValue("toolchain", step.toolchain));
    attrs.push_back(KeyValue("operators", step.operators));
    if (!step.nodes.empty()) attrs.push_back(KeyValue("nodes", fmt::format("{}", fmt::join(step.nodes, "\n"))));
    if (const std::optional<double> seconds = SecondsOf(step)) {
      attrs.push_back(
          KeyValue(viewed_.is_measured() ? "microseconds" : "microseconds, estimated", Microseconds(*seconds)));
      attrs.push_back(KeyValue("share", fmt::format("{:.1f} %", 100 * *seconds / viewed_.AllSeconds())));
    }
    return {{"id", id},
            {"label", step.partition ? fmt::format("{}: {}", step.toolchain, Shortened(step.operators)) : step.kind},
            {"namespace", WithoutSlashes(group)},
            {"attrs", std::move(attrs)},
            {"incomingEdges", Json::array()},
            {"outputsMetadata", Json::array()},
            {"style", {{"backgroundColor", viewed_.ColorOf(step.toolchain)}}}};
  }

  void AddPlan(const NamedPlan& named) {
    const ExecutionPlan& plan = *named.plan;
    const std::string prefix = named.name.empty() ? "" : named.name + ":";
    makers_.clear();
    for (const ExecutionPlan::Port& input : plan.inputs) {
      const std::string id = prefix + "input " + input.name;
      nodes_.push_back(PortOf(id, input.name, named.name));
      AddOutputs(plan, {input.value}, id);
    }
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      const std::string id = fmt::format("{}{}", prefix, i);
      nodes_.push_back(NodeOf(viewed_.StepOf(named, i), id, named.name));
      AddEdges(plan, plan.steps[i].inputs);
      AddOutputs(plan, plan.steps[i].outputs, id);
    }
    for (const ExecutionPlan::Port& output : plan.outputs) {
      nodes_.push_back(PortOf(prefix + "output " + output.name, output.name, named.name));
      AddEdges(plan, {output.value});
    }
  }

  static Json PortOf(const std::string& id, const std::string& label, const std::string& group) {
    return {{"id", id},
            {"label", label},
            {"namespace", WithoutSlashes(group)},
            {"attrs", Json::array()},
            {"incomingEdges", Json::array()},
            {"outputsMetadata", Json::array()}};
  }

  /// Edges to the node that was added last; constants have none.
  void AddEdges(const ExecutionPlan& plan, const std::vector<int>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto maker = makers_.find(Root(plan, values[i]));
      if (maker == makers_.end()) continue;
      nodes_.back()["incomingEdges"].push_back({{"sourceNodeId", maker->second.first},
                                                {"sourceNodeOutputId", std::to_string(maker->second.second)},
                                                {"targetNodeInputId", std::to_string(i)}});
    }
  }

  void AddOutputs(const ExecutionPlan& plan, const std::vector<int>& values, const std::string& id) {
    for (size_t i = 0; i < values.size(); ++i) {
      makers_[Root(plan, values[i])] = {id, i};
      nodes_.back()["outputsMetadata"].push_back(
          {{"id", std::to_string(i)}, {"attrs", Json::array({KeyValue("tensor_shape", TypeOf(plan, values[i]))})}});
    }
  }

  const ViewedModel& viewed_;
  Json nodes_ = Json::array();
  std::map<int, std::pair<std::string, size_t>> makers_;  ///< by value of the plan: the node and the output's number
};

/// The user's nodes, in a group for each partition.
Json ModelGraph(const ViewedModel& viewed, const OnnxOutline& model) {
  const std::map<std::string, NodePlacement> placements = PlacementsOf(viewed);
  std::map<std::string, std::pair<std::string, size_t>> makers;
  Json nodes = Json::array();
  Json groups = Json::object();
  const auto add = [&](const std::string& id, const std::string& label, const std::vector<std::string>& inputs) {
    Json edges = Json::array();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto maker = makers.find(inputs[i]);
      if (maker == makers.end()) continue;  // a weight
      edges.push_back({{"sourceNodeId", maker->second.first},
                       {"sourceNodeOutputId", std::to_string(maker->second.second)},
                       {"targetNodeInputId", std::to_string(i)}});
    }
    nodes.push_back({{"id", id},
                     {"label", label},
                     {"namespace", ""},
                     {"attrs", Json::array()},
                     {"incomingEdges", std::move(edges)}});
  };
  for (const std::string& input : model.inputs) {
    add("[input]" + input, input, {});
    makers[input] = {"[input]" + input, 0};
  }
  for (const OnnxOutline::Node& node : model.nodes) {
    for (size_t i = 0; i < node.outputs.size(); ++i) makers[node.outputs[i]] = {node.name, i};
  }
  for (const OnnxOutline::Node& node : model.nodes) {
    add(node.name, node.op_type, node.inputs);
    const auto found = placements.find(node.name);
    if (found == placements.end()) continue;
    const NodePlacement& placement = found->second;
    const std::string group = WithoutSlashes(
        fmt::format("{} {}", fmt::join(placement.partitions, ", "), fmt::join(placement.toolchains, ", ")));
    Json& made = nodes.back();
    made["namespace"] = group;
    made["style"] = {{"backgroundColor", viewed.ColorOf(placement.toolchains.front())}};
    made["attrs"].push_back(KeyValue("toolchain", fmt::format("{}", fmt::join(placement.toolchains, ", "))));
    made["attrs"].push_back(KeyValue("partition", fmt::format("{}", fmt::join(placement.partitions, ", "))));
    groups[group]["operators"] = fmt::format("{}", fmt::join(placement.operators, "; "));
    if (!placement.seconds) continue;
    made["attrs"].push_back(KeyValue("microseconds", Microseconds(*placement.seconds)));
    groups[group]["microseconds"] = Microseconds(*placement.partition_seconds);
  }
  for (const std::string& output : model.outputs) add("[output]" + output, output, {output});
  return {{"id", "operators by partition"}, {"nodes", std::move(nodes)}, {"groupNodeAttributes", std::move(groups)}};
}

/// Node data of one kind: `value_of` gives a node's, null for none.
template <typename ValueOf>
std::string DataOf(const OnnxOutline& model, const std::map<std::string, NodePlacement>& placements, bool is_number,
                   ValueOf value_of) {
  Json results = Json::object();
  for (const OnnxOutline::Node& node : model.nodes) {
    const auto found = placements.find(node.name);
    if (found == placements.end()) continue;
    Json result = value_of(found->second);
    if (!result.is_null()) results[node.name] = std::move(result);
  }
  Json graph{{"results", std::move(results)}};
  if (is_number) {
    graph["gradient"] = Json::array({{{"stop", 0}, {"bgColor", "#ffffff"}}, {{"stop", 1}, {"bgColor", "#fb8072"}}});
  } else {
    graph["showExpandedSummaryOnGroupNode"] = true;
  }
  return Json{{model.graph, std::move(graph)}}.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string ModelExplorerGraphs(const ViewedModel& viewed, const OnnxOutline* model) {
  Json graphs = Json::array({PartitionGraph(viewed).Make()});
  if (model != nullptr) graphs.push_back(ModelGraph(viewed, *model));
  const Json collection{{"label", viewed.name()}, {"graphs", std::move(graphs)}};
  return collection.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

NodeDataFiles ModelExplorerNodeData(const ViewedModel& viewed, const OnnxOutline& model) {
  const std::map<std::string, NodePlacement> placements = PlacementsOf(viewed);
  const double all = viewed.AllSeconds();
  NodeDataFiles files;
  for (const OnnxOutline::Node& node : model.nodes) files.nodes += placements.count(node.name);
  files.microseconds = DataOf(model, placements, true, [](const NodePlacement& of) -> Json {
    if (!of.seconds) return nullptr;
    return {{"value", *of.seconds / kMicrosecond}};
  });
  files.share = DataOf(model, placements, true, [all](const NodePlacement& of) -> Json {
    if (!of.seconds || all <= 0) return nullptr;
    return {{"value", 100 * *of.seconds / all}};
  });
  files.toolchain = DataOf(model, placements, false, [&](const NodePlacement& of) -> Json {
    return {{"value", fmt::format("{}", fmt::join(of.toolchains, ", "))},
            {"bgColor", viewed.ColorOf(of.toolchains.front())}};
  });
  files.partition = DataOf(model, placements, false, [&](const NodePlacement& of) -> Json {
    return {{"value", fmt::format("{}", fmt::join(of.partitions, ", "))},
            {"bgColor", viewed.ColorOf(of.toolchains.front())}};
  });
  return files;
}

}  // namespace collage
