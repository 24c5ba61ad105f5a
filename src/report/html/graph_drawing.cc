// graph_drawing.cc: gives a graph to Graphviz's library and reads the places back.
#include "report/html/graph_drawing.h"

#include <fmt/format.h>
#include <graphviz/gvc.h>

#include <memory>
#include <string>

#include "collage/support/error.h"

extern "C" gvplugin_library_t gvplugin_dot_layout_LTX_library;

namespace collage {
namespace {

constexpr double kPointsPerInch = 72;
/// From here on, the search for short edges ends early: for 5,000 boxes it took minutes and gained little.
constexpr size_t kManyBoxes = 1000;

struct CloseContext {
  void operator()(GVC_t* context) const { gvFreeContext(context); }
};
struct CloseGraph {
  void operator()(Agraph_t* graph) const { agclose(graph); }
};

/// Graphviz's functions take no const text, and do not write to it.
char* Text(const char* text) { return const_cast<char*>(text); }

/// The attributes of a graph, its nodes and its edges, which say all but the sizes of boxes.
void SetAttributes(Agraph_t* graph, bool has_many) {
  agattr(graph, AGRAPH, Text("nodesep"), Text("0.3"));
  agattr(graph, AGRAPH, Text("ranksep"), Text("0.5"));
  if (has_many) {
    agattr(graph, AGRAPH, Text("nslimit"), Text("0.1"));
    agattr(graph, AGRAPH, Text("nslimit1"), Text("0.1"));
    agattr(graph, AGRAPH, Text("mclimit"), Text("0.1"));
    agattr(graph, AGRAPH, Text("splines"), Text("polyline"));
  }
  agattr(graph, AGNODE, Text("shape"), Text("box"));
  agattr(graph, AGNODE, Text("fixedsize"), Text("true"));
  agattr(graph, AGNODE, Text("label"), Text(""));
  agattr(graph, AGNODE, Text("width"), Text("1"));
  agattr(graph, AGNODE, Text("height"), Text("1"));
  agattr(graph, AGEDGE, Text("arrowhead"), Text("none"));
}

std::vector<Agnode_t*> AddBoxes(Agraph_t* graph, const std::vector<GraphShape::Box>& boxes) {
  std::vector<Agnode_t*> nodes;
  Agraph_t* first = nullptr;
  Agraph_t* last = nullptr;
  for (const GraphShape::Box& box : boxes) {
    Agnode_t* node = agnode(graph, fmt::format("{}", nodes.size()).data(), 1);
    agset(node, Text("width"), fmt::format("{:.4f}", box.width / kPointsPerInch).data());
    agset(node, Text("height"), fmt::format("{:.4f}", box.height / kPointsPerInch).data());
    nodes.push_back(node);
    if (box.rank == GraphShape::Rank::kAny) continue;
    const bool is_first = box.rank == GraphShape::Rank::kFirst;
    Agraph_t*& rank = is_first ? first : last;
    if (rank == nullptr) {
      rank = agsubg(graph, Text(is_first ? "first" : "last"), 1);
      agsafeset(rank, Text("rank"), Text(is_first ? "min" : "max"), Text(""));
    }
    agsubnode(rank, node, 1);
  }
  return nodes;
}

GraphDrawing::Point PointOf(const pointf& point, double top) { return {point.x, top - point.y}; }

/// The control points of all curves of an edge, one after the other.
std::vector<GraphDrawing::Point> CurveOf(Agedge_t* edge, double top) {
  std::vector<GraphDrawing::Point> points;
  const splines* all = ED_spl(edge);
  if (all == nullptr || all->size == 0) throw Error{ErrorCategory::kInternal, "Graphviz drew no line for an edge"};
  for (int i = 0; i < all->size; ++i) {
    const bezier& curve = all->list[i];
    for (int j = points.empty() ? 0 : 1; j < curve.size; ++j) points.push_back(PointOf(curve.list[j], top));
  }
  return points;
}

}  // namespace

GraphDrawing DrawGraph(const GraphShape& shape) {
  const std::unique_ptr<GVC_t, CloseContext> context(gvContextPlugins(nullptr, 0));
  gvAddLibrary(context.get(), &gvplugin_dot_layout_LTX_library);
  const std::unique_ptr<Agraph_t, CloseGraph> graph(agopen(Text("graph"), Agdirected, nullptr));
  SetAttributes(graph.get(), shape.boxes.size() > kManyBoxes);
  const std::vector<Agnode_t*> nodes = AddBoxes(graph.get(), shape.boxes);
  std::vector<Agedge_t*> edges;
  for (const auto& [from, to] : shape.edges) {
    edges.push_back(agedge(graph.get(), nodes[static_cast<size_t>(from)], nodes[static_cast<size_t>(to)], nullptr, 1));
  }
  if (gvLayout(context.get(), graph.get(), "dot") != 0) {
    throw Error{ErrorCategory::kInternal, "Graphviz could not lay the graph out"};
  }
  const boxf bounds = GD_bb(graph.get());
  GraphDrawing drawing{bounds.UR.x, bounds.UR.y, {}, {}};
  for (Agnode_t* node : nodes) drawing.centres.push_back(PointOf(ND_coord(node), bounds.UR.y));
  for (Agedge_t* edge : edges) drawing.edges.push_back(CurveOf(edge, bounds.UR.y));
  gvFreeLayout(context.get(), graph.get());
  return drawing;
}

}  // namespace collage
