// partitioning_json.cc: writing and reading choices of partitions.
#include "driver/covers/partitioning_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "collage/ir/infer_type.h"
#include "collage/ir/structural.h"
#include "collage/support/error.h"
#include "driver/covers/layout_analysis.h"
#include "partition/extract.h"
#include "partition/rewrite.h"
#include "search/cover_problem.h"
#include "support/json_reader.h"
#include "support/sort_unique.h"

namespace collage {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* kFormat = "collage-partitioning";
constexpr int kVersion = 1;

OrderedJson LayoutsToJson(const std::vector<Layout>& layouts) {
  OrderedJson list = OrderedJson::array();
  for (Layout layout : layouts) list.push_back(std::string(ToString(layout)));
  return list;
}

class Reader {
 public:
  Reader(std::string where, const DataflowGraph& graph, const std::vector<bool>& eligible,
         const std::vector<const Toolchain*>& toolchains)
      : where_(std::move(where)), graph_(graph), eligible_(eligible), toolchains_(toolchains) {}

  OwnedPartitions Read(std::string_view text) {
    const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) Fail("this is no JSON");
    try {
      CheckHeader(json);
      for (const Json& partition : json.at("partitions")) {
        ++number_;
        ReadPartition(partition);
      }
    } catch (const Json::exception& error) {
      number_ < 0 ? Fail(ProblemOf(error)) : FailHere(ProblemOf(error));
    }
    CheckCover();
    CheckCompatible();
    return std::move(restored_);
  }

 private:
  [[noreturn]] void Fail(const std::string& message, const std::string& hint = "") const {
    throw Error(ErrorCategory::kInput, message, where_, hint);
  }
  /// Fails with the number of the partition that is read.
  [[noreturn]] void FailHere(const std::string& message, const std::string& hint = "") const {
    Fail(fmt::format("partition {}: {}", number_, message), hint);
  }

  void CheckHeader(const Json& json) const {
    if (!json.is_object() || json.value("format", "") != kFormat)
      Fail(fmt::format("\"format\" is not \"{}\"", kFormat));
    if (json.value("version", 0) != kVersion) {
      Fail(fmt::format("version {} of the format, {} is known", json.value("version", 0), kVersion));
    }
    if (!json.contains("partitions") || !json.at("partitions").is_array()) Fail("there is no list \"partitions\"");
    if (!json.contains("graph")) return;
    const std::string hash = json.at("graph").value("hash", "");
    if (!hash.empty() && hash != GraphDigest(graph_)) {
      Fail(fmt::format("this partitioning is of another graph: of {} nodes, this one has {}",
                       json.at("graph").value("nodes", 0), graph_.size()),
           "the model, its shapes, or the passes before partitioning have changed: search again");
    }
  }

  void ReadPartition(const Json& json) {
    const Toolchain& toolchain = ToolchainOf(json.at("toolchain").get<std::string>());
    SubGraph sub_graph(graph_, NodesOf(json.at("inside")));
    const std::string operators = sub_graph.OperatorLabel(graph_);
    if (json.value("operators", operators) != operators) {
      FailHere(fmt::format("its nodes are '{}', not '{}'", operators, json.at("operators").get<std::string>()),
               "leave \"operators\" out when you change \"inside\"");
    }
    const bool is_nested = json.contains("nested");
    if (is_nested) sub_graph.nested = WithoutPrimitives(NestedOf(json.at("nested"), sub_graph.inside()));
    const Result<void> valid = sub_graph.CheckValid(graph_, {.allow_taps = true});
    if (!valid.ok()) FailHere(fmt::format("{} is no valid sub-graph: {}", Name(sub_graph), valid.reason().text));
    CheckNested(sub_graph.nested);
    std::string rule = json.value("rule", "");
    if (!is_nested && !toolchain.PatternTable().empty()) {
      const CandidatePartition& own = CandidateOf(toolchain, sub_graph);
      sub_graph = own.sub_graph;
      rule = own.rule_name;
    }
    restored_.candidates.push_back({std::move(rule), std::move(sub_graph), &toolchain});
    const CandidatePartition& candidate = restored_.candidates.back();
    restored_.chosen.push_back(
        {&candidate, LayoutsOf(json, candidate), json.value("seconds", 0.0), json.value("schedule", "")});
  }

  void CheckCompatible() const {
    for (const CandidatePartition& a : restored_.candidates) {
      for (const CandidatePartition& b : restored_.candidates) {
        if (a.toolchain == b.toolchain) continue;
        const std::optional<std::string> why = WhyIncompatible(*a.toolchain, *b.toolchain);
        if (!why) continue;
        Fail(fmt::format("partitions of '{}' and '{}' cannot be in one executable: {}", a.toolchain->name(),
                         b.toolchain->name(), *why));
      }
    }
  }

  std::string Name(const SubGraph& sub_graph) const {
    return fmt::format("{} ('{}')", sub_graph.inside().ToString(), sub_graph.OperatorLabel(graph_));
  }

  const Toolchain& ToolchainOf(const std::string& name) const {
    std::string known;
    for (const Toolchain* toolchain : toolchains_) {
      if (toolchain->name() == name) return *toolchain;
      known += (known.empty() ? "" : ", ") + toolchain->name();
    }
    FailHere(fmt::format("toolchain '{}' does not take part", name), "there are: " + known);
  }

  std::vector<int> NodesOf(const Json& json) const {
    const auto nodes = json.get<std::vector<int64_t>>();
    if (nodes.empty()) FailHere("\"inside\" is empty");
    std::vector<int> result;
    for (int64_t node : nodes) {
      if (node < 0 || node >= static_cast<int64_t>(graph_.size())) {
        FailHere(fmt::format("there is no node {}: the graph has {}", node, graph_.size()));
      }
      result.push_back(static_cast<int>(node));
    }
    SortUnique(result);
    return result;
  }

  std::vector<NestedSubGraph> NestedOf(const Json& json, const IndexSet& within) const {
    std::vector<NestedSubGraph> result;
    for (const Json& one : json) {
      NestedSubGraph nested{NodesOf(one.at("inside")), {}, {}};
      if (!IndexSet(graph_.size(), nested.inside).IsSubset(within)) FailHere("what is nested reaches outside of it");
      for (const auto& [name, value] : one.at("attrs").items()) {
        if (value.is_string()) {
          nested.attrs.Set(name, value.get<std::string>());
        } else {
          nested.attrs.Set(name, value.get<int64_t>());
        }
      }
      if (one.contains("nested")) nested.nested = NestedOf(one.at("nested"), IndexSet(graph_.size(), nested.inside));
      result.push_back(std::move(nested));
    }
    return result;
  }

  /// Refuses nested sub-graphs that no partition can hold: each must be valid, and they must not need each other.
  void CheckNested(const std::vector<NestedSubGraph>& nested) const {
    std::vector<SubGraph> units;
    for (const NestedSubGraph& one : nested) {
      units.emplace_back(graph_, one.inside);
      units.back().nested = one.nested;
      const Result<void> valid = units.back().CheckValid(graph_, {.allow_taps = true});
      if (!valid.ok()) FailHere(fmt::format("{} cannot be nested: {}", Name(units.back()), valid.reason().text));
      CheckNested(one.nested);
    }
    std::vector<const SubGraph*> pointers;
    for (const SubGraph& unit : units) pointers.push_back(&unit);
    if (!CanBeOrdered(graph_, pointers)) FailHere("what is nested needs each other in a circle");
  }

  /// The toolchain's own candidate of these nodes; constants may be added or left out.
  const CandidatePartition& CandidateOf(const Toolchain& toolchain, const SubGraph& sub_graph) {
    auto [it, is_new] = found_.emplace(&toolchain, std::vector<CandidatePartition>{});
    RuleLog log;
    if (is_new) it->second = GatherPartitionRule(toolchain)->AllCandidates(graph_, toolchain, log);
    const std::vector<int> wanted = WithoutConstants(sub_graph);
    for (const CandidatePartition& candidate : it->second) {
      if (WithoutConstants(candidate.sub_graph) == wanted) return candidate;
    }
    FailHere(fmt::format("toolchain '{}' has no candidate that consists of {}", toolchain.name(), Name(sub_graph)),
             "its patterns say what it takes; `collage candidates` lists them");
  }

  std::vector<int> WithoutConstants(const SubGraph& sub_graph) const {
    std::vector<int> nodes;
    std::copy_if(sub_graph.members().begin(), sub_graph.members().end(), std::back_inserter(nodes),
                 [&](int node) { return !graph_.IsConstant(node); });
    return nodes;
  }

  ExtractedFunction Extracted(const SubGraph& sub_graph) const {
    try {
      return Extract(graph_, sub_graph);
    } catch (const Error& error) {  // of nodes that no partition can hold
      FailHere(error.message(), error.hint());
    }
  }

  BoundaryLayouts LayoutsOf(const Json& json, const CandidatePartition& candidate) const {
    const ExtractedFunction extracted = Extracted(candidate.sub_graph);
    const auto may = [&](const std::vector<BoundaryValue>& values) {
      std::vector<bool> result;
      for (const BoundaryValue& value : values) {
        result.push_back(value.field < 0 && eligible_[static_cast<size_t>(value.node)]);
      }
      return result;
    };
    const std::vector<bool> inputs = may(extracted.boundary.inputs);
    const std::vector<bool> outputs = may(extracted.boundary.outputs);
    if (!json.contains("inputs") && !json.contains("outputs")) {
      const std::vector<BoundaryLayouts> choices = candidate.toolchain->Layouts(extracted.function, inputs, outputs);
      return choices.empty() ? PlainLayouts(inputs.size(), outputs.size()) : choices.front();
    }
    const BoundaryLayouts layouts{LayoutList(json, "inputs", inputs), LayoutList(json, "outputs", outputs)};
    const bool is_on_host =
        layouts == In(Memory::kHost, layouts) && MainMemoryOf(*candidate.toolchain) == Memory::kHost;
    if (!KeepsNarrow(layouts) && is_on_host) return layouts;
    // Toolchains may read any order, but no type and no memory that they do not say they take.
    const std::vector<BoundaryLayouts> taken = candidate.toolchain->Layouts(extracted.function, inputs, outputs);
    if (std::ranges::find(taken, layouts) == taken.end()) {
      FailHere(fmt::format("'{}' does not take these layouts", candidate.toolchain->name()));
    }
    return layouts;
  }

  std::vector<Layout> LayoutList(const Json& json, const char* side, const std::vector<bool>& may) const {
    const auto names = json.at(side).get<std::vector<std::string>>();
    if (names.size() != may.size()) {
      FailHere(fmt::format("{} \"{}\", the partition has {}", names.size(), side, may.size()));
    }
    std::vector<Layout> layouts;
    for (size_t i = 0; i < names.size(); ++i) {
      const std::optional<Layout> layout = LayoutNamed(names[i]);
      if (!layout) {
        std::string known;
        for (const Layout one : AllLayouts()) known += fmt::format("{}{}", known.empty() ? "" : ", ", ToString(one));
        FailHere(fmt::format("unknown layout '{}' in \"{}\"", names[i], side), "there are: " + known);
      }
      if (In(Memory::kHost, *layout) != Layout::kPlain && !may[i]) {
        FailHere(fmt::format("number {} of \"{}\" can only be plain", i, side));
      }
      layouts.push_back(*layout);
    }
    return layouts;
  }

  void CheckCover() const {
    std::vector<int> owner(graph_.size(), -1);
    std::string twice, open;
    std::vector<const SubGraph*> sub_graphs;
    for (size_t i = 0; i < restored_.chosen.size(); ++i) {
      sub_graphs.push_back(&restored_.chosen[i].candidate->sub_graph);
      for (int node : WithoutConstants(*sub_graphs.back())) {
        int& of = owner[static_cast<size_t>(node)];
        if (of >= 0) Append(twice, fmt::format("{} (in {} and {})", NodeName(node), of, i));
        of = static_cast<int>(i);
      }
    }
    if (!twice.empty()) Fail("partitions overlap at " + twice);
    for (int node = 0; node < static_cast<int>(graph_.size()); ++node) {
      if (MustBeCovered(graph_, node) && owner[static_cast<size_t>(node)] < 0) Append(open, NodeName(node));
    }
    if (!open.empty()) Fail("operators are in no partition: " + open);
    if (!CanBeOrdered(graph_, sub_graphs)) Fail("partitions need each other in a circle");
  }

  static void Append(std::string& list, const std::string& item) { list += (list.empty() ? "" : ", ") + item; }
  std::string NodeName(int node) const { return fmt::format("{} '{}'", node, graph_.LabelAt(node)); }

  std::string where_;
  const DataflowGraph& graph_;
  const std::vector<bool>& eligible_;
  const std::vector<const Toolchain*>& toolchains_;
  OwnedPartitions restored_;
  std::map<const Toolchain*, std::vector<CandidatePartition>> found_;
  int number_ = -1;  ///< of the partition that is being read; -1 before the first
};

}  // namespace

std::string GraphDigest(const DataflowGraph& graph) {
  StructuralHashOptions options;
  options.constants_by_shape = true;
  return StructuralHash(graph.function(), options);
}

OrderedJson NestedToJson(const std::vector<NestedSubGraph>& nested) {
  OrderedJson list = OrderedJson::array();
  for (const NestedSubGraph& one : nested) {
    OrderedJson json{{"inside", one.inside}, {"attrs", OrderedJson::object()}};
    for (const auto& [name, value] : one.attrs) {
      if (const std::string* text = value.as_string()) {
        json["attrs"][name] = *text;
      } else {
        json["attrs"][name] = one.attrs.Int(name);
      }
    }
    if (!one.nested.empty()) json["nested"] = NestedToJson(one.nested);
    list.push_back(std::move(json));
  }
  return list;
}

std::string PartitioningToJson(const DataflowGraph& graph, const std::vector<ChosenPartition>& chosen) {
  const OrderedJson header{{"nodes", graph.size()}, {"hash", GraphDigest(graph)}};
  // One partition a line, for people and for tools that compare lines.
  std::string text = fmt::format("{{\"format\": \"{}\", \"version\": {},\n \"graph\": {},\n \"partitions\": [", kFormat,
                                 kVersion, header.dump());
  const char* separator = "\n  ";
  for (const ChosenPartition& partition : chosen) {
    const SubGraph& sub_graph = partition.candidate->sub_graph;
    OrderedJson one{{"toolchain", partition.candidate->toolchain->name()},
                    {"inside", sub_graph.members()},
                    {"operators", sub_graph.OperatorLabel(graph)},
                    {"rule", partition.candidate->rule_name},
                    {"inputs", LayoutsToJson(partition.layouts.inputs)},
                    {"outputs", LayoutsToJson(partition.layouts.outputs)},
                    {"seconds", partition.estimated_seconds}};
    if (!partition.schedule.empty()) one["schedule"] = partition.schedule;
    if (!sub_graph.nested.empty()) one["nested"] = NestedToJson(sub_graph.nested);
    text += separator + one.dump();
    separator = ",\n  ";
  }
  return text + "\n]}\n";
}

OwnedPartitions PartitioningFromJson(std::string_view text, const std::string& where, const DataflowGraph& graph,
                                     const std::vector<bool>& eligible,
                                     const std::vector<const Toolchain*>& toolchains) {
  return Reader(where, graph, eligible, toolchains).Read(text);
}

bool IsPartitioningOf(std::string_view text, const DataflowGraph& graph) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("graph") || !json.at("graph").is_object()) return false;
  return json.at("graph").value("hash", Json()) == Json(GraphDigest(graph));
}

std::pair<IRModule, double> PartitionedFromJson(std::string_view text, const std::string& where, const IRModule& module,
                                                const DataflowGraph& graph,
                                                const std::vector<const Toolchain*>& toolchains) {
  const OwnedPartitions restored = PartitioningFromJson(text, where, graph, ChannelsLastEligible(graph), toolchains);
  double seconds = 0;
  for (const ChosenPartition& partition : restored.chosen) seconds += partition.estimated_seconds;
  IRModule result = module;
  result.Set("main", *RewritePartitions(graph, restored.chosen));
  return {InferTypes(std::move(result)), seconds};
}

}  // namespace collage
