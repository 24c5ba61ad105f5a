// extract.cc: one scope whose parameters are what it needs from outside.
#include "partition/extract.h"

#include "collage/support/error.h"
#include "partition/scope_builder.h"

namespace collage {

ExtractedFunction Extract(const DataflowGraph& graph, const SubGraph& sub_graph) {
  ScopeBuilder scope(graph, &sub_graph.inside(), sub_graph.nested);
  COLLAGE_CHECK(scope.Build(sub_graph.exit())) << "nested sub-graphs depend on each other in a circle";
  ScopeResult result = ResultOf(graph, scope, sub_graph.exit());
  return {TypedFunction(scope.params(), result.body), {scope.inputs(), std::move(result.outputs)}};
}

Boundary BoundaryOf(const DataflowGraph& graph, const SubGraph& sub_graph) {
  return Extract(graph, sub_graph).boundary;
}

}  // namespace collage
