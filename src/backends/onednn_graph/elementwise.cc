// elementwise.cc: operators of elements, with whatever is broadcast to them.
#include <fmt/format.h>

#include "backends/onednn_graph/translations.h"

namespace collage::onednn_graph {
namespace {

using nlohmann::json;

/// One argument, in whatever shape it is.
void AddUnary(Builder& graph, const Call& call, const char* kind, json attrs = json::object()) {
  const DataType dtype = RequireFloats(call);
  const Value x = graph.ValueOf(call->args()[0]);
  const Shape own = graph.TensorOf(x).shape;
  graph.Set(call, Value{graph.Add(call, kind, std::move(attrs), {x.tensor}, own, dtype), x.shape});
}

/// Whether a tensor of `shape`, spread over one of rank `rank`, is a vector along `axis`.
bool IsVectorAlong(const Shape& shape, size_t rank, size_t axis) {
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1 && rank - shape.size() + i != axis) return false;
  }
  return shape.size() <= rank;
}

/// `x` with `bias` along the axis where its producer takes one.
bool IsBias(Builder& graph, const Call& call, const Expr& x, const Expr& bias) {
  if (As<ConstantNode>(bias) == nullptr || As<CallNode>(x) == nullptr) return false;
  const CallNode& maker = *As<CallNode>(x);
  const bool is_convolution = maker.op() != nullptr && maker.op()->name.starts_with("nn.conv");
  const Value made = graph.ValueOf(x);
  const Shape own = graph.TensorOf(made).shape;
  const size_t rank = made.shape.size();
  const Shape result = ShapeOf(call);
  if (rank == 0 || result != made.shape) return false;
  if (is_convolution) return IsVectorAlong(ShapeOf(bias), rank, 1) && graph.AddBias(call, x, bias, 1);
  if (!KeepsLast(made, own)) return false;
  return IsVectorAlong(ShapeOf(bias), rank, rank - 1) && graph.AddBias(call, x, bias, own.size() - 1);
}

/// A vector along `axis` as it is spread over a tensor of `rank`.
int Spread(Builder& graph, const Expr& vector, int64_t axis, size_t rank) {
  Shape shape(rank - static_cast<size_t>(axis), 1);
  shape[0] = ShapeOf(vector).at(0);
  return graph.Shaped(graph.ValueOf(vector), shape);
}

}  // namespace

void Unary(Builder& graph, const Call& call, const char* kind) { AddUnary(graph, call, kind); }

void LeakyRelu(Builder& graph, const Call& call, const char* kind) {
  AddUnary(graph, call, kind, {{"alpha", call->attrs().Double("alpha")}});
}

void Clip(Builder& graph, const Call& call, const char* kind) {
  AddUnary(graph, call, kind, {{"min", call->attrs().Double("a_min")}, {"max", call->attrs().Double("a_max")}});
}

void Cast(Builder& graph, const Call& call, const char* kind) {
  const Value x = graph.ValueOf(call->args()[0]);
  const GraphTensor from = graph.TensorOf(x);
  const DataType to = DTypeOf(call);
  if (!IsFloat(from.dtype) || !IsFloat(to) || (from.dtype != kFloat32 && to != kFloat32) || from.dtype == to) {
    throw Refusal{fmt::format("converts between float32 and its halves only, got {} to {}", from.dtype.ToString(),
                              to.ToString())};
  }
  graph.Set(call, Value{graph.Add(call, kind, json::object(), {x.tensor}, from.shape, to), x.shape});
}

void Binary(Builder& graph, const Call& call, const char* kind) {
  const DataType dtype = RequireFloats(call);
  const Value a = graph.ValueOf(call->args()[0]), b = graph.ValueOf(call->args()[1]);
  const Shape own_a = graph.TensorOf(a).shape, own_b = graph.TensorOf(b).shape;
  const Shape result = ShapeOf(call);
  // In whatever shape they are, where that is the same or one of them is a number.
  if (a.shape == b.shape && own_a == own_b) {
    return graph.Set(call, Value{graph.Add(call, kind, json::object(), {a.tensor, b.tensor}, own_a, dtype), result});
  }
  if (NumElements(b.shape) == 1 && a.shape == result) {
    const int number = graph.Shaped(b, {1});
    return graph.Set(call, Value{graph.Add(call, kind, json::object(), {a.tensor, number}, own_a, dtype), result});
  }
  if (NumElements(a.shape) == 1 && b.shape == result) {
    const int number = graph.Shaped(a, {1});
    return graph.Set(call, Value{graph.Add(call, kind, json::object(), {number, b.tensor}, own_b, dtype), result});
  }
  const int left = graph.Shaped(a, a.shape), right = graph.Shaped(b, b.shape);
  graph.Set(call, Value{graph.Add(call, kind, json::object(), {left, right}, result, dtype), result});
}

void AddOrBias(Builder& graph, const Call& call, const char* kind) {
  RequireFloats(call);
  if (IsBias(graph, call, call->args()[0], call->args()[1])) return;
  if (IsBias(graph, call, call->args()[1], call->args()[0])) return;
  Binary(graph, call, kind);
}

void BiasAdd(Builder& graph, const Call& call, const char* kind) {
  const DataType dtype = RequireFloats(call);
  const Expr& data = call->args()[0];
  const Shape shape = ShapeOf(call);
  const int64_t axis = NormalAxis(call->attrs().Int("axis"), shape.size());
  const Value made = graph.ValueOf(data);
  const Shape own = graph.TensorOf(made).shape;
  const CallNode* maker = As<CallNode>(data);
  const bool is_convolution = maker != nullptr && maker->op() != nullptr && maker->op()->name.starts_with("nn.conv");
  if (is_convolution && axis == 1 && graph.AddBias(call, data, call->args()[1], 1)) return;
  const bool is_last = axis == static_cast<int64_t>(shape.size()) - 1 && KeepsLast(made, own);
  if (!is_convolution && is_last && graph.AddBias(call, data, call->args()[1], own.size() - 1)) return;
  const int bias = Spread(graph, call->args()[1], axis, shape.size());
  graph.Set(call, Value{graph.Add(call, kind, json::object(), {graph.Shaped(data), bias}, shape, dtype), shape});
}

void Prelu(Builder& graph, const Call& call, const char* kind) {
  const DataType dtype = RequireFloats(call);
  const Shape shape = ShapeOf(call);
  if (shape.size() < 2 || NormalAxis(call->attrs().Int("axis"), shape.size()) != 1) {
    throw Refusal{"takes slopes per channel, on axis 1, only"};
  }
  const json attrs{{"data_format", "NCX"}, {"per_channel_broadcast", true}};
  const std::vector<int> inputs{graph.Shaped(call->args()[0]), graph.Shaped(call->args()[1])};
  graph.Set(call, Value{graph.Add(call, kind, attrs, inputs, shape, dtype), shape});
}

}  // namespace collage::onednn_graph
