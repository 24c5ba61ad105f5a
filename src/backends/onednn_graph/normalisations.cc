// normalisations.cc: softmax, norms and reductions.
#include <algorithm>

#include "backends/onednn_graph/translations.h"

namespace collage::onednn_graph {

using nlohmann::json;

void Softmax(Builder& graph, const Call& call, const char* kind) {
  const DataType dtype = RequireFloats(call);
  const Value x = graph.ValueOf(call->args()[0]);
  const Shape own = graph.TensorOf(x).shape;
  const int64_t axis = NormalAxis(call->attrs().Int("axis"), x.shape.size());
  if (axis == static_cast<int64_t>(x.shape.size()) - 1 && KeepsLast(x, own)) {
    return graph.Set(call, Value{graph.Add(call, kind, {{"axis", -1}}, {x.tensor}, own, dtype), x.shape});
  }
  const int operand = graph.Shaped(call->args()[0]);
  graph.Set(call, Value{graph.Add(call, kind, {{"axis", axis}}, {operand}, x.shape, dtype), x.shape});
}

void LayerNorm(Builder& graph, const Call& call, const char* kind) {
  const DataType dtype = RequireFloats(call);
  const Attrs& attrs = call->attrs();
  const Value x = graph.ValueOf(call->args()[0]);
  const Shape own = graph.TensorOf(x).shape;
  if (NormalAxis(attrs.Int("axis"), x.shape.size()) != static_cast<int64_t>(x.shape.size()) - 1 || !KeepsLast(x, own)) {
    throw Refusal{"normalises the innermost axis only"};
  }
  if (!attrs.Bool("center") || !attrs.Bool("scale")) throw Refusal{"scales and shifts, or neither"};
  const std::vector<int> inputs{x.tensor, graph.Shaped(call->args()[1]), graph.Shaped(call->args()[2])};
  const json values{
      {"begin_norm_axis", -1}, {"epsilon", attrs.Double("epsilon")}, {"use_affine", true}, {"keep_stats", false}};
  graph.Set(call, Value{graph.Add(call, kind, values, inputs, own, dtype), x.shape});
}

void Reduce(Builder& graph, const Call& call, const char* kind) {
  const DataType dtype = RequireFloats(call);
  const Shape from = ShapeOf(call->args()[0]);
  if (from.empty()) throw Refusal{"reduces no scalars"};
  std::vector<int64_t> axes;
  const AttrValue& given = call->attrs().Get("axis");
  const std::vector<int64_t> named = given.is_none() ? std::vector<int64_t>{} : call->attrs().Ints("axis");
  const bool excludes = call->attrs().Bool("exclude");
  Shape kept = from;
  for (int64_t axis = 0; axis < static_cast<int64_t>(from.size()); ++axis) {
    const bool is_named = std::ranges::any_of(named, [&](int64_t one) { return NormalAxis(one, from.size()) == axis; });
    if (given.is_none() ? excludes : is_named == excludes) continue;
    axes.push_back(axis);
    kept[static_cast<size_t>(axis)] = 1;
  }
  if (axes.empty()) throw Refusal{"reduces some axis"};
  const json attrs{{"axes", axes}, {"keep_dims", true}};
  graph.Set(call, Value{graph.Add(call, kind, attrs, {graph.Shaped(call->args()[0])}, kept, dtype), ShapeOf(call)});
}

}  // namespace collage::onednn_graph
