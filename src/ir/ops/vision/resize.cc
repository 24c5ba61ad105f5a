// resize.cc: resizing of the spatial dimensions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "collage/support/error.h"
#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;
using Taps = std::vector<std::pair<int64_t, double>>;

std::vector<double> Numbers(const AttrValue& value) {
  std::vector<double> numbers;
  if (value.as_list() == nullptr) return numbers;
  for (const AttrValue& item : *value.as_list()) {
    if (item.as_double() != nullptr) numbers.push_back(*item.as_double());
    if (item.as_int() != nullptr) numbers.push_back(static_cast<double>(*item.as_int()));
  }
  return numbers;
}

/// Which source pixels, with which weights, make each pixel of the result; one dimension is independent of the others.
class Resizer {
 public:
  Resizer(const Attrs& attrs, const Shape& in_shape, const Shape& out_shape)
      : in(in_shape.begin() + 2, in_shape.end()),
        out(out_shape.begin() + 2, out_shape.end()),
        method_(attrs.String("method")),
        coordinates_(attrs.String("coordinate_transformation_mode")),
        rounding_(attrs.String("rounding_method")),
        cubic_alpha_(attrs.Double("cubic_alpha")),
        exclude_(attrs.Int("cubic_exclude") != 0),
        antialias_(attrs.Bool("antialias")),
        scales_(Numbers(attrs.Get("scales"))) {
    if (scales_.size() != in.size()) {
      scales_.clear();
      for (size_t d = 0; d < in.size(); ++d)
        scales_.push_back(static_cast<double>(out[d]) / static_cast<double>(in[d]));
    }
    roi_.assign(in.size(), {0, 1});
    const AttrValue::List* roi = attrs.Get("roi").as_list();
    for (size_t d = 0; roi != nullptr && d < in.size() && d < roi->size(); ++d) {
      const std::vector<double> pair = Numbers((*roi)[d]);
      if (pair.size() == 2) roi_[d] = {pair[0], pair[1]};
    }
  }

  /// Source positions and weights of output position `o` in dimension `d`; none when it is outside the data, where the
  /// result is 0.
  Taps At(size_t d, int64_t o) const {
    const double x = Source(d, o);
    if (!std::isfinite(x))
      throw Error(ErrorCategory::kInput,
                  fmt::format("element {} of dimension {} comes from no finite position", o, d + 2));
    if (coordinates_ == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(in[d] - 1))) return {};
    if (method_ == "nearest_neighbor") return {{Clamped(d, Rounded(x)), 1.0}};
    const double stretch = antialias_ ? std::min(scales_[d], 1.0) : 1.0;
    // All that far outside reads the edge alone.
    const double widest = 2 * static_cast<double>(in[d]) + 4;
    const double reach = std::min((method_ == "linear" ? 1 : 2) / stretch, widest);
    const double centre = std::clamp(x, -widest, widest);
    const auto first = static_cast<int64_t>(std::floor(centre - reach)) + 1;
    const auto last = static_cast<int64_t>(std::ceil(centre + reach)) - 1;
    Taps taps;
    double sum = 0;
    for (int64_t at = first; at <= last; ++at) {
      if (exclude_ && (at < 0 || at >= in[d])) continue;
      const double weight = Weight((centre - static_cast<double>(at)) * stretch);
      taps.emplace_back(Clamped(d, at), weight);
      sum += weight;
    }
    if (exclude_ || antialias_) {
      for (auto& [at, weight] : taps) weight /= sum;
    }
    return taps;
  }

  Shape in, out;

 private:
  int64_t Clamped(size_t d, double at) const {
    return static_cast<int64_t>(std::clamp(at, 0.0, static_cast<double>(in[d] - 1)));
  }
  int64_t Clamped(size_t d, int64_t at) const { return std::clamp<int64_t>(at, 0, in[d] - 1); }

  /// The source coordinate of output position `o` in dimension `d`.
  double Source(size_t d, int64_t o) const {
    const auto x = static_cast<double>(o);
    const auto length = static_cast<double>(in[d]);
    const double result = scales_[d] * length;  // not always whole
    if (coordinates_ == "asymmetric") return x / scales_[d];
    if (coordinates_ == "align_corners") return result <= 1 ? 0 : x * (length - 1) / (result - 1);
    if (coordinates_ == "pytorch_half_pixel" && out[d] == 1) return method_ == "nearest_neighbor" ? 0 : -0.5;
    if (coordinates_ == "tf_half_pixel_for_nn") return (x + 0.5) / scales_[d];
    if (coordinates_ == "tf_crop_and_resize") {
      const auto [start, end] = roi_[d];
      if (out[d] == 1) return 0.5 * (start + end) * (length - 1);
      return start * (length - 1) + x * (end - start) * (length - 1) / (static_cast<double>(out[d]) - 1);
    }
    const double centred = (x + 0.5) / scales_[d] - 0.5;
    if (coordinates_ == "half_pixel_symmetric")
      return length / 2 * (1 - static_cast<double>(out[d]) / result) + centred;
    return centred;
  }

  double Rounded(double x) const {
    if (rounding_ == "floor") return std::floor(x);
    if (rounding_ == "ceil") return std::ceil(x);
    if (rounding_ == "round_prefer_ceil") return std::floor(x + 0.5);
    return std::ceil(x - 0.5);  // round half down
  }

  /// The filter at distance `x`.
  double Weight(double x) const {
    x = std::abs(x);
    if (method_ == "linear") return std::max(1 - x, 0.0);
    const double a = cubic_alpha_;
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
  }

  std::string method_, coordinates_, rounding_;
  double cubic_alpha_;
  bool exclude_, antialias_;
  std::vector<std::pair<double, double>> roi_;
  std::vector<double> scales_;
};

void ResizeReference(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const Resizer resizer(attrs, x.shape(), outputs[0].shape());
  const V in_strides = Strides(resizer.in);
  const int64_t in_pixels = NumElements(resizer.in);
  // Taps by dimension and position, equal for every plane.
  std::vector<std::vector<Taps>> taps(resizer.out.size());
  for (size_t d = 0; d < taps.size(); ++d) {
    for (int64_t o = 0; o < resizer.out[d]; ++o) taps[d].push_back(resizer.At(d, o));
  }
  int64_t o = 0;
  for (int64_t plane = 0; plane < x.shape()[0] * x.shape()[1]; ++plane) {
    ForEachIndex(resizer.out, [&](const V& position) {
      Taps terms{{0, 1.0}};
      for (size_t d = 0; d < position.size(); ++d) {
        Taps next;
        for (const auto& [at, weight] : taps[d][position[d]]) {
          for (const auto& [offset, factor] : terms) next.emplace_back(offset + at * in_strides[d], factor * weight);
        }
        terms = std::move(next);
      }
      double sum = 0;
      for (const auto& [offset, weight] : terms) sum += weight * x.At(plane * in_pixels + offset);
      outputs[0].Set(o++, sum);
    });
  }
}

/// TVM's form, all starts and then all ends, would be read wrongly where it counts.
void CheckRegion(const Attrs& attrs, int rank) {
  const AttrValue::List* roi = attrs.Get("roi").as_list();
  if (roi == nullptr || attrs.String("coordinate_transformation_mode") != "tf_crop_and_resize") return;
  const bool is_list_of_pairs =
      static_cast<int>(roi->size()) == rank && std::all_of(roi->begin(), roi->end(), [](const AttrValue& pair) {
        return pair.as_list() != nullptr && pair.as_list()->size() == 2;
      });
  if (!is_list_of_pairs) throw RelationFailure{"expects a roi of [start, end] per dimension"};
}

void CheckMode(const Attrs& attrs, const char* name, std::initializer_list<std::string_view> known) {
  const std::string& value = attrs.String(name);
  if (std::ranges::find(known, value) == known.end()) throw RelationFailure{fmt::format("has no {} '{}'", name, value)};
}

Type ResizeRelation(const OpCall& call, int rank) {
  CheckRegion(call.attrs, rank);
  CheckMode(call.attrs, "method", {"nearest_neighbor", "linear", "cubic"});
  CheckMode(call.attrs, "coordinate_transformation_mode",
            {"half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "align_corners", "asymmetric",
             "tf_half_pixel_for_nn", "tf_crop_and_resize"});
  for (double scale : Numbers(call.attrs.Get("scales"))) {
    if (!(scale > 0) || std::isinf(scale)) throw RelationFailure{fmt::format("expects scales above 0, got {}", scale)};
  }
  const TensorTypeNode& data = TensorArg(call, 0, rank + 2);
  std::vector<Dim> shape{data.shape()[0], data.shape()[1]};
  for (int64_t size : PerDimension(call.attrs.Ints("size"), rank)) {
    if (size < 0 || size > std::numeric_limits<int32_t>::max())
      throw RelationFailure{fmt::format("cannot resize to {} pixels", size)};
    if (data.shape()[shape.size()] == Dim(0) && size > 0) throw RelationFailure{"cannot make pixels from none"};
    shape.emplace_back(size);
  }
  return TensorType(shape, data.dtype());
}

OpDef Resize(int rank) {
  OpDef op;
  op.name = fmt::format("image.resize{}d", rank);
  op.doc = "Resizes the spatial dimensions.";
  op.args = {"data"};
  op.attrs = {
      {"size", AttrKind::kInts, {}, "new spatial size", true},
      {"layout", AttrKind::kString,
       rank == 1   ? "NCW"
       : rank == 2 ? "NCHW"
                   : "NCDHW",
       "order of dimensions"},
      {"method", AttrKind::kString, "linear", "nearest_neighbor, linear or cubic"},
      {"coordinate_transformation_mode", AttrKind::kString, "half_pixel",
       "half_pixel, pytorch_half_pixel, half_pixel_symmetric, align_corners, asymmetric, tf_half_pixel_for_nn or "
       "tf_crop_and_resize"},
      {"rounding_method", AttrKind::kString, "", "round (default), round_prefer_ceil, floor or ceil"},
      {"cubic_alpha", AttrKind::kDouble, -0.5, "coefficient of cubic interpolation"},
      {"cubic_exclude", AttrKind::kInt, 0, "whether taps outside the data are left out (and the others scaled up)"},
      {"antialias", AttrKind::kBool, false,
       "whether linear and cubic filters are stretched when the result is smaller"},
      {"roi", AttrKind::kAny, {}, "[start, end] per dimension of tf_crop_and_resize, as shares of the size"},
      {"scales", AttrKind::kAny, {}, "scales to compute coordinates with, instead of the ratio of sizes"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([rank](const OpCall& call) { return ResizeRelation(call, rank); });
  op.layout_agnostic = true;
  SetSpatial(op);
  op.reference = ResizeReference;
  if (rank == 2) {
    op.examples = {{{F32({1, 3, 5, 7})},
                    {{"size", V{10, 14}},
                     {"method", "nearest_neighbor"},
                     {"coordinate_transformation_mode", "asymmetric"},
                     {"rounding_method", "floor"}}},
                   {{F32({1, 16, 5, 7})}, {{"size", V{10, 21}}}}};
  }
  return op;
}

}  // namespace

void AddResizeOps(std::vector<OpDef>& rows) {
  for (int rank = 1; rank <= 3; ++rank) rows.push_back(Resize(rank));
}

}  // namespace collage
