// report_layout.cc: makes graphs of partitions and of their nodes, and has them laid out.
#include "report/html/report_layout.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "report/html/graph_drawing.h"
#include "worker/worker.h"

namespace collage {
namespace {

using Json = nlohmann::json;

// Sizes that the page's style needs for its letters, in points.
constexpr GraphShape::Box kPartitionBox{212, 50};
constexpr GraphShape::Box kPortBox{196, 40};
constexpr GraphShape::Box kNodeBox{164, 38};
constexpr double kPortSize = 8;  // of a value that enters or leaves a partition

constexpr std::chrono::seconds kTimeLimit{120};  // for one graph

/// The nodes of a graph of the explanation, and which of them computes what others read.
class Dataflow {
 public:
  explicit Dataflow(const Json& graph) : nodes_(graph.at("nodes")), partition_of_(nodes_.size(), -1) {
    const Json& partitions = graph.at("partitions");
    for (size_t i = 0; i < partitions.size(); ++i) {
      for (const size_t node : partitions[i].at("nodes")) partition_of_.at(node) = static_cast<int>(i);
    }
    sources_.resize(nodes_.size());
    for (size_t node = 0; node < nodes_.size(); ++node) sources_[node] = FindSources(node);
  }

  size_t size() const { return nodes_.size(); }
  /// -1: no partition computes it.
  int partition_of(size_t node) const { return partition_of_.at(node); }
  bool IsInput(size_t node) const { return nodes_.at(node).at("kind") == "input"; }
  /// The node itself, if it is an input or computed in a partition; else those whose results it hands on. Ascending.
  const std::vector<size_t>& SourcesOf(size_t node) const { return sources_.at(node); }

  /// Sources of the inputs of `node`, each once.
  std::set<size_t> ReadBy(size_t node) const {
    std::set<size_t> read;
    for (const size_t input : nodes_.at(node).value("inputs", std::vector<size_t>())) {
      read.insert(SourcesOf(input).begin(), SourcesOf(input).end());
    }
    return read;
  }

 private:
  /// Inputs of a node come before it.
  std::vector<size_t> FindSources(size_t node) const {
    if (IsInput(node) || partition_of(node) >= 0) return {node};
    const std::set<size_t> read = ReadBy(node);
    return {read.begin(), read.end()};
  }

  const Json& nodes_;
  std::vector<int> partition_of_;
  std::vector<std::vector<size_t>> sources_;
};

double Rounded(double length) { return std::round(10 * length) / 10; }

/// A graph under construction: boxes with the JSON that says what they are, and edges with the values that flow.
struct Picture {
  GraphShape shape;
  std::vector<Json> boxes;
  std::map<std::pair<int, int>, std::set<size_t>> values;  ///< by from and to

  int Add(const GraphShape::Box& box, Json what) {
    shape.boxes.push_back(box);
    boxes.push_back(std::move(what));
    return static_cast<int>(boxes.size()) - 1;
  }

  void Connect(int from, int to, size_t value) {
    if (from == to) return;
    std::set<size_t>& flowing = values[{from, to}];
    if (flowing.empty()) shape.edges.emplace_back(from, to);
    flowing.insert(value);
  }

  Json EdgesOf(const GraphDrawing& drawing) const {
    Json edges = Json::array();
    for (size_t i = 0; i < shape.edges.size(); ++i) {
      Json points = Json::array();
      for (const GraphDrawing::Point& point : drawing.edges[i]) {
        points.push_back(Rounded(point.x));
        points.push_back(Rounded(point.y));
      }
      const auto& [from, to] = shape.edges[i];
      edges.push_back({{"from", from}, {"to", to}, {"nodes", values.at({from, to})}, {"points", std::move(points)}});
    }
    return edges;
  }

  /// Box `index` with its place.
  Json BoxOf(const GraphDrawing& drawing, size_t index) const {
    Json box = boxes[index];
    box["x"] = Rounded(drawing.centres[index].x);
    box["y"] = Rounded(drawing.centres[index].y);
    box["w"] = shape.boxes[index].width;
    box["h"] = shape.boxes[index].height;
    return box;
  }
};

/// Partitions, inputs that they read, and results.
Picture FoldedPicture(const Json& graph, const Dataflow& dataflow) {
  Picture picture;
  std::map<size_t, int> inputs;
  for (size_t node = 0; node < dataflow.size(); ++node) {
    if (dataflow.IsInput(node)) inputs[node] = picture.Add(kPortBox, {{"kind", "input"}, {"node", node}});
  }
  const int first = static_cast<int>(picture.boxes.size());
  for (size_t i = 0; i < graph.at("partitions").size(); ++i) {
    picture.Add(kPartitionBox, {{"kind", "partition"}, {"partition", i}});
  }
  const auto box_of = [&](size_t node) {
    return dataflow.IsInput(node) ? inputs.at(node) : first + dataflow.partition_of(node);
  };
  for (size_t node = 0; node < dataflow.size(); ++node) {
    if (dataflow.partition_of(node) < 0) continue;
    for (const size_t source : dataflow.ReadBy(node)) picture.Connect(box_of(source), box_of(node), source);
  }
  for (const size_t result : graph.value("results", std::vector<size_t>())) {
    const int box = picture.Add(kPortBox, {{"kind", "output"}, {"node", result}});
    for (const size_t source : dataflow.SourcesOf(result)) picture.Connect(box_of(source), box, source);
  }
  return picture;
}

/// Nodes whose results leave their partition.
std::set<size_t> FindExits(const Json& graph, const Dataflow& dataflow) {
  std::set<size_t> exits;
  for (size_t node = 0; node < dataflow.size(); ++node) {
    const int partition = dataflow.partition_of(node);
    if (partition < 0) continue;
    for (const size_t source : dataflow.ReadBy(node)) {
      if (dataflow.partition_of(source) != partition) exits.insert(source);
    }
  }
  for (const size_t result : graph.value("results", std::vector<size_t>())) {
    exits.insert(dataflow.SourcesOf(result).begin(), dataflow.SourcesOf(result).end());
  }
  return exits;
}

/// The nodes of one partition, and ports for what enters and leaves it.
Picture InsidePicture(const Json& partition, const Dataflow& dataflow, const std::set<size_t>& exits) {
  Picture picture;
  std::map<size_t, int> boxes, ports;
  const std::vector<size_t> nodes = partition.at("nodes");
  for (const size_t node : nodes) boxes[node] = picture.Add(kNodeBox, {{"kind", "node"}, {"node", node}});
  for (const size_t node : nodes) {
    for (const size_t source : dataflow.ReadBy(node)) {
      if (!boxes.contains(source) && !ports.contains(source)) {
        ports[source] =
            picture.Add({kPortSize, kPortSize, GraphShape::Rank::kFirst}, {{"kind", "in"}, {"node", source}});
      }
      picture.Connect(boxes.contains(source) ? boxes[source] : ports[source], boxes[node], source);
    }
  }
  for (const size_t node : nodes) {
    if (!exits.contains(node)) continue;
    const int port = picture.Add({kPortSize, kPortSize, GraphShape::Rank::kLast}, {{"kind", "out"}, {"node", node}});
    picture.Connect(boxes[node], port, node);
  }
  return picture;
}

Json DrawnFolded(const Json& graph, const Dataflow& dataflow) {
  const Picture picture = FoldedPicture(graph, dataflow);
  const GraphDrawing drawing = DrawGraph(picture.shape);
  Json items = Json::array();
  for (size_t i = 0; i < picture.boxes.size(); ++i) items.push_back(picture.BoxOf(drawing, i));
  return {{"items", std::move(items)},
          {"edges", picture.EdgesOf(drawing)},
          {"width", Rounded(drawing.width)},
          {"height", Rounded(drawing.height)}};
}

Json DrawnInside(const Json& partition, const Dataflow& dataflow, const std::set<size_t>& exits) {
  const Picture picture = InsidePicture(partition, dataflow, exits);
  const GraphDrawing drawing = DrawGraph(picture.shape);
  Json nodes = Json::array(), inputs = Json::array(), outputs = Json::array();
  for (size_t i = 0; i < picture.boxes.size(); ++i) {
    Json box = picture.BoxOf(drawing, i);
    const std::string kind = box.at("kind");
    box.erase("kind");
    (kind == "node" ? nodes : kind == "in" ? inputs : outputs).push_back(std::move(box));
  }
  return {{"nodes", std::move(nodes)},         {"inputs", std::move(inputs)},     {"outputs", std::move(outputs)},
          {"edges", picture.EdgesOf(drawing)}, {"width", Rounded(drawing.width)}, {"height", Rounded(drawing.height)}};
}

/// One graph. A partition that cannot be laid out stays folded; a graph that cannot says why.
Json LaidOut(const Json& graph) {
  const Dataflow dataflow(graph);
  const std::set<size_t> exits = FindExits(graph, dataflow);
  const Json& partitions = graph.at("partitions");
  const auto draw = [&](const std::string& request, const SendProgress&) {
    if (request.empty()) return DrawnFolded(graph, dataflow).dump();
    return DrawnInside(partitions.at(std::stoul(request)), dataflow, exits).dump();
  };
  Worker worker(draw, {.timeout = kTimeLimit});
  const Result<std::string> folded = worker.Call("");
  if (!folded.ok()) return {{"failure", folded.reason().text}};
  Json layout = Json::parse(*folded);
  layout["inside"] = Json::array();
  for (size_t i = 0; i < partitions.size(); ++i) {
    const Result<std::string> inside = worker.Call(std::to_string(i));
    layout["inside"].push_back(inside.ok() ? Json::parse(*inside) : Json());
  }
  return layout;
}

}  // namespace

Json LayOutReport(const Json& explanation) {
  Json graphs = Json::array();
  for (const Json& graph : explanation.at("graphs")) graphs.push_back(LaidOut(graph));
  return {{"graphs", std::move(graphs)}};
}

}  // namespace collage
