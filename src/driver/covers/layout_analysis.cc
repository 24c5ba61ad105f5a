// layout_analysis.cc: a flood from spatial operators over layout-agnostic ones.
#include "driver/covers/layout_analysis.h"

#include "collage/ir/visitor.h"

namespace collage {
namespace {

int RankAt(const DataflowGraph& graph, int index) {
  const TensorTypeNode* type = AsTensorType(graph.node(index).expr->checked_type());
  return type == nullptr || !type->is_static() ? -1 : type->rank();
}

bool KeepsLayout(const DataflowGraph& graph, int index) {
  const OpDef* op = graph.OpAt(index);
  if (op == nullptr) return false;
  if (op->layout_agnostic) return true;
  const CallNode* call = As<CallNode>(graph.node(index).expr);
  return op->name == "concatenate" && call->attrs().Int("axis") == 1;
}

/// The nodes whose values `index` reads, looking through a tuple argument.
std::vector<int> ValueInputs(const DataflowGraph& graph, int index) {
  std::vector<int> values;
  for (int input : graph.node(index).inputs) {
    if (graph.IsInlinedInPartitions(input)) continue;
    if (graph.node(input).expr->kind() == ExprKind::kTuple) {
      for (int field : graph.node(input).inputs) values.push_back(field);
    } else {
      values.push_back(input);
    }
  }
  return values;
}

}  // namespace

bool MayMakeChannelsLast(const DataflowGraph& graph, int index) {
  return graph.OpAt(index) != nullptr && (graph.OpAt(index)->spatial || KeepsLayout(graph, index));
}

std::vector<bool> ChannelsLastEligible(const DataflowGraph& graph) {
  const int size = static_cast<int>(graph.size());
  std::vector<bool> eligible(graph.size());
  std::vector<std::vector<int>> linked(graph.size());
  std::vector<int> work;
  const auto mark = [&](int index) {
    const int rank = RankAt(graph, index);
    const bool may = rank >= 3 && rank <= 5 && !eligible[static_cast<size_t>(index)];
    if (!may || graph.IsInlinedInPartitions(index)) return;
    eligible[static_cast<size_t>(index)] = true;
    work.push_back(index);
  };
  for (int index = 0; index < size; ++index) {
    if (graph.OpAt(index) == nullptr || RankAt(graph, index) < 0) continue;
    const std::vector<int> inputs = ValueInputs(graph, index);
    if (KeepsLayout(graph, index)) {
      for (int input : inputs) {
        if (RankAt(graph, input) != RankAt(graph, index)) continue;
        linked[static_cast<size_t>(index)].push_back(input);
        linked[static_cast<size_t>(input)].push_back(index);
      }
    }
    if (!graph.OpAt(index)->spatial) continue;
    mark(index);
    if (!inputs.empty()) mark(inputs[0]);
  }
  while (!work.empty()) {
    const int index = work.back();
    work.pop_back();
    for (int other : linked[static_cast<size_t>(index)]) mark(other);
  }
  const auto bar = [&](int index) { eligible[static_cast<size_t>(index)] = false; };
  for (size_t i = 0; i < graph.function()->params().size(); ++i) bar(static_cast<int>(i));
  const int body = graph.IndexOf(graph.function()->body());
  bar(body);
  if (graph.node(body).expr->kind() == ExprKind::kTuple) {
    for (int field : graph.node(body).inputs) bar(field);
  }
  return eligible;
}

}  // namespace collage
