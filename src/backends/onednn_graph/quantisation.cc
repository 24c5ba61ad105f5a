// quantisation.cc: from floats to bytes and back.
#include "backends/onednn_graph/translations.h"

namespace collage::onednn_graph {
namespace {

using nlohmann::json;

/// Scales and zero points, which must be known.
json QuantisationAttrs(const Call& call, size_t rank) {
  const ConstantNode* scale = As<ConstantNode>(call->args()[1]);
  const ConstantNode* zero = As<ConstantNode>(call->args()[2]);
  if (scale == nullptr || zero == nullptr) throw Refusal{"takes constant scales and zero points only"};
  std::vector<double> scales;
  std::vector<int64_t> zeros;
  const int64_t count = scale->value().num_elements();
  for (int64_t i = 0; i < count; ++i) scales.push_back(scale->value().At(i));
  for (int64_t i = 0; i < zero->value().num_elements(); ++i) {
    zeros.push_back(static_cast<int64_t>(zero->value().At(i)));
    if (zeros.back() != 0 && (count > 1 || i > 0)) throw Refusal{"takes a zero point with one scale for all only"};
  }
  zeros.resize(scales.size(), 0);
  return {{"scales", scales},
          {"zps", zeros},
          {"qtype", count == 1 ? "per_tensor" : "per_channel"},
          {"axis", rank == 0 ? 0 : NormalAxis(call->attrs().Int("axis"), rank)}};
}

}  // namespace

void Quantize(Builder& graph, const Call& call, const char* kind) {
  const Shape shape = ShapeOf(call);
  if (DTypeOf(call->args()[0]) != kFloat32 || !IsByte(DTypeOf(call))) throw Refusal{"makes bytes of float32 only"};
  const json attrs = QuantisationAttrs(call, shape.size());
  const int operand = graph.Shaped(call->args()[0]);
  graph.Set(call, Value{graph.Add(call, kind, attrs, {operand}, shape, DTypeOf(call)), shape});
}

void Dequantize(Builder& graph, const Call& call, const char* kind) {
  const Shape shape = ShapeOf(call);
  if (!IsByte(DTypeOf(call->args()[0])) || DTypeOf(call) != kFloat32) throw Refusal{"makes float32 of bytes only"};
  const json attrs = QuantisationAttrs(call, shape.size());
  const int operand = graph.Shaped(call->args()[0]);
  graph.Set(call, Value{graph.Add(call, kind, attrs, {operand}, shape, kFloat32), shape});
}

}  // namespace collage::onednn_graph
