// dnnl_rows.h: one row of oneDNN's table: its text matches, its predicate agrees, its result is right.
#pragma once

#include <algorithm>
#include <string>

#include "backends/dnnl/describe.h"
#include "collage/ir/infer_type.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"
#include "dataflow/dataflow_graph.h"
#include "dataflow/pattern.h"
#include "support/machine.h"

namespace collage::conformance {

inline const Toolchain& Dnnl() { return BuiltinToolchain("dnnl"); }

class DnnlTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Dnnl().Probe().available) GTEST_SKIP() << Dnnl().Probe().reason;
  }
};

/// Whether the toolchain declines `function` since this processor lacks VNNI: there is nothing to compare.
inline bool IsDeclinedForWantOfVnni(const Function& function, const Options& options) {
  if (HasVnni(ThisMachine().features)) return false;
  BoundaryLayouts layouts = options.layouts;
  if (layouts.inputs.empty()) {
    layouts = PlainLayouts(function->params().size(), FlattenTensorTypes(function->body()->checked_type()).size());
  }
  const auto answer = Dnnl().RelayToRuntime({function, layouts, options.num_threads});
  return !answer.ok() && answer.reason().text.find("without VNNI") != std::string::npos;
}

/// Whether the table's text of `name` matches all of `function`.
inline bool TextMatches(const std::string& name, const Function& function) {
  const DataflowGraph graph(function);
  const auto is_call = [&](size_t node) { return As<CallNode>(graph.node(static_cast<int>(node)).expr) != nullptr; };
  size_t all = 0;
  for (size_t node = 0; node < graph.size(); ++node) all += is_call(node) ? 1 : 0;
  bool whole = false;
  for (const PatternTableEntry& entry : Dnnl().PatternTable()) {
    if (entry.name != name) continue;
    for (size_t root = 0; root < graph.size() && !whole; ++root) {
      MatchPattern(graph, *ParsePattern(entry.pattern), static_cast<int>(root), [&](const std::vector<int>& inside) {
        size_t calls = 0;
        for (int node : inside) calls += is_call(static_cast<size_t>(node)) ? 1 : 0;
        whole = whole || calls == all;
      });
    }
  }
  return whole;
}

/// The function is matched by the row's text, accepted by its predicate, and computed right where it is computed.
inline void ExpectRow(const std::string& name, const Function& function, const Options& options = {}) {
  SCOPED_TRACE(name);
  InferType(function);
  EXPECT_TRUE(TextMatches(name, function)) << "the text of the pattern does not match";
  if (IsDeclinedForWantOfVnni(function, options)) return;
  ExpectPatternAgrees(Dnnl(), name, function, options);
}

/// Channels-last for parameters and a result of three to five dimensions.
inline BoundaryLayouts ChannelsLast(const Function& function) {
  InferType(function);
  const auto layout = [](const Type& type) {
    const auto rank = AsTensorType(type)->rank();
    return rank >= 3 && rank <= 5 ? Layout::kChannelsLast : Layout::kPlain;
  };
  BoundaryLayouts layouts;
  for (const Var& param : function->params()) layouts.inputs.push_back(layout(param->type_annotation()));
  layouts.outputs.push_back(layout(function->body()->checked_type()));
  return layouts;
}

/// Why oneDNN does not take `function`; "none" when it does.
inline std::string RefusalOf(const Function& function) {
  InferType(function);
  const Result<void> answer = dnnl_toolchain::CheckComposite(function);
  return answer.ok() ? "none" : answer.reason().text;
}

}  // namespace collage::conformance
