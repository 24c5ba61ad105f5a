// graph_drawing.h: where the boxes and edges of a drawn graph are, as Graphviz's dot lays it out (E. Gansner et al., "A
// Technique for Drawing Directed Graphs", 1993).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace collage {

/// A graph to lay out. Lengths are in points.
struct GraphShape {
  enum class Rank : uint8_t { kAny, kFirst, kLast };
  struct Box {
    double width = 0;
    double height = 0;
    Rank rank = Rank::kAny;  ///< above all boxes of other ranks, or below them
  };
  std::vector<Box> boxes;
  std::vector<std::pair<int, int>> edges;  ///< from a box to another one, by index; each once
};

/// The layout of a GraphShape: edges go from above to below, no boxes overlap. x goes to the right, y down.
struct GraphDrawing {
  struct Point {
    double x = 0;
    double y = 0;
  };
  double width = 0;
  double height = 0;
  std::vector<Point> centres;             ///< by box
  std::vector<std::vector<Point>> edges;  ///< by edge: 3 n + 1 control points of n cubic Bezier curves
};

/// Lays `shape` out. May take minutes for graphs of thousands of boxes, and a bug in Graphviz ends the process: call it
/// in a Worker. Throws kInternal where Graphviz gives up.
GraphDrawing DrawGraph(const GraphShape& shape);

}  // namespace collage
