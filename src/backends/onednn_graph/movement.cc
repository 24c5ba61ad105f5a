// movement.cc: elements that go elsewhere, or stay where they are under another shape.
#include <numeric>

#include "backends/onednn_graph/translations.h"

namespace collage::onednn_graph {

using nlohmann::json;

void Concatenate(Builder& graph, const Call& call, const char* kind) {
  const DataType dtype = RequireFloats(call);
  const Shape shape = ShapeOf(call);
  std::vector<int> inputs;
  const Expr& tuple = call->args()[0];
  const size_t count = FlattenTensorTypes(tuple->checked_type()).size();
  for (size_t i = 0; i < count; ++i) {
    const Value value = graph.ValueOf(tuple, i);
    inputs.push_back(graph.Shaped(value, value.shape));
  }
  if (inputs.empty()) throw Refusal{"concatenates something"};
  const json attrs{{"axis", NormalAxis(call->attrs().Int("axis"), shape.size())}};
  graph.Set(call, Value{graph.Add(call, kind, attrs, std::move(inputs), shape, dtype), shape});
}

void Transpose(Builder& graph, const Call& call, const char* kind) {
  const DataType dtype = RequireFloats(call);
  const Shape shape = ShapeOf(call);
  std::vector<int64_t> order(shape.size());
  std::iota(order.rbegin(), order.rend(), 0);
  const AttrValue& given = call->attrs().Get("axes");
  if (!given.is_none() && !call->attrs().Ints("axes").empty()) order = call->attrs().Ints("axes");
  for (int64_t& axis : order) axis = NormalAxis(axis, shape.size());
  if (shape.size() < 2) throw Refusal{"permutes two dimensions or more"};
  const int operand = graph.Shaped(call->args()[0]);
  graph.Set(call, Value{graph.Add(call, kind, {{"order", order}}, {operand}, shape, dtype), shape});
}

/// Defers a reshape, which moves no elements, until a reader needs the shape.
void Reshape(Builder& graph, const Call& call, const char*) {
  const Value x = graph.ValueOf(call->args()[0]);
  if (!IsFloat(DTypeOf(call)) && !IsByte(DTypeOf(call))) {
    throw Refusal{"computes floats and bytes, got " + DTypeOf(call).ToString()};
  }
  graph.Set(call, Value{x.tensor, ShapeOf(call)});
}

}  // namespace collage::onednn_graph
