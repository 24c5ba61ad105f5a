// normalisations.cc: normalisation of rows, and of the channels of each sample.
#include <fmt/format.h>

#include "backends/cudnn/anchors.h"
#include "collage/ir/op.h"

namespace collage::cudnn {
namespace {

/// Adds scale, shift and epsilon of `call`, numbers along axis 1, to `operation`, whose values have `rank` axes.
void AddParameters(Reading& reading, const CallNode& call, size_t rank, Operation& operation) {
  if (!call.attrs().Bool("scale") || !call.attrs().Bool("center")) throw Refusal{"expects scale and shift"};
  const auto add_vector = [&](const Expr& expr) {
    const Operand operand = reading.OperandOf(expr);
    if (operand.input >= 0) throw Refusal{"takes constant scales and shifts only"};
    Shape dims(rank, 1);
    dims[1] = NumElements(operand.shape);
    return reading.AddConstant(operand.constant.Cast(kFloat32), dims, StridesOf(dims, /*channels_last=*/false));
  };
  operation.b = add_vector(call.args()[1]);
  operation.c = add_vector(call.args()[2]);
  operation.d = reading.AddNumber(static_cast<float>(call.attrs().Double("epsilon")), rank);
}

}  // namespace

Anchor ReadLayerNorm(Reading& reading, size_t number) {
  const Call& call = reading.calls()[number];
  const Operand data = reading.OperandOf(call->args()[0]);
  const auto rank = static_cast<int64_t>(data.shape.size());
  const int64_t axis = call->attrs().Int("axis");
  if ((axis < 0 ? axis + rank : axis) != rank - 1) throw Refusal{"normalises the last axis only"};
  if (data.layout != Layout::kPlain) throw Refusal{"normalises plain tensors only"};
  const int64_t columns = data.shape.back();
  const Shape x{NumElements(data.shape) / columns, columns, 1, 1};
  Operation operation{.kind = Kind::kLayerNorm};
  operation.x = reading.Add(data, x, StridesOf(x, /*channels_last=*/false));
  AddParameters(reading, *call, x.size(), operation);
  operation.y = reading.AddInside(x, StridesOf(x, /*channels_last=*/false));
  reading.graph().operations.push_back(operation);
  return {.call = number, .y = operation.y};
}

Anchor ReadInstanceNorm(Reading& reading, size_t number) {
  const Call& call = reading.calls()[number];
  const Operand data = reading.OperandOf(call->args()[0]);
  if (data.shape.size() < 3 || data.shape.size() > 5) throw Refusal{"normalises images of 1 to 3 dimensions only"};
  const bool channels_last = IsChannelsLast(data.layout);
  if (IsChannelsLast(reading.result_layout()) != channels_last) throw Refusal{"normalises in one layout only"};
  const Shape x = AsImage(data.shape);
  Operation operation{.kind = Kind::kInstanceNorm};
  operation.x = reading.Add(data, x, StridesOf(x, channels_last));
  AddParameters(reading, *call, x.size(), operation);
  operation.y = reading.AddInside(x, StridesOf(x, channels_last));
  reading.graph().operations.push_back(operation);
  return {.call = number, .y = operation.y, .is_image = true};
}

}  // namespace collage::cudnn
