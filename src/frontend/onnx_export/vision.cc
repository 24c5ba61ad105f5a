// vision.cc: resizing, sampling, regions and boxes.
#include <fmt/format.h>

#include "frontend/onnx_export/exporter.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

std::vector<double> Numbers(const AttrValue& value) {
  std::vector<double> numbers;
  if (value.as_list() == nullptr) return numbers;
  for (const AttrValue& item : *value.as_list()) {
    if (item.as_list() != nullptr) {
      for (double number : Numbers(item)) numbers.push_back(number);
    } else {
      numbers.push_back(item.as_double() != nullptr ? *item.as_double() : static_cast<double>(*item.as_int()));
    }
  }
  return numbers;
}

std::string Floats(OnnxExportCall& call, const std::vector<double>& values) {
  const std::vector<float> floats(values.begin(), values.end());
  return call.Constant(Tensor::Of<float>({static_cast<int64_t>(floats.size())}, kFloat32, floats));
}

/// How Resize finds its sources.
Attrs ResizeAttributes(OnnxExportCall& call) {
  const Attrs& attrs = call.attrs();
  const std::string& method = attrs.String("method");
  const std::string& rounding = attrs.String("rounding_method");
  Attrs attributes{{"mode", method == "nearest_neighbor" ? "nearest" : method},
                   {"coordinate_transformation_mode", attrs.String("coordinate_transformation_mode")},
                   {"antialias", attrs.Bool("antialias") ? AttrValue(1) : AttrValue()}};
  if (attrs.Bool("antialias")) call.NeedsOpset(18);
  if (attrs.String("coordinate_transformation_mode") == "half_pixel_symmetric") call.NeedsOpset(19);
  if (method == "nearest_neighbor") {
    attributes.Set("nearest_mode", rounding.empty() || rounding == "round" ? "round_prefer_floor" : rounding);
  }
  if (method == "cubic") {
    attributes.Set("cubic_coeff_a", attrs.Double("cubic_alpha"));
    attributes.Set("exclude_outside", attrs.Int("cubic_exclude"));
  }
  return attributes;
}

/// The part of the data that is resized, of all dimensions; "" for everything.
std::string ResizedRegion(OnnxExportCall& call) {
  if (call.attrs().String("coordinate_transformation_mode") != "tf_crop_and_resize") return "";
  const std::vector<double> given = Numbers(call.attrs().Get("roi"));
  std::vector<double> all(static_cast<size_t>(call.Rank(0)), 0);
  std::vector<double> ends(all.size(), 1);
  for (size_t d = 0; d < given.size() / 2; ++d) {
    all[d + 2] = given[2 * d];
    ends[d + 2] = given[2 * d + 1];
  }
  all.insert(all.end(), ends.begin(), ends.end());
  return Floats(call, all);
}

OnnxExportRow Resize(int rank) {
  return [rank](OnnxExportCall& call) -> OnnxNames {
    call.Require("layout", rank == 1 ? "NCW" : rank == 2 ? "NCHW" : "NCDHW");
    const Attrs attributes = ResizeAttributes(call);
    const std::string region = ResizedRegion(call);
    const std::vector<double> scales = Numbers(call.attrs().Get("scales"));
    if (!scales.empty()) {
      std::vector<double> all{1, 1};
      all.insert(all.end(), scales.begin(), scales.end());
      return {call.Node("Resize", {call.Arg(0), region, Floats(call, all)}, attributes)};
    }
    const Shape shape = call.ShapeOf(0);
    V sizes{shape[0], shape[1]};
    for (int64_t size : call.attrs().Ints("size")) sizes.push_back(size);
    return {call.Node("Resize", {call.Arg(0), region, "", call.Ints(sizes)}, attributes)};
  };
}

/// To a size that is an argument: ONNX wants those of all dimensions.
OnnxNames DynamicResize(OnnxExportCall& call) {
  call.Require("layout", "NCHW");
  if (!Numbers(call.attrs().Get("scales")).empty()) call.Unsupported("scales beside a size that is computed");
  const std::string kept = call.Node("Shape", {call.Arg(0)}, {{"start", 0}, {"end", 2}});
  std::string size = call.Cast(call.Arg(1), call.DTypeOf(1), kInt64);
  if (call.ShapeOf(1) != Shape{2}) size = call.Node("Expand", {size, call.Ints({2})});
  const std::string sizes = call.Node("Concat", {kept, size}, {{"axis", 0}});
  return {call.Node("Resize", {call.Arg(0), ResizedRegion(call), "", sizes}, ResizeAttributes(call))};
}

OnnxNames GridSample(OnnxExportCall& call) {
  call.NeedsOpset(20);
  const int rank = call.Rank(0);
  call.Require("layout", rank == 5 ? "NCDHW" : "NCHW");
  // Coordinates are the second axis in Relay, the last in ONNX.
  V axes{0};
  for (int i = 2; i < rank; ++i) axes.push_back(i);
  axes.push_back(1);
  const std::string& method = call.attrs().String("method");
  return {call.Node("GridSample", {call.Arg(0), call.TransposedArg(1, axes)},
                    {{"mode", method == "bilinear"  ? "linear"
                              : method == "bicubic" ? "cubic"
                                                    : method},
                     {"padding_mode", call.attrs().String("padding_mode")},
                     {"align_corners", call.attrs().Bool("align_corners")}})};
}

/// Columns [begin, end) of the regions, [rows, 5]: the image's number, then two corners.
std::string Columns(OnnxExportCall& call, int64_t begin, int64_t end) {
  return call.Node("Slice", {call.Arg(1), call.Ints({begin}), call.Ints({end}), call.Ints({1})});
}

OnnxNames RoiAlign(OnnxExportCall& call) {
  const Attrs& attrs = call.attrs();
  call.Require("layout", "NCHW");
  const V size = attrs.Ints("pooled_size");
  const std::string images =
      call.Node("Cast", {call.Node("Squeeze", {Columns(call, 0, 1), call.Ints({1})})}, {{"to", OnnxTypeOf(kInt64)}});
  return {call.Node("RoiAlign", {call.Arg(0), Columns(call, 1, 5), images},
                    {{"output_height", size.at(0)},
                     {"output_width", size.at(1)},
                     {"sampling_ratio", std::max<int64_t>(attrs.Int("sample_ratio"), 0)},
                     {"spatial_scale", attrs.Double("spatial_scale")},
                     {"mode", attrs.String("mode")},
                     {"coordinate_transformation_mode", attrs.Bool("aligned") ? "half_pixel" : "output_half_pixel"}})};
}

OnnxNames RoiPool(OnnxExportCall& call) {
  call.Require("layout", "NCHW");
  return {call.Node(
      "MaxRoiPool", {call.Arg(0), call.Arg(1)},
      {{"pooled_shape", call.attrs().Ints("pooled_size")}, {"spatial_scale", call.attrs().Double("spatial_scale")}})};
}

/// ONNX gives the rows that count, Relay as many as there may be, zeros behind those that count, and how many do.
OnnxNames NonMaxSuppression(OnnxExportCall& call) {
  const auto one = [&](size_t i, DataType dtype) {
    return call.Reshape(call.Cast(call.Arg(i), call.DTypeOf(i), dtype), {1});
  };
  const std::string rows =
      call.Node("NonMaxSuppression", {call.Arg(0), call.Arg(1), one(2, kInt64), one(3, kFloat32), one(4, kFloat32)});
  const std::string count = call.Node("Shape", {rows}, {{"start", 0}, {"end", 1}});
  const TensorTypeNode& type = call.ResultType();
  if (!type.is_static()) call.Unsupported("a number of boxes that is known at run time only");
  const std::string missing = call.Node("Sub", {call.Ints({type.static_shape()[0]}), count});
  const std::string pads = call.Node("Concat", {call.Ints({0, 0}), missing, call.Ints({0})}, {{"axis", 0}});
  return {call.Node("Pad", {rows, pads}), count};
}

}  // namespace

void AddVisionRows(OnnxExportRows& rows) {
  for (int rank = 1; rank <= 3; ++rank) rows[fmt::format("image.resize{}d", rank)] = Resize(rank);
  rows["dyn.image.resize2d"] = DynamicResize;
  rows["image.grid_sample"] = GridSample;
  rows["vision.roi_align"] = RoiAlign;
  rows["vision.roi_pool"] = RoiPool;
  rows["vision.all_class_non_max_suppression"] = NonMaxSuppression;
}

}  // namespace collage
