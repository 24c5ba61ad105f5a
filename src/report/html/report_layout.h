// report_layout.h: the places of everything in the report's pictures of graphs.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace collage {

/// Lays out the graphs of an explanation, a JSON object (docs/explanation.md), folded and each partition by itself.
///
/// Returns {"graphs": […]}, for each graph an object, lengths in points, x to the right and y down:
///
///     items   what is drawn while all is folded: kind ("partition", "input" or "output"), partition or node (its index
///     in
///             the explanation), x and y (the centre), w and h
///     edges   between items: from, to (indices of items), nodes (whose results flow), points (of cubic curves: x, y,
///     x, …) inside  for each partition: width, height, nodes (node, x, y, w, h), inputs and outputs (node, x: where
///     the
///             results of other partitions enter at the top, and its own leave at the bottom), edges; null if it
///             could not be laid out
///     width, height
///
/// or {"failure": why} for a graph that could not be laid out. Constants are not drawn. Tuples and other nodes that no
/// partition computes are drawn as edges from what computes their parts. Graphviz runs in a child process, which a
/// limit of time ends.
nlohmann::json LayOutReport(const nlohmann::json& explanation);

}  // namespace collage
