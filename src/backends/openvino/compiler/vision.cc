// vision.cc: rows of operators that sample images at coordinates which are data, and of boxes.
#include <openvino/opsets/opset13.hpp>

#include "backends/openvino/compiler/translate.h"

namespace collage::openvino {
namespace {

namespace ops = ov::opset13;
using Value = ov::Output<ov::Node>;

ov::OutputVector GridSample(const OpArgs& call) {
  using Node = ov::op::v9::GridSample;
  const std::string& method = call.attrs.String("method");
  const std::string& padding = call.attrs.String("padding_mode");
  const Node::Attributes attributes(call.attrs.Bool("align_corners"),
                                    method == "nearest"    ? Node::InterpolationMode::NEAREST
                                    : method == "bilinear" ? Node::InterpolationMode::BILINEAR
                                                           : Node::InterpolationMode::BICUBIC,
                                    padding == "zeros"    ? Node::PaddingMode::ZEROS
                                    : padding == "border" ? Node::PaddingMode::BORDER
                                                          : Node::PaddingMode::REFLECTION);
  // Relay keeps a point's coordinates along the first axis behind the batch, OpenVINO along the last.
  return {std::make_shared<Node>(call[0], Transposed(call[1], {0, 2, 3, 1}), attributes)};
}

ov::OutputVector DeformableConv(const OpArgs& call) {
  using Node = ov::op::v8::DeformableConvolution;
  const Window window(call.attrs, 2);
  const ov::CoordinateDiff before(window.before.begin(), window.before.end());
  const ov::CoordinateDiff after(window.after.begin(), window.after.end());
  const int64_t groups = call.attrs.Int("groups");
  const int64_t deformable = call.attrs.Int("deformable_groups");
  // The last argument: samples less than a pixel outside are between the outermost pixels and zeros.
  if (call.inputs.size() > 3) {
    return {std::make_shared<Node>(call[0], call[1], call[2], call[3], window.strides, before, after, window.dilation,
                                   ov::op::PadType::EXPLICIT, groups, deformable, true)};
  }
  return {std::make_shared<Node>(call[0], call[1], call[2], window.strides, before, after, window.dilation,
                                 ov::op::PadType::EXPLICIT, groups, deformable, true)};
}

/// Columns [from, to) of rows.
Value Columns(const Value& rows, int64_t from, int64_t to) {
  return std::make_shared<ops::Slice>(rows, Ints({from}), Ints({to}), Ints({1}), Ints({1}));
}

ov::OutputVector RoiAlign(const OpArgs& call) {
  using Node = ov::op::v9::ROIAlign;
  const ov::Shape shape = call.result_shape();
  const Value batches = AsType(Reshaped(Columns(call[1], 0, 1), {shape[0]}), ov::element::i32);
  const int64_t samples = std::max<int64_t>(call.attrs.Int("sample_ratio"), 0);  // 0: as many as pixels
  return {std::make_shared<Node>(
      call[0], Columns(call[1], 1, 5), batches, static_cast<int>(shape[2]), static_cast<int>(shape[3]),
      static_cast<int>(samples), static_cast<float>(call.attrs.Double("spatial_scale")), Node::PoolingMode::AVG,
      call.attrs.Bool("aligned") ? Node::AlignedMode::HALF_PIXEL_FOR_NN : Node::AlignedMode::ASYMMETRIC)};
}

ov::OutputVector RoiPool(const OpArgs& call) {
  const ov::Shape shape = call.result_shape();
  return {std::make_shared<ov::op::v0::ROIPooling>(call[0], call[1], ov::Shape{shape[2], shape[3]},
                                                   static_cast<float>(call.attrs.Double("spatial_scale")), "max")};
}

/// The selected rows are as many as there are; zeros behind them make the shape known.
ov::OutputVector NonMaxSuppression(const OpArgs& call) {
  using Node = ov::op::v9::NonMaxSuppression;
  const auto node = std::make_shared<Node>(call[0], call[1], Reshaped(call[2], {}), Reshaped(call[3], {}),
                                           Reshaped(call[4], {}), Node::BoxEncodingType::CORNER,
                                           /*sort_result_descending=*/false, ov::element::i64);
  const ov::Shape shape = call.result_shape();
  const Value zeros = ops::Constant::create(ov::element::i64, shape, std::vector<int>{0});
  const Value all = std::make_shared<ops::Concat>(ov::OutputVector{node->output(0), zeros}, 0);
  const Value rows =
      std::make_shared<ops::Slice>(all, Ints({0}), Ints({static_cast<int64_t>(shape[0])}), Ints({1}), Ints({0}));
  const auto as_shape = [](const Value& value, const ov::Shape& wanted) {
    return std::make_shared<ops::Reshape>(value, Ints({wanted.begin(), wanted.end()}), false);
  };
  return {as_shape(rows, shape), as_shape(node->output(2), call.result_shape(1))};
}

}  // namespace

void AddVisionRows(RowMap& rows) {
  rows["image.grid_sample"] = GridSample;
  rows["nn.deformable_conv2d"] = DeformableConv;
  rows["vision.roi_align"] = RoiAlign;
  rows["vision.roi_pool"] = RoiPool;
  rows["vision.all_class_non_max_suppression"] = NonMaxSuppression;
}

}  // namespace collage::openvino
