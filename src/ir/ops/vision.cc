// vision.cc: regions, boxes and sampling grids.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

// ---- regions of interest: rows [batch index, x1, y1, x2, y2] ----

Type RegionRelation(const OpCall& call) {
  const TensorTypeNode& data = TensorArg(call, 0, 4);
  const TensorTypeNode& rois = TensorArg(call, 1, 2);
  if (rois.shape()[1] != Dim(5)) throw RelationFailure{"expects regions of 5 numbers, got " + ToString(call.args[1])};
  if (call.attrs.String("layout") != "NCHW")
    throw RelationFailure{"supports layout NCHW only, got " + call.attrs.String("layout")};
  const V size = PerDimension(call.attrs.Ints("pooled_size"), 2);
  return TensorType(std::vector<Dim>{rois.shape()[0], data.shape()[1], size[0], size[1]}, data.dtype());
}

/// The value of a plane between its pixels; 0 outside by more than a pixel.
double Bilinear(const Tensor& x, int64_t plane, int64_t height, int64_t width, double row, double column) {
  if (row < -1 || row > static_cast<double>(height) || column < -1 || column > static_cast<double>(width)) return 0;
  row = std::max(row, 0.0);
  column = std::max(column, 0.0);
  const int64_t r0 = std::min(static_cast<int64_t>(row), height - 1);
  const int64_t c0 = std::min(static_cast<int64_t>(column), width - 1);
  const int64_t r1 = std::min(r0 + 1, height - 1);
  const int64_t c1 = std::min(c0 + 1, width - 1);
  const double dr = r0 == height - 1 ? 0 : row - static_cast<double>(r0);
  const double dc = c0 == width - 1 ? 0 : column - static_cast<double>(c0);
  const auto at = [&](int64_t r, int64_t c) { return x.At((plane * height + r) * width + c); };
  return (1 - dr) * ((1 - dc) * at(r0, c0) + dc * at(r0, c1)) + dr * ((1 - dc) * at(r1, c0) + dc * at(r1, c1));
}

/// The largest of the four weighted corners, which is what `mode` max takes of a sample.
double BilinearMax(const Tensor& x, int64_t plane, int64_t height, int64_t width, double row, double column) {
  if (row < -1 || row > static_cast<double>(height) || column < -1 || column > static_cast<double>(width)) return 0;
  row = std::max(row, 0.0);
  column = std::max(column, 0.0);
  const int64_t r0 = std::min(static_cast<int64_t>(row), height - 1);
  const int64_t c0 = std::min(static_cast<int64_t>(column), width - 1);
  const int64_t r1 = std::min(r0 + 1, height - 1);
  const int64_t c1 = std::min(c0 + 1, width - 1);
  const double dr = r0 == height - 1 ? 0 : row - static_cast<double>(r0);
  const double dc = c0 == width - 1 ? 0 : column - static_cast<double>(c0);
  const auto at = [&](int64_t r, int64_t c) { return x.At((plane * height + r) * width + c); };
  return std::max(std::max((1 - dr) * (1 - dc) * at(r0, c0), (1 - dr) * dc * at(r0, c1)),
                  std::max(dr * (1 - dc) * at(r1, c0), dr * dc * at(r1, c1)));
}

void RoiAlignReference(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const Tensor& rois = inputs[1];
  const int64_t channels = x.shape()[1];
  const int64_t height = x.shape()[2];
  const int64_t width = x.shape()[3];
  const int64_t rows = outputs[0].shape()[2];
  const int64_t columns = outputs[0].shape()[3];
  const double scale = attrs.Double("spatial_scale");
  const bool aligned = attrs.Bool("aligned");
  const bool is_max = attrs.String("mode") == "max";
  const double shift = aligned ? 0.5 : 0;
  int64_t o = 0;
  for (int64_t r = 0; r < rois.shape()[0]; ++r) {
    const auto batch = static_cast<int64_t>(rois.At(r * 5));
    const double x1 = rois.At(r * 5 + 1) * scale - shift;
    const double y1 = rois.At(r * 5 + 2) * scale - shift;
    double roi_width = rois.At(r * 5 + 3) * scale - shift - x1;
    double roi_height = rois.At(r * 5 + 4) * scale - shift - y1;
    if (!aligned) {
      roi_width = std::max(roi_width, 1.0);
      roi_height = std::max(roi_height, 1.0);
    }
    const double bin_height = roi_height / static_cast<double>(rows);
    const double bin_width = roi_width / static_cast<double>(columns);
    const int64_t asked = attrs.Int("sample_ratio");
    const int64_t samples_y = asked > 0 ? asked : static_cast<int64_t>(std::ceil(bin_height));
    const int64_t samples_x = asked > 0 ? asked : static_cast<int64_t>(std::ceil(bin_width));
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t bin = 0; bin < rows * columns; ++bin) {
        double result = 0;
        for (int64_t s = 0; s < samples_y * samples_x; ++s) {
          const double dy = (static_cast<double>(s / samples_x) + 0.5) / static_cast<double>(samples_y);
          const double dx = (static_cast<double>(s % samples_x) + 0.5) / static_cast<double>(samples_x);
          const double row = y1 + (static_cast<double>(bin / columns) + dy) * bin_height;
          const double column = x1 + (static_cast<double>(bin % columns) + dx) * bin_width;
          const double value = is_max ? BilinearMax(x, batch * channels + c, height, width, row, column)
                                      : Bilinear(x, batch * channels + c, height, width, row, column);
          result = is_max ? (s == 0 ? value : std::max(result, value)) : result + value;
        }
        if (!is_max) result /= static_cast<double>(std::max<int64_t>(samples_y * samples_x, 1));
        outputs[0].Set(o++, result);
      }
    }
  }
}

OpDef RoiAlign() {
  OpDef op;
  op.name = "vision.roi_align";
  op.doc = "Regions of the data, sampled between pixels, as small images of one size.";
  op.args = {"data", "rois"};
  op.attrs = {
      {"pooled_size", AttrKind::kInts, {}, "height and width of the result", true},
      {"spatial_scale", AttrKind::kDouble, {}, "from the regions' coordinates to pixels", true},
      {"sample_ratio", AttrKind::kInt, -1, "samples per bin and dimension; below 1: as many as pixels"},
      {"layout", AttrKind::kString, "NCHW", "order of dimensions"},
      {"mode", AttrKind::kString, "avg", "avg or max of the samples"},
      {"aligned", AttrKind::kBool, false, "whether pixels are at half coordinates, and small regions stay small"}};
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.relation = Relation(RegionRelation);
  op.reference = RoiAlignReference;
  return op;
}

OpDef RoiPool() {
  OpDef op;
  op.name = "vision.roi_pool";
  op.doc = "Largest elements of the parts of regions, as small images of one size.";
  op.args = {"data", "rois"};
  op.attrs = {{"pooled_size", AttrKind::kInts, {}, "height and width of the result", true},
              {"spatial_scale", AttrKind::kDouble, {}, "from the regions' coordinates to pixels", true},
              {"layout", AttrKind::kString, "NCHW", "order of dimensions"}};
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.relation = Relation(RegionRelation);
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const Tensor& x = inputs[0];
    const Shape& s = x.shape();
    const double scale = attrs.Double("spatial_scale");
    ForEachIndex(outputs[0].shape(), [&, o = int64_t{0}](const V& i) mutable {
      const auto corner = [&](int64_t k) {
        return static_cast<int64_t>(std::round(inputs[1].At(i[0] * 5 + k) * scale));
      };
      const auto batch = static_cast<int64_t>(inputs[1].At(i[0] * 5));
      // Part `at` of `parts` equal ones of [first, last], within [0, size).
      const auto part = [](int64_t first, int64_t last, int64_t at, int64_t parts, int64_t size) {
        const double step = static_cast<double>(std::max<int64_t>(last - first + 1, 1)) / static_cast<double>(parts);
        const auto begin = static_cast<int64_t>(std::floor(static_cast<double>(at) * step)) + first;
        const auto end = static_cast<int64_t>(std::ceil(static_cast<double>(at + 1) * step)) + first;
        return std::pair{std::clamp<int64_t>(begin, 0, size), std::clamp<int64_t>(end, 0, size)};
      };
      const auto [r0, r1] = part(corner(2), corner(4), i[2], outputs[0].shape()[2], s[2]);
      const auto [c0, c1] = part(corner(1), corner(3), i[3], outputs[0].shape()[3], s[3]);
      double result = r0 < r1 && c0 < c1 ? -INFINITY : 0;
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t c = c0; c < c1; ++c)
          result = std::max(result, x.At(((batch * s[1] + i[1]) * s[2] + r) * s[3] + c));
      }
      outputs[0].Set(o++, result);
    });
  };
  return op;
}

// ---- boxes ----

using Box = std::array<double, 4>;  // low corner, high corner

double Overlap(const Box& a, const Box& b) {
  const double height = std::min(a[2], b[2]) - std::max(a[0], b[0]);
  const double width = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  if (height <= 0 || width <= 0) return 0;
  const auto area = [](const Box& box) { return (box[2] - box[0]) * (box[3] - box[1]); };
  return height * width / (area(a) + area(b) - height * width);
}

OpDef NonMaxSuppression() {
  OpDef op;
  op.name = "vision.all_class_non_max_suppression";
  op.doc =
      "Per batch and class, the boxes of highest score that overlap no box of higher score: rows [batch, class, box], "
      "and how many rows count.";
  op.args = {"boxes", "scores", "max_output_boxes_per_class", "iou_threshold", "score_threshold"};
  op.attrs = {{"output_format", AttrKind::kString, "onnx", "onnx is the only one"}};
  op.pattern = OpPatternKind::kOpaque;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& boxes = TensorArg(call, 0, 3);
    const TensorTypeNode& scores = TensorArg(call, 1, 3);
    if (boxes.shape()[2] != Dim(4)) throw RelationFailure{"expects boxes of 4 numbers, got " + ToString(call.args[0])};
    if (call.attrs.String("output_format") != "onnx") throw RelationFailure{"supports output_format onnx only"};
    Dim rows(1);
    for (Dim dim : {scores.shape()[0], scores.shape()[1], boxes.shape()[1]}) {
      rows = rows.is_any() || dim.is_any() ? Dim::Any() : Dim(rows.size() * dim.size());
    }
    return TupleType({TensorType(std::vector<Dim>{rows, 3}, kInt64), TensorType(Shape{1}, kInt64)});
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    const int64_t classes = inputs[1].shape()[1];
    const int64_t count = inputs[0].shape()[1];
    const auto most = static_cast<size_t>(std::max(0.0, inputs[2].At(0)));
    const double threshold = inputs[3].At(0);
    V rows;
    for (int64_t unit = 0; unit < inputs[1].shape()[0] * classes; ++unit) {
      const int64_t batch = unit / classes;
      const auto box = [&](int64_t i) {
        const auto at = [&](int64_t k) { return inputs[0].At((batch * count + i) * 4 + k); };
        return Box{std::min(at(0), at(2)), std::min(at(1), at(3)), std::max(at(0), at(2)), std::max(at(1), at(3))};
      };
      std::vector<std::pair<double, int64_t>> order;
      for (int64_t i = 0; i < count; ++i) {
        const double score = inputs[1].At(unit * count + i);
        if (score > inputs[4].At(0)) order.emplace_back(-score, i);
      }
      std::sort(order.begin(), order.end());
      std::vector<Box> kept;
      for (const auto& [score, i] : order) {
        if (kept.size() >= most) break;
        const Box candidate = box(i);
        if (std::any_of(kept.begin(), kept.end(),
                        [&](const Box& other) { return Overlap(candidate, other) > threshold; }))
          continue;
        kept.push_back(candidate);
        rows.insert(rows.end(), {batch, unit % classes, i});
      }
    }
    for (int64_t i = 0; i < outputs[0].num_elements(); ++i) {
      outputs[0].Set(i, i < static_cast<int64_t>(rows.size()) ? static_cast<double>(rows[static_cast<size_t>(i)]) : 0);
    }
    outputs[1].Set(0, static_cast<double>(rows.size() / 3));
  };
  return op;
}

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
    if (padding_ == "reflection") return x;
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
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0, 4);
    const TensorTypeNode& weight = TensorArg(call, 2, 4);
    const int64_t groups = call.attrs.Int("groups");
    const int64_t deformable = call.attrs.Int("deformable_groups");
    if (!data.is_static() || !weight.is_static()) throw RelationFailure{"expects static shapes"};
    const Shape d = data.static_shape();
    const Shape w = weight.static_shape();
    if (groups < 1 || d[1] != w[1] * groups || w[0] % groups != 0) {
      throw RelationFailure{
          fmt::format("{} groups do not fit {} and {}", groups, ToString(call.args[0]), ToString(call.args[2]))};
    }
    if (deformable < 1 || d[1] % deformable != 0)
      throw RelationFailure{fmt::format("{} groups of offsets do not fit {} channels", deformable, d[1])};
    const V strides = PerDimension(call.attrs.Ints("strides"), 2);
    const V dilation = PerDimension(call.attrs.Ints("dilation"), 2);
    const Padding padding = SpatialPadding(call.attrs, 2);
    std::vector<Dim> shape{Dim(d[0]), Dim(w[0])};
    for (size_t i = 0; i < 2; ++i) {
      shape.push_back(
          WindowedDim(Dim(d[i + 2]), w[i + 2], strides[i], padding.before[i], padding.after[i], dilation[i]));
    }
    const auto expect = [&](size_t argument, int64_t channels) {
      const std::vector<Dim> wanted{Dim(d[0]), Dim(channels), shape[2], shape[3]};
      if (TensorArg(call, argument, 4).shape() == wanted) return;
      throw RelationFailure{fmt::format("expects {} as argument {}, got {}", ToString(TensorType(wanted, data.dtype())),
                                        argument, ToString(call.args[argument]))};
    };
    expect(1, 2 * deformable * w[2] * w[3]);
    if (call.args.size() > 3) expect(3, deformable * w[2] * w[3]);
    return TensorType(shape, data.dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
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
            if (r < 0 || c < 0 || r >= static_cast<double>(d[2]) || c >= static_cast<double>(d[3])) continue;
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
  };
  return op;
}

}  // namespace

void AddVisionOps(std::vector<OpDef>& rows) {
  rows.push_back(RoiAlign());
  rows.push_back(RoiPool());
  rows.push_back(NonMaxSuppression());
  rows.push_back(GridSample());
  rows.push_back(DeformableConv());
}

}  // namespace collage
