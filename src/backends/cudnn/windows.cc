// windows.cc: convolutions and pools. A sequence is an image of one row.
#include <fmt/format.h>

#include <algorithm>

#include "backends/cudnn/anchors.h"
#include "collage/ir/op.h"
#include "ir/ops/relations.h"

namespace collage::cudnn {
namespace {

void RequireChannelsFirst(const CallNode& call, const char* attribute) {
  const std::string order = call.attrs().StringOr(attribute, "");
  if (!order.empty() && !order.starts_with("NC")) throw Refusal{"takes channels on axis 1 only, got " + order};
}

/// Strides, dilation and padding of the call's dimensions.
Window WindowOf(const Attrs& attrs, int rank) {
  Window window;
  window.strides = PerDimension(attrs.Ints("strides"), rank);
  window.dilation = PerDimension(attrs.Ints("dilation"), rank);
  Padding padding = SpatialPadding(attrs, rank);
  window.before = std::move(padding.before);
  window.after = std::move(padding.after);
  return window;
}

/// A row as an image.
void AddHeight(Window& window) {
  if (window.strides.size() != 1) return;
  window.strides.insert(window.strides.begin(), 1);
  window.dilation.insert(window.dilation.begin(), 1);
  window.before.insert(window.before.begin(), 0);
  window.after.insert(window.after.begin(), 0);
  if (!window.kernel.empty()) window.kernel.insert(window.kernel.begin(), 1);
}

/// Weights as the library reads them beside data whose channels lie innermost, or not.
int AddWeights(Reading& reading, const Operand& weights, bool channels_last) {
  if (weights.input >= 0) throw Refusal{"takes constant weights only"};
  Tensor tensor = weights.constant;
  if (channels_last) {
    tensor = Tensor::Empty(weights.shape, weights.dtype);
    ConvertLayout(weights.constant.raw(), Layout::kPlain, tensor.raw(), Layout::kChannelsLast, weights.shape,
                  weights.dtype.size_bytes());
  }
  const Shape dims = AsImage(weights.shape);
  return reading.AddConstant(tensor, dims, StridesOf(dims, channels_last));
}

int AddData(Reading& reading, const Operand& data) {
  const Shape dims = AsImage(data.shape);
  return reading.Add(data, dims, StridesOf(dims, IsChannelsLast(data.layout)));
}

int AddResult(Reading& reading, const Call& call) {
  const Shape dims = AsImage(ShapeOf(call));
  return reading.AddInside(dims, StridesOf(dims, IsChannelsLast(reading.result_layout())));
}

/// Padding behind the data that makes the last window whole, as ceil_mode wants it.
void FitPadding(const Shape& data, const Shape& result, bool counts_padding, Window& window) {
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    if (window.dilation[d] != 1) throw Refusal{"pools without dilation only"};
    const int64_t after = (result[d + 2] - 1) * window.strides[d] + window.kernel[d] - data[d + 2] - window.before[d];
    if (counts_padding && after > window.after[d]) throw Refusal{"divides partial windows by another count"};
    if (window.before[d] >= window.kernel[d] || after >= window.kernel[d]) {
      throw Refusal{"pools with padding smaller than the window only"};
    }
    window.after[d] = std::max<int64_t>(after, 0);
  }
}

}  // namespace

Anchor ReadConvolution(Reading& reading, size_t number) {
  const Call& call = reading.calls()[number];
  const bool is_transposed = call->op()->name.ends_with("_transpose");
  RequireChannelsFirst(*call, "data_layout");
  const std::string& order = call->attrs().String("kernel_layout");
  if (!order.starts_with(is_transposed ? "IO" : "OI")) {
    throw Refusal{"takes weights in the usual order only, got " + order};
  }
  const Operand data = reading.OperandOf(call->args()[0]);
  const Operand weights = reading.OperandOf(call->args()[1]);
  if (weights.dtype != data.dtype) throw Refusal{"multiplies values of one type only"};
  Operation operation{.kind = is_transposed ? Kind::kTransposedConvolution : Kind::kConvolution};
  operation.window = WindowOf(call->attrs(), static_cast<int>(data.shape.size()) - 2);
  AddHeight(operation.window);
  operation.x = AddData(reading, data);
  operation.b = AddWeights(reading, weights, IsChannelsLast(data.layout));
  operation.y = AddResult(reading, call);
  reading.graph().operations.push_back(operation);
  const bool is_volume = data.shape.size() == 5;
  return {.call = number,
          .y = operation.y,
          .is_image = true,
          .fuses = !(is_transposed && is_volume),
          .wants_bias = !is_transposed};
}

Anchor ReadPool(Reading& reading, size_t number) {
  const Call& call = reading.calls()[number];
  const std::string& name = call->op()->name;
  RequireChannelsFirst(*call, "layout");
  const bool is_max = name.find("max_pool") != std::string::npos;
  const Operand data = reading.OperandOf(call->args()[0]);
  const int rank = static_cast<int>(data.shape.size()) - 2;
  if (rank == 3 && (data.layout != Layout::kPlain || reading.result_layout() != Layout::kPlain)) {
    throw Refusal{"pools plain volumes only"};
  }
  Operation operation{.kind = is_max ? Kind::kMaxPool : Kind::kAvgPool};
  Window& window = operation.window;
  if (name.starts_with("nn.global_")) {
    window.kernel.assign(data.shape.begin() + 2, data.shape.end());
    window.strides = window.dilation = Shape(window.kernel.size(), 1);
    window.before = window.after = Shape(window.kernel.size(), 0);
  } else {
    window = WindowOf(call->attrs(), rank);
    window.kernel = PerDimension(call->attrs().Ints("pool_size"), rank);
    window.counts_padding = !is_max && call->attrs().Bool("count_include_pad");
    FitPadding(data.shape, ShapeOf(call), window.counts_padding, window);
  }
  AddHeight(window);
  operation.x = AddData(reading, data);
  operation.y = AddResult(reading, call);
  reading.graph().operations.push_back(operation);
  return {.call = number, .y = operation.y, .is_image = true};
}

}  // namespace collage::cudnn
