// describe_graph.h: the nodes of a dataflow graph for explanations.
#pragma once

#include <vector>

#include "dataflow/dataflow_graph.h"
#include "driver/explanation/graph_explanation.h"

namespace collage {

/// All nodes of `graph`, by index.
std::vector<ExplainedNode> DescribeNodes(const DataflowGraph& graph);

/// The nodes that `graph` returns.
std::vector<int> ResultsOf(const DataflowGraph& graph);

/// The first digits of a number; six are more than any measurement has. Explanations stay small.
double Rounded(double value, int digits = 6);

}  // namespace collage
