// products.cc: products of matrices.
#include <algorithm>
#include <optional>

#include "backends/onednn_graph/translations.h"

namespace collage::onednn_graph {
namespace {

using nlohmann::json;

json Transposes(const Call& call) {
  return {{"transpose_a", call->attrs().Bool("transpose_a")}, {"transpose_b", call->attrs().Bool("transpose_b")}};
}

/// `lead` and the last two dimensions of `shape`.
Shape WithLead(const Shape& lead, const Shape& shape) {
  Shape whole = lead;
  whole.insert(whole.end(), shape.end() - 2, shape.end());
  return whole;
}

/// Returns the dimensions of `own` before the last two, if those are `shape`'s and there are at least two.
std::optional<Shape> LeadOf(const Shape& own, const Shape& shape) {
  if (own.size() < 4 || !std::equal(own.end() - 2, own.end(), shape.end() - 2)) return {};
  return Shape(own.begin(), own.end() - 2);
}

}  // namespace

void Dense(Builder& graph, const Call& call, const char* kind) {
  const DataType dtype = RequireFloats(call);
  const Value data = graph.ValueOf(call->args()[0]);
  const Shape result = ShapeOf(call);
  Shape own = graph.TensorOf(data).shape;
  int operand = data.tensor;
  if (!KeepsLast(data, own) || own.size() < 2) {
    own = data.shape;
    operand = graph.Shaped(data, own);
  }
  own.back() = result.back();
  const int weight = graph.Shaped(call->args()[1]);
  const json attrs{{"transpose_a", false}, {"transpose_b", true}};
  graph.Set(call, Value{graph.Add(call, kind, attrs, {operand, weight}, own, dtype), result});
}

void MatMul(Builder& graph, const Call& call, const char* kind) {
  const DataType dtype = RequireFloats(call);
  const Shape result = ShapeOf(call);
  const std::vector<int> inputs{graph.Shaped(call->args()[0]), graph.Shaped(call->args()[1])};
  graph.Set(call, Value{graph.Add(call, kind, Transposes(call), inputs, result, dtype), result});
}

void BatchMatMul(Builder& graph, const Call& call, const char* kind) {
  const DataType dtype = RequireFloats(call);
  const Value a = graph.ValueOf(call->args()[0]), b = graph.ValueOf(call->args()[1]);
  const Shape result = ShapeOf(call);
  std::vector<std::optional<Shape>> leads{LeadOf(graph.TensorOf(a).shape, a.shape),
                                          LeadOf(graph.TensorOf(b).shape, b.shape)};
  if (const CallNode* reshape = graph.OnlyReshapeOf(call)) {
    leads.push_back(LeadOf(AsTensorType(reshape->checked_type())->static_shape(), result));
  }
  for (const std::optional<Shape>& lead : leads) {
    if (!lead || NumElements(*lead) != a.shape[0] || NumElements(*lead) != b.shape[0]) continue;
    const int left = graph.View(a, WithLead(*lead, a.shape)), right = graph.View(b, WithLead(*lead, b.shape));
    if (left < 0 || right < 0) continue;
    const Shape own = WithLead(*lead, result);
    return graph.Set(call, Value{graph.Add(call, kind, Transposes(call), {left, right}, own, dtype), result});
  }
  const std::vector<int> inputs{graph.Shaped(call->args()[0]), graph.Shaped(call->args()[1])};
  graph.Set(call, Value{graph.Add(call, kind, Transposes(call), inputs, result, dtype), result});
}

}  // namespace collage::onednn_graph
