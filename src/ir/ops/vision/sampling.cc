// sampling.cc: operators that read between elements, at coordinates that are data.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

// ---- grids ----

/// A coordinate folded back into [low, high] by reflection at its ends.
double Reflected(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  double distance = std::fmod(std::abs(x - low), 2 * range);
  if (distance > range) distance = 2 * range - distance;
  return low + distance;
}

/// Samples data [N, C, spatial…] at grid [N, rank, out spatial…], whose coordinates in [-1, 1] are innermost first.
class GridSampler {
 public:
  GridSampler(const Tensor& data, const Tensor& grid, const Attrs& attrs)
      : data_(data),
        grid_(grid),
        method_(attrs.String("method")),
        padding_(attrs.String("padding_mode")),
        align_(attrs.Bool("align_corners")),
        rank_(data.shape().size() - 2),
        in_(data.shape().begin() + 2, data.shape().end()),
        strides_(Strides(in_)) {}

  void Run(const Tensor& output) const {
    const Shape out(output.shape().begin() + 2, output.shape().end());
    const int64_t points = NumElements(out);
    const int64_t channels = data_.shape()[1];
    for (int64_t n = 0; n < data_.shape()[0]; ++n) {
      for (int64_t p = 0; p < points; ++p) {
        std::vector<double> at(rank_);
        for (size_t d = 0; d < rank_; ++d) {
          const auto k = static_cast<int64_t>(rank_ - 1 - d);
          at[d] = Pixel(grid_.At((n * static_cast<int64_t>(rank_) + k) * points + p), in_[d]);
        }
        for (int64_t c = 0; c < channels; ++c) {
          output.Set((n * channels + c) * points + p, Sample((n * channels + c) * NumElements(in_), at));
        }
      }
    }
  }

 private:
  double Pixel(double x, int64_t size) const {
    const auto n = static_cast<double>(size);
    return align_ ? (x + 1) / 2 * (n - 1) : ((x + 1) * n - 1) / 2;
  }

  /// The position that padding reads for `at` in dimension `d`; -1 for zero.
  int64_t Padded(int64_t at, size_t d) const {
    if (at >= 0 && at < in_[d]) return at;
    if (padding_ == "zeros") return -1;
    if (padding_ == "border") return std::clamp<int64_t>(at, 0, in_[d] - 1);
    const auto n = static_cast<double>(in_[d]);
    const double folded =
        align_ ? Reflected(static_cast<double>(at), 0, n - 1) : Reflected(static_cast<double>(at), -0.5, n - 0.5);
    return std::clamp<int64_t>(static_cast<int64_t>(folded), 0, in_[d] - 1);
  }

  /// Positions and weights in one dimension.
  std::vector<std::pair<int64_t, double>> Taps(double x) const {
    const auto floor = static_cast<int64_t>(std::floor(x));
    const double t = x - static_cast<double>(floor);
    if (method_ == "nearest") return {{static_cast<int64_t>(std::nearbyint(x)), 1}};
    if (method_ == "bilinear") return {{floor, 1 - t}, {floor + 1, t}};
    constexpr double kA = -0.75;
    const auto near = [](double s) { return ((kA + 2) * s - (kA + 3)) * s * s + 1; };
    const auto far = [](double s) { return ((kA * s - 5 * kA) * s + 8 * kA) * s - 4 * kA; };
    return {{floor - 1, far(t + 1)}, {floor, near(t)}, {floor + 1, near(1 - t)}, {floor + 2, far(2 - t)}};
  }

  double Sample(int64_t plane, const std::vector<double>& at) const {
    std::vector<std::pair<int64_t, double>> terms{{plane, 1.0}};
    for (size_t d = 0; d < rank_; ++d) {
      std::vector<std::pair<int64_t, double>> next;
      for (const auto& [position, weight] : Taps(Bounded(at[d], d))) {
        const int64_t padded = Padded(position, d);
        if (padded < 0) continue;
        for (const auto& [offset, factor] : terms) next.emplace_back(offset + padded * strides_[d], factor * weight);
      }
      terms = std::move(next);
    }
    double sum = 0;
    for (const auto& [offset, weight] : terms) sum += weight * data_.At(offset);
    return sum;
  }

  /// A finite coordinate not so far out that it overflows an integer; all that far reads the same.
  double Bounded(double x, size_t d) const {
    if (std::isnan(x)) return -1;
    if (padding_ == "reflection") return std::clamp(x, -0x1p40, 0x1p40);
    return std::clamp(x, -8.0, static_cast<double>(in_[d]) + 8);
  }

  const Tensor& data_;
  const Tensor& grid_;
  std::string method_, padding_;
  bool align_;
  size_t rank_;
  Shape in_;
  V strides_;
};

OpDef GridSample() {
  OpDef op;
  op.name = "image.grid_sample";
  op.doc =
      "Samples data [N, C, H, W] (or [N, C, D, H, W]) at the coordinates of a grid [N, 2, h, w] ([N, 3, d, h, w]), x "
      "first.";
  op.args = {"data", "grid"};
  op.attrs = {{"method", AttrKind::kString, "bilinear", "nearest, bilinear or bicubic"},
              {"layout", AttrKind::kString, "NCHW", "order of dimensions"},
              {"padding_mode", AttrKind::kString, "zeros", "zeros, border or reflection"},
              {"align_corners", AttrKind::kBool, true, "whether -1 and 1 are the centres of the outermost pixels"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0);
    if (data.rank() != 4 && data.rank() != 5)
      throw RelationFailure{"expects data of 4 or 5 dimensions, got " + ToString(call.args[0])};
    const TensorTypeNode& grid = TensorArg(call, 1, data.rank());
    if (!MayEqual(data.shape()[0], grid.shape()[0])) {
      throw RelationFailure{
          fmt::format("expects a grid per batch, got {} and {}", ToString(call.args[0]), ToString(call.args[1]))};
    }
    for (size_t d = 2; d < data.shape().size(); ++d) {
      if (data.shape()[d] == Dim(0)) throw RelationFailure{"has no pixels, got " + ToString(call.args[0])};
    }
    if (grid.shape()[1] != Dim(data.rank() - 2)) {
      throw RelationFailure{
          fmt::format("expects {} coordinates per point, got {}", data.rank() - 2, ToString(call.args[1]))};
    }
    const auto check = [&](const char* attr, std::initializer_list<const char*> known) {
      const std::string& value = call.attrs.String(attr);
      if (std::find(known.begin(), known.end(), value) == known.end()) {
        throw RelationFailure{fmt::format("has no {} '{}'", attr, value)};
      }
    };
    check("method", {"nearest", "bilinear", "bicubic"});
    check("padding_mode", {"zeros", "border", "reflection"});
    std::vector<Dim> shape{data.shape()[0], data.shape()[1]};
    shape.insert(shape.end(), grid.shape().begin() + 2, grid.shape().end());
    return TensorType(shape, data.dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    GridSampler(inputs[0], inputs[1], attrs).Run(outputs[0]);
  };
  op.examples = {{{F32({1, 3, 5, 6}), F32({1, 2, 4, 7})}, {}}};
  return op;
}

// ---- deformable convolution ----

Type DeformableConvRelation(const OpCall& call) {
  const TensorTypeNode& data = TensorArg(call, 0, 4);
  const TensorTypeNode& weight = TensorArg(call, 2, 4);
  const int64_t groups = call.attrs.Int("groups");
  const int64_t deformable = call.attrs.Int("deformable_groups");
  if (!data.is_static() || !weight.is_static()) throw RelationFailure{"expects static shapes"};
  const Shape d = data.static_shape();
  const Shape w = weight.static_shape();
  if (groups < 1 || groups > std::max<int64_t>(d[1], 1) || d[1] != w[1] * groups || w[0] % groups != 0) {
    throw RelationFailure{
        fmt::format("{} groups do not fit {} and {}", groups, ToString(call.args[0]), ToString(call.args[2]))};
  }
  if (deformable < 1 || deformable > std::max<int64_t>(d[1], 1) || d[1] % deformable != 0)
    throw RelationFailure{fmt::format("{} groups of offsets do not fit {} channels", deformable, d[1])};
  const V strides = PerDimension(call.attrs.Ints("strides"), 2);
  const V dilation = PerDimension(call.attrs.Ints("dilation"), 2);
  const Padding padding = SpatialPadding(call.attrs, 2);
  std::vector<Dim> shape{Dim(d[0]), Dim(w[0])};
  for (size_t i = 0; i < 2; ++i) {
    shape.push_back(WindowedDim(Dim(d[i + 2]), w[i + 2], strides[i], padding.before[i], padding.after[i], dilation[i]));
  }
  const auto expect = [&](size_t argument, int64_t channels) {
    const std::vector<Dim> wanted{Dim(d[0]), Dim(channels), shape[2], shape[3]};
    if (TensorArg(call, argument, 4).shape() == wanted) return;
    throw RelationFailure{fmt::format("expects {} as argument {}, got {}", ToString(TensorType(wanted, data.dtype())),
                                      argument, ToString(call.args[argument]))};
  };
  const Dim taps = Times(Times(w[2], w[3]), deformable);
  expect(1, Times(taps, 2).size());
  if (call.args.size() > 3) expect(3, taps.size());
  return TensorType(shape, data.dtype());
}

void DeformableConvReference(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Shape d = inputs[0].shape();
  const Shape w = inputs[2].shape();
  const V strides = PerDimension(attrs.Ints("strides"), 2);
  const V dilation = PerDimension(attrs.Ints("dilation"), 2);
  const Padding padding = SpatialPadding(attrs, 2);
  const int64_t deformable = attrs.Int("deformable_groups");
  const int64_t taps = w[2] * w[3];
  const int64_t group_out = w[0] / attrs.Int("groups");
  const int64_t points = outputs[0].shape()[2] * outputs[0].shape()[3];
  ForEachIndex(outputs[0].shape(), [&, o = int64_t{0}](const V& i) mutable {
    const int64_t point = i[2] * outputs[0].shape()[3] + i[3];
    double sum = 0;
    for (int64_t g = 0; g < w[1]; ++g) {
      const int64_t channel = i[1] / group_out * w[1] + g;
      const int64_t offsets = i[0] * deformable + channel / (d[1] / deformable);
      for (int64_t tap = 0; tap < taps; ++tap) {
        const double dy = inputs[1].At(((offsets * taps + tap) * 2) * points + point);
        const double dx = inputs[1].At(((offsets * taps + tap) * 2 + 1) * points + point);
        const double row = static_cast<double>(i[2] * strides[0] - padding.before[0] + tap / w[3] * dilation[0]) + dy;
        const double column =
            static_cast<double>(i[3] * strides[1] - padding.before[1] + tap % w[3] * dilation[1]) + dx;
        // Between pixels, with zeros around the data.
        double value = 0;
        for (int64_t corner = 0; corner < 4; ++corner) {
          const double r = std::floor(row) + static_cast<double>(corner / 2);
          const double c = std::floor(column) + static_cast<double>(corner % 2);
          // If an offset is NaN, neither holds.
          const bool is_inside = r >= 0 && c >= 0 && r < static_cast<double>(d[2]) && c < static_cast<double>(d[3]);
          if (!is_inside) continue;
          const double weight = (1 - std::abs(row - r)) * (1 - std::abs(column - c));
          value += weight * inputs[0].At(((i[0] * d[1] + channel) * d[2] + static_cast<int64_t>(r)) * d[3] +
                                         static_cast<int64_t>(c));
        }
        if (inputs.size() > 3) value *= inputs[3].At((offsets * taps + tap) * points + point);
        sum += value * inputs[2].At((i[1] * w[1] + g) * taps + tap);
      }
    }
    outputs[0].Set(o++, sum);
  });
}

OpDef DeformableConv() {
  OpDef op;
  op.name = "nn.deformable_conv2d";
  op.doc =
      "Convolution whose taps are moved by offsets [N, 2 * groups * taps, h, w] (y, x) and, if given, scaled by a "
      "mask.";
  op.args = {"data", "offset", "weight", "mask"};
  op.min_args = 3;
  op.attrs = {{"strides", AttrKind::kInts, V{1, 1}, "step per dimension"},
              {"padding", AttrKind::kInts, V{0, 0}, "begins, then ends"},
              {"dilation", AttrKind::kInts, V{1, 1}, "distance of taps"},
              {"deformable_groups", AttrKind::kInt, 1, "groups of channels that share offsets"},
              {"groups", AttrKind::kInt, 1, "independent groups of channels"},
              {"channels", AttrKind::kInt, {}, "output channels; None: from the weight"},
              {"kernel_size", AttrKind::kInts, {}, "None: from the weight"},
              {"data_layout", AttrKind::kString, "NCHW", "order of the data's dimensions"},
              {"kernel_layout", AttrKind::kString, "OIHW", "order of the weight's dimensions"},
              {"out_layout", AttrKind::kString, "", "order of the result's dimensions"},
              {"out_dtype", AttrKind::kDType, "", "dtype of the result; empty: the data's"}};
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.relation = Relation(DeformableConvRelation);
  op.reference = DeformableConvReference;
  return op;
}

}  // namespace

void AddSamplingOps(std::vector<OpDef>& rows) {
  rows.push_back(GridSample());
  rows.push_back(DeformableConv());
}

}  // namespace collage
