// pattern_text.cc: matching a row's text at every node.
#include "conformance/pattern_text.h"

#include "collage/ir/infer_type.h"
#include "dataflow/dataflow_graph.h"
#include "dataflow/pattern.h"

namespace collage::conformance {

bool TextMatches(const Toolchain& toolchain, const std::string& name, const Function& function) {
  const DataflowGraph graph(function);
  size_t num_calls = 0;
  for (size_t node = 0; node < graph.size(); ++node) {
    num_calls += As<CallNode>(graph.node(static_cast<int>(node)).expr) != nullptr ? 1 : 0;
  }
  bool whole = false;
  for (const PatternTableEntry& entry : toolchain.PatternTable()) {
    if (entry.name != name) continue;
    for (size_t root = 0; root < graph.size(); ++root) {
      MatchPattern(graph, *ParsePattern(entry.pattern), static_cast<int>(root), [&](const std::vector<int>& inside) {
        size_t calls = 0;
        for (int node : inside) calls += As<CallNode>(graph.node(node).expr) != nullptr ? 1 : 0;
        whole = whole || calls == num_calls;
      });
    }
  }
  return whole;
}

void ExpectRow(const Toolchain& toolchain, const std::string& name, const Function& function, const Options& options) {
  SCOPED_TRACE(name);
  InferType(function);
  EXPECT_TRUE(TextMatches(toolchain, name, function)) << "the text of the pattern does not match";
  ExpectPatternAgrees(toolchain, name, function, options);
}

std::string RefusalOf(const Toolchain& toolchain, const std::string& name, const Function& function) {
  InferType(function);
  for (const PatternTableEntry& entry : toolchain.PatternTable()) {
    if (entry.name != name) continue;
    const Result<void> answer = entry.predicate(function);
    return answer.ok() ? "none" : answer.reason().text;
  }
  return "no row " + name;
}

}  // namespace collage::conformance
