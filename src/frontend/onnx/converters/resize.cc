// resize.cc: Resize and Upsample of ONNX, along any axes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "frontend/onnx/builders.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

/// Parameters of a Resize, one entry per axis in `axes`.
struct Request {
  V axes;
  Sizes sizes;
  std::vector<double> scales;  ///< empty: the ratios of the sizes
  std::vector<double> roi;     ///< starts, then ends; empty: everything
  Attrs attrs;
};

/// Returns places in `request.axes` of axes that are resized, ascending by axis; cropping changes those whose size
/// stays, too.
std::vector<size_t> ChangedAxes(const Sizes& shape, const Request& request) {
  std::vector<size_t> changed;
  for (size_t i = 0; i < request.axes.size(); ++i) {
    const bool same_scale = request.scales.empty() || request.scales[i] == 1;
    const bool whole = request.roi.empty() || (request.roi[i] == 0 && request.roi[i + request.axes.size()] == 1);
    const bool same_size = request.sizes[i] == shape[static_cast<size_t>(request.axes[i])];
    if (!same_size || !same_scale || !whole) changed.push_back(i);
  }
  std::ranges::sort(changed, {}, [&](size_t i) { return request.axes[i]; });
  return changed;
}

/// How often each pixel is repeated along each axis, where `size` is such a multiple of `from` and the nearest pixel is
/// the one that is repeated; empty where it is not.
V Repeats(const Sizes& from, const Sizes& size, const Request& request) {
  const std::string& coordinates = request.attrs.String("coordinate_transformation_mode");
  const std::string& rounding = request.attrs.String("rounding_method");
  const bool is_floor = coordinates == "asymmetric" && rounding == "floor";
  // Positions are off the middle of a pixel by less than a half.
  const bool is_round = coordinates.starts_with("half_pixel") && rounding.starts_with("round");
  if (request.attrs.String("method") != "nearest_neighbor" || !request.roi.empty() || (!is_floor && !is_round))
    return {};
  if (std::ranges::any_of(request.scales, [](double scale) { return scale != std::trunc(scale); })) return {};
  V repeats;
  for (size_t d = 0; d < size.size(); ++d) {
    const std::optional<SymbolicSize> times = SymbolicSize::DivideExactly(size[d], from[d + 2]);
    if (!times || !times->is_known() || times->known() < 1) return {};
    repeats.push_back(times->known());
  }
  return repeats;
}

/// Resizes the last axes of `x`, which are the axes `spatial` of data of `shape`; `size` becomes their sizes.
Expr ResizeImages(NodeContext& node, const Expr& x, const Sizes& shape, const V& spatial, const Request& request,
                  Sizes& size) {
  AttrValue::List scales;
  AttrValue::List roi;
  for (int64_t axis : spatial) {
    const auto at = static_cast<size_t>(std::ranges::find(request.axes, axis) - request.axes.begin());
    const bool asked = at < request.axes.size();
    size.push_back(asked ? request.sizes[at] : shape[static_cast<size_t>(axis)]);
    scales.emplace_back(asked && !request.scales.empty() ? request.scales[at] : 1.0);
    const bool cropped = asked && !request.roi.empty();
    roi.emplace_back(
        AttrValue::List{cropped ? request.roi[at] : 0.0, cropped ? request.roi[at + request.axes.size()] : 1.0});
  }
  Attrs attrs = request.attrs;
  if (!request.scales.empty()) attrs.Set("scales", std::move(scales));
  if (!request.roi.empty()) attrs.Set("roi", std::move(roi));
  if (size.is_known()) {
    attrs.Set("size", size.known());
    return node.Op(fmt::format("image.resize{}d", spatial.size()), {x}, std::move(attrs));
  }
  if (const V repeats = Repeats(node.SizesOf(x), size, request); !repeats.empty()) {
    Expr result = x;
    for (size_t d = 0; d < repeats.size(); ++d) {
      const auto axis = static_cast<int64_t>(d) + 2;
      if (repeats[d] > 1) result = node.Op("repeat", {result}, {{"repeats", repeats[d]}, {"axis", axis}});
    }
    return result;
  }
  if (spatial.size() != 2) node.NeedsSize("the sizes that it is resized to, " + size.ToString());
  const Sizes from = node.SizesOf(x);
  return node.WithSizes(node.Op("dyn.image.resize2d", {x, node.Compute(size)}, std::move(attrs)),
                        {from[0], from[1], size[0], size[1]});
}

/// Relay resizes spatial dimensions, the last ones of [N, C, …]: brings the axes that change there.
Expr ResizeAlong(NodeContext& node, const Expr& data, const Request& request) {
  const Sizes shape = node.SizesOf(data);
  const auto rank = static_cast<int64_t>(shape.size());
  const std::vector<size_t> changed = ChangedAxes(shape, request);
  if (changed.empty()) return data;
  if (changed.size() > 3) node.Unsupported(fmt::format("resizing {} dimensions at once", changed.size()));
  Sizes size;
  V spatial;
  // All spatial dimensions of an image, as usual, stay where they are.
  if (rank >= 3 && rank <= 5 && request.axes[changed[0]] >= 2) {
    for (int64_t axis = 2; axis < rank; ++axis) spatial.push_back(axis);
    return ResizeImages(node, data, shape, spatial, request, size);
  }
  for (size_t i : changed) spatial.push_back(request.axes[i]);
  V order;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (std::ranges::find(spatial, axis) == spatial.end()) order.push_back(axis);
  }
  const auto kept = static_cast<int64_t>(order.size());
  order.insert(order.end(), spatial.begin(), spatial.end());
  Sizes moved;
  for (int64_t axis : order) moved.push_back(shape[static_cast<size_t>(axis)]);
  Sizes flat{1, Sizes(moved.begin(), moved.begin() + kept).Product()};
  flat.insert(flat.end(), moved.begin() + kept, moved.end());
  Expr x = std::ranges::is_sorted(order) ? data : Transpose(node, data, order);
  x = ResizeImages(node, node.Reshape(x, flat), shape, spatial, request, size);
  std::copy(size.begin(), size.end(), moved.begin() + kept);
  x = node.Reshape(x, moved);
  V back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return std::ranges::is_sorted(order) ? x : Transpose(node, x, back);
}

Attrs MethodAttrs(NodeContext& node, const std::string& mode, const std::string& coordinates,
                  const std::string& nearest) {
  const std::string method = mode == "nearest" ? "nearest_neighbor" : mode == "bilinear" ? "linear" : mode;
  if (method != "nearest_neighbor" && method != "linear" && method != "cubic")
    node.Invalid("there is no mode '" + mode + "'");
  for (const char* known : {"half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "align_corners", "asymmetric",
                            "tf_half_pixel_for_nn", "tf_crop_and_resize"}) {
    if (coordinates != known) continue;
    const std::string rounding = nearest == "round_prefer_floor" ? "round" : nearest;
    return {{"method", method},
            {"coordinate_transformation_mode", coordinates},
            {"rounding_method", rounding},
            {"cubic_alpha", node.Float("cubic_coeff_a", -0.75)},
            {"cubic_exclude", node.Int("exclude_outside", 0)},
            {"antialias", node.Int("antialias", 0) != 0}};
  }
  node.Invalid("there is no coordinate transformation '" + coordinates + "'");
}

std::vector<double> Numbers(const Tensor& tensor) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) numbers.push_back(tensor.At(i));
  return numbers;
}

/// floor(size * scale).
SymbolicSize Scaled(NodeContext& node, const SymbolicSize& size, double scale) {
  if (!(scale > 0) || std::isinf(scale)) node.Invalid(fmt::format("cannot resize by {}", scale));
  if (size.is_known()) {
    const double scaled = std::floor(static_cast<double>(size.known()) * scale);
    if (!(scaled < 0x1p53)) node.Invalid(fmt::format("cannot resize {} by {}", size.known(), scale));
    return static_cast<int64_t>(scaled);
  }
  // As integers where the scale is a fraction of a power of two, which doubles multiply exactly.
  constexpr double kDenominator = 1 << 12;
  const double numerator = scale * kDenominator;
  if (numerator != std::trunc(numerator) || numerator < 1 || numerator > kDenominator * kDenominator) {
    node.NeedsSize(fmt::format("the size {} that it scales by {}", size.ToString(), scale));
  }
  return SymbolicSize::FloorDivide(size * SymbolicSize(static_cast<int64_t>(numerator)),
                                   static_cast<int64_t>(kDenominator));
}

Sizes ScaledSizes(NodeContext& node, const Sizes& shape, const V& axes, const std::vector<double>& scales) {
  Sizes sizes;
  for (size_t i = 0; i < axes.size(); ++i) {
    sizes.push_back(Scaled(node, shape[static_cast<size_t>(axes[i])], scales[i]));
  }
  return sizes;
}

/// Sizes asked for become ones of equal scale: the largest that do not exceed them, or the smallest that are no less.
void KeepAspectRatio(NodeContext& node, const Sizes& sizes, const std::string& policy, Request& request) {
  if (policy == "stretch") return;
  if (!sizes.is_known() || !request.sizes.is_known()) node.NeedsSize("the sizes whose ratio it keeps");
  const Shape shape = sizes.known();
  if (policy != "not_larger" && policy != "not_smaller")
    node.Invalid("there is no aspect ratio policy '" + policy + "'");
  double scale = 0;
  if (NumElements(shape) == 0) node.Invalid("there are no pixels to resize");
  for (size_t i = 0; i < request.axes.size(); ++i) {
    const double own = static_cast<double>(request.sizes[i].known()) /
                       static_cast<double>(shape[static_cast<size_t>(request.axes[i])]);
    scale = i == 0 ? own : policy == "not_larger" ? std::min(scale, own) : std::max(scale, own);
  }
  request.scales.assign(request.axes.size(), scale);
  for (size_t i = 0; i < request.axes.size(); ++i) {
    const double size = scale * static_cast<double>(shape[static_cast<size_t>(request.axes[i])]);
    if (!(size < 0x1p53)) node.Invalid(fmt::format("cannot resize by {}", scale));
    request.sizes[i] = static_cast<int64_t>(std::floor(size + 0.5));
  }
}

Results ConvertResize(NodeContext& node) {
  const Expr data = node.Input(0);
  const Sizes shape = node.SizesOf(data);
  const bool old = node.opset() < 11;
  Request request;
  request.axes = node.Ints("axes", {});
  if (request.axes.empty()) {
    for (int i = 0; i < node.Rank(data); ++i) request.axes.push_back(i);
  }
  for (int64_t& axis : request.axes) axis = NormalAxis(node, axis, node.Rank(data));
  if (std::set<int64_t>(request.axes.begin(), request.axes.end()).size() != request.axes.size())
    node.Invalid("an axis is resized twice");
  const size_t count = request.axes.size();
  const size_t scale_input = old ? 1 : 2;
  if (node.HasInput(scale_input) && NumElements(node.ShapeOf(node.Input(scale_input))) > 0) {
    request.scales = Numbers(node.Constant(scale_input));
    if (request.scales.size() != count)
      node.Invalid(fmt::format("{} scales for {} axes", request.scales.size(), count));
    request.sizes = ScaledSizes(node, shape, request.axes, request.scales);
  } else if (node.HasInput(3)) {
    request.sizes = node.SizeInts(3);
    if (request.sizes.size() != count) node.Invalid(fmt::format("{} sizes for {} axes", request.sizes.size(), count));
    KeepAspectRatio(node, shape, node.String("keep_aspect_ratio_policy", "stretch"), request);
  } else {
    node.Invalid("neither scales nor sizes are given");
  }
  for (const SymbolicSize& size : request.sizes) {
    if (size.is_known() && size.known() < 1) node.Invalid("cannot resize to " + request.sizes.ToString());
  }
  const std::string coordinates = old ? "asymmetric" : node.String("coordinate_transformation_mode", "half_pixel");
  const std::string nearest = old ? "floor" : node.String("nearest_mode", "round_prefer_floor");
  request.attrs = MethodAttrs(node, node.String("mode", "nearest"), coordinates, nearest);
  const bool crops = coordinates == "tf_crop_and_resize";
  if (crops) {
    request.roi = Numbers(node.Constant(1));
    if (request.roi.size() != 2 * count)
      node.Invalid(fmt::format("roi has {} numbers for {} axes, a start and an end for each are wanted",
                               request.roi.size(), count));
  }
  const Expr result = ResizeAlong(node, data, request);
  const double outside = node.Float("extrapolation_value", 0);
  if (!crops || outside == 0) return {result};
  // Resizing ones gives 0 at positions that read outside of the data.
  const Expr ones = ResizeAlong(node, node.Full(MakeScalar(1, kFloat32), shape), request);
  const Expr is_outside = node.Op("equal", {ones, node.ScalarLike(0, ones)});
  return {node.Op("where", {is_outside, node.ScalarLike(outside, result), result})};
}

Results ConvertUpsample(NodeContext& node) {
  const Sizes shape = node.SizesOf(node.Input(0));
  Request request;
  request.scales = node.HasInput(1) ? Numbers(node.Constant(1)) : node.Floats("scales");
  if (request.scales.size() != shape.size())
    node.Invalid(fmt::format("{} scales for data of rank {}", request.scales.size(), shape.size()));
  for (size_t i = 0; i < shape.size(); ++i) request.axes.push_back(static_cast<int64_t>(i));
  request.sizes = ScaledSizes(node, shape, request.axes, request.scales);
  for (const SymbolicSize& size : request.sizes) {
    if (size.is_known() && size.known() < 1) node.Invalid(fmt::format("cannot resize to {}", request.sizes.ToString()));
  }
  request.attrs = MethodAttrs(node, node.String("mode", "nearest"), "asymmetric", "floor");
  return {ResizeAlong(node, node.Input(0), request)};
}

}  // namespace

void AddResizeConverters(OnnxConverters& converters) {
  converters.Add("Resize", ConvertResize,
                 "X: [1..], roi?: float[0..1], scales?@11: float[0..1], sizes?@11: int[0..1] -> Y");
  converters.Add("Upsample", ConvertUpsample, "X: [1..], scales@9: float[0..1] -> Y");
}

}  // namespace collage
