// capture_post_dfs_index_in_spans.cc: each node's span says where it is in the dataflow graph, so that a partition can
// be traced back to it when it is looked at later.
#include "collage/ir/visitor.h"
#include "dataflow/dataflow_graph.h"
#include "partition/passes.h"
#include "transform/rewriting.h"

namespace collage {

Function CapturePostDfsIndexInSpans(const Function& function) {
  const DataflowGraph graph(function);
  const std::vector<int> dominators = DominatorParents(graph);
  // Nodes are shared with other versions of the module, whose spans must stay: all but variables and operators, which
  // have their identity, are copied.
  return AsShared<FunctionNode>(RewriteNodes(function, [&](const Expr& original, const Expr& expr, const Rewritten&) {
    Expr copy = expr;
    if (const ConstantNode* constant = As<ConstantNode>(original)) {
      copy = MakeConstant(constant->value());
    } else if (copy == original && !Children(original).empty()) {
      copy = WithChildren(original, Children(original));
    }
    if (copy == original) return expr;
    const int index = graph.IndexOf(original);
    copy->set_span({kIndexSpan, index, dominators[index]});
    return copy;
  }));
}

}  // namespace collage
