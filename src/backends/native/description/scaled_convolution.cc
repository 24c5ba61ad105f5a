// scaled_convolution.cc: which factor of the data is a number for each channel, and when it is better one of the
// weights.
#include "backends/native/description/scaled_convolution.h"

#include <fmt/format.h>

#include "collage/ir/op.h"

namespace collage::native {
namespace {

/// Whether `type` has one number for each channel of data of shape `data`.
bool IsPerChannel(const Type& type, const Shape& data) {
  const TensorTypeNode* tensor = AsTensorType(type);
  if (tensor == nullptr || !tensor->is_static() || tensor->dtype() != kFloat32) return false;
  Shape shape = tensor->static_shape();
  if (shape.size() + 1 == data.size()) shape.insert(shape.begin(), 1);
  Shape wanted(data.size(), 1);
  wanted[1] = data[1];
  return shape == wanted;
}

}  // namespace

Result<ChannelScale> ScaleOfWeights(const CallNode& convolution) {
  const auto no = [](std::string text) { return Reason{std::move(text), "native"}; };
  const std::string name = convolution.op() == nullptr ? "" : convolution.op()->name;
  if (name != "nn.conv1d" && name != "nn.conv2d" && name != "nn.conv3d") return no("is no convolution");
  if (convolution.attrs().Int("groups") != 1) return no("its channels are in groups");
  const CallNode* product = As<CallNode>(convolution.args()[0]);
  if (product == nullptr || product->op() == nullptr || product->op()->name != "multiply") {
    return no("its data are no product");
  }
  const TensorTypeNode* data = AsTensorType(product->checked_type());
  const TensorTypeNode* result = AsTensorType(convolution.checked_type());
  const TensorTypeNode* weight = AsTensorType(convolution.args()[1]->checked_type());
  if (!data->is_static() || !result->is_static() || !weight->is_static() || data->dtype() != kFloat32 ||
      weight->dtype() != kFloat32 || result->dtype() != kFloat32) {
    return no("is not all float32 of known shape");
  }
  const Shape shape = data->static_shape();
  if (shape[0] != 1) return no("has several images, of which each has a scale of its own");
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Expr& scale = product->args()[i];
    const Expr& scaled = product->args()[1 - i];
    const TensorTypeNode* of_scaled = AsTensorType(scaled->checked_type());
    const bool is_whole = of_scaled->is_static() && of_scaled->static_shape() == shape;
    if (!is_whole || !IsPerChannel(scale->checked_type(), shape)) continue;
    const int64_t num_data = NumElements(shape);
    const int64_t num_weights = NumElements(weight->static_shape());
    if (num_weights >= num_data) {
      return no(fmt::format("its {} weights are no fewer than its {} data", num_weights, num_data));
    }
    return ChannelScale{scaled, scale};
  }
  return no("its data have no factor that is one number for each channel");
}

}  // namespace collage::native
