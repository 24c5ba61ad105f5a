// pool.cc: rows of pooling and resizing.
#include <openvino/opsets/opset14.hpp>

#include "backends/openvino/compiler/translate.h"

namespace collage::openvino {
namespace {

namespace ops = ov::opset14;

ov::Shape PoolSize(const OpArgs& call) {
  std::vector<int64_t> size = call.attrs.Ints("pool_size");
  if (size.size() == 1) size.resize(call.rank() - 2, size[0]);
  return {size.begin(), size.end()};
}

ov::op::RoundingType Rounding(const OpArgs& call) {
  return call.attrs.Bool("ceil_mode") ? ov::op::RoundingType::CEIL : ov::op::RoundingType::FLOOR;
}

ov::Shape Pads(const std::vector<int64_t>& padding) { return {padding.begin(), padding.end()}; }

/// 0: the largest elements, 1: where in the whole data they are.
template <size_t kOutput>
ov::OutputVector MaxPool(const OpArgs& call) {
  const Window window(call.attrs, call.rank() - 2);
  const auto pool = std::make_shared<ops::MaxPool>(call[0], window.strides, window.dilation, Pads(window.before),
                                                   Pads(window.after), PoolSize(call), Rounding(call),
                                                   ov::op::PadType::EXPLICIT, ov::element::i64, /*axis=*/0);
  return {pool->output(kOutput)};
}

ov::OutputVector AvgPool(const OpArgs& call) {
  const Window window(call.attrs, call.rank() - 2);
  for (size_t distance : window.dilation) {
    if (distance != 1) throw Untranslatable{"averages windows without dilation only"};
  }
  return {std::make_shared<ops::AvgPool>(call[0], window.strides, Pads(window.before), Pads(window.after),
                                         PoolSize(call), !call.attrs.Bool("count_include_pad"), Rounding(call))};
}

template <typename Reduce>
ov::OutputVector GlobalPool(const OpArgs& call) {
  std::vector<int64_t> axes;
  for (size_t i = 2; i < call.rank(); ++i) axes.push_back(static_cast<int64_t>(i));
  return {std::make_shared<Reduce>(call[0], Ints(axes), true)};
}

ov::OutputVector AdaptiveAvgPool(const OpArgs& call) {
  const ov::Shape shape = call.result_shape();
  return {std::make_shared<ops::AdaptiveAvgPool>(call[0], Ints({shape.begin() + 2, shape.end()}))};
}

ov::OutputVector AdaptiveMaxPool(const OpArgs& call) {
  const ov::Shape shape = call.result_shape();
  const ov::Output<ov::Node> size = Ints({shape.begin() + 2, shape.end()});
  return {std::make_shared<ops::AdaptiveMaxPool>(call[0], size, ov::element::i32)->output(0)};
}

using Interpolate = ov::op::v11::Interpolate;
using Interpolation = ov::op::util::InterpolateBase;

Interpolation::InterpolateMode Mode(const Attrs& attrs) {
  const std::string& method = attrs.String("method");
  if (method == "nearest_neighbor") return Interpolation::InterpolateMode::NEAREST;
  if (method == "linear") return Interpolation::InterpolateMode::LINEAR_ONNX;
  if (method == "cubic") return Interpolation::InterpolateMode::CUBIC;
  throw Untranslatable{"has no resize method '" + method + "'"};
}

Interpolation::CoordinateTransformMode Coordinates(const Attrs& attrs) {
  using CoordinateMode = Interpolation::CoordinateTransformMode;
  const std::string& mode = attrs.String("coordinate_transformation_mode");
  if (mode == "half_pixel") return CoordinateMode::HALF_PIXEL;
  if (mode == "pytorch_half_pixel") return CoordinateMode::PYTORCH_HALF_PIXEL;
  if (mode == "align_corners") return CoordinateMode::ALIGN_CORNERS;
  if (mode == "asymmetric") return CoordinateMode::ASYMMETRIC;
  if (mode == "tf_half_pixel_for_nn") return CoordinateMode::TF_HALF_PIXEL_FOR_NN;
  throw Untranslatable{"has no coordinate mode '" + mode + "'"};
}

Interpolation::NearestMode Nearest(const Attrs& attrs) {
  using NearestMode = Interpolation::NearestMode;
  const std::string& mode = attrs.String("rounding_method");
  if (mode.empty() || mode == "round") return NearestMode::ROUND_PREFER_FLOOR;
  if (mode == "round_prefer_ceil") return NearestMode::ROUND_PREFER_CEIL;
  if (mode == "floor") return NearestMode::FLOOR;
  if (mode == "ceil") return NearestMode::CEIL;
  throw Untranslatable{"has no rounding '" + mode + "'"};
}

/// Scales that the model asks for; empty when they are the ratios of the sizes.
std::vector<float> GivenScales(const OpArgs& call) {
  std::vector<float> scales;
  const AttrValue* value = call.attrs.Find("scales");
  if (value == nullptr || value->as_list() == nullptr) return scales;
  for (const AttrValue& scale : *value->as_list()) {
    if (scale.as_double() != nullptr) scales.push_back(static_cast<float>(*scale.as_double()));
  }
  return scales.size() == call.rank() - 2 ? scales : std::vector<float>{};
}

ov::OutputVector Resize(const OpArgs& call) {
  Interpolate::InterpolateAttrs attrs;
  attrs.mode = Mode(call.attrs);
  attrs.coordinate_transformation_mode = Coordinates(call.attrs);
  attrs.nearest_mode = Nearest(call.attrs);
  attrs.antialias = false;
  attrs.cube_coeff = call.attrs.Double("cubic_alpha");
  attrs.pads_begin = {0};
  attrs.pads_end = {0};
  std::vector<int64_t> axes;
  for (size_t i = 2; i < call.rank(); ++i) axes.push_back(static_cast<int64_t>(i));
  const std::vector<float> scales = GivenScales(call);
  if (!scales.empty()) {
    attrs.shape_calculation_mode = Interpolation::ShapeCalcMode::SCALES;
    const auto factors = ops::Constant::create(ov::element::f32, {scales.size()}, scales);
    return {std::make_shared<Interpolate>(call[0], factors, Ints(axes), attrs)};
  }
  attrs.shape_calculation_mode = Interpolation::ShapeCalcMode::SIZES;
  const ov::Shape shape = call.result_shape();
  return {std::make_shared<Interpolate>(call[0], Ints({shape.begin() + 2, shape.end()}), Ints(axes), attrs)};
}

}  // namespace

void AddPoolRows(RowMap& rows) {
  for (const char* name : {"nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d"}) rows[name] = MaxPool<0>;
  for (const char* name : {"nn.max_pool1d_indices", "nn.max_pool2d_indices", "nn.max_pool3d_indices"}) {
    rows[name] = MaxPool<1>;
  }
  for (const char* name : {"nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d"}) rows[name] = AvgPool;
  for (const char* name : {"nn.global_avg_pool1d", "nn.global_avg_pool2d", "nn.global_avg_pool3d"}) {
    rows[name] = GlobalPool<ops::ReduceMean>;
  }
  for (const char* name : {"nn.global_max_pool1d", "nn.global_max_pool2d", "nn.global_max_pool3d"}) {
    rows[name] = GlobalPool<ops::ReduceMax>;
  }
  rows["nn.adaptive_avg_pool2d"] = AdaptiveAvgPool;
  rows["nn.adaptive_max_pool2d"] = AdaptiveMaxPool;
  for (const char* name : {"image.resize1d", "image.resize2d", "image.resize3d"}) rows[name] = Resize;
}

}  // namespace collage::openvino
