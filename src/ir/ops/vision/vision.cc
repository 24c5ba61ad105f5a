// vision.cc: regions of interest and boxes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "collage/support/error.h"
#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"

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
  for (size_t d : {size_t{2}, size_t{3}}) {
    if (data.shape()[d] == Dim(0)) throw RelationFailure{"has no pixels, got " + ToString(call.args[0])};
  }
  const V size = PerDimension(call.attrs.Ints("pooled_size"), 2);
  CheckRange("pooled_size", size, 1);
  return TensorType(std::vector<Dim>{rois.shape()[0], data.shape()[1], size[0], size[1]}, data.dtype());
}

/// The image that region `r` is of. It comes with the data, so a wrong one is the input's fault.
int64_t BatchOf(const Tensor& rois, int64_t r, int64_t batches) {
  const double batch = rois.At(r * 5);
  if (batch >= 0 && batch < static_cast<double>(batches)) return static_cast<int64_t>(batch);
  throw Error(ErrorCategory::kInput,
              fmt::format("region {} is of image {}, the data has {} images", r, batch, batches));
}

/// The four pixels around a point of a plane and what each counts, one row after the other; all count nothing when the
/// point is more than a pixel outside.
struct Corners {
  std::array<double, 4> values{};
  std::array<double, 4> weights{};

  Corners(const Tensor& x, int64_t plane, int64_t height, int64_t width, double row, double column) {
    const bool is_near = row >= -1 && row <= static_cast<double>(height) && column >= -1 &&
                         column <= static_cast<double>(width);  // false where one is no number
    if (!is_near) return;
    row = std::max(row, 0.0);
    column = std::max(column, 0.0);
    const int64_t r0 = std::min(static_cast<int64_t>(row), height - 1);
    const int64_t c0 = std::min(static_cast<int64_t>(column), width - 1);
    const int64_t r1 = std::min(r0 + 1, height - 1);
    const int64_t c1 = std::min(c0 + 1, width - 1);
    const double dr = r0 == height - 1 ? 0 : row - static_cast<double>(r0);
    const double dc = c0 == width - 1 ? 0 : column - static_cast<double>(c0);
    const auto at = [&](int64_t r, int64_t c) { return x.At((plane * height + r) * width + c); };
    values = {at(r0, c0), at(r0, c1), at(r1, c0), at(r1, c1)};
    weights = {(1 - dr) * (1 - dc), (1 - dr) * dc, dr * (1 - dc), dr * dc};
  }

  /// The value between the pixels.
  double Sum() const {
    double sum = 0;
    for (size_t i = 0; i < 4; ++i) sum += weights[i] * values[i];
    return sum;
  }

  /// The largest weighted corner, which is what `mode` max takes of a sample.
  double Max() const {
    double largest = weights[0] * values[0];
    for (size_t i = 1; i < 4; ++i) largest = std::max(largest, weights[i] * values[i]);
    return largest;
  }
};

// Per dimension of an element of the result: an image that large would not be in memory.
constexpr double kMostSamples = 1 << 12;

/// The bins of a region, and how many samples each has in both dimensions.
struct RegionBins {
  double y, x;           ///< where the region begins
  double height, width;  ///< of a bin
  int64_t samples_y, samples_x;

  RegionBins(const Tensor& rois, int64_t r, const Attrs& attrs, int64_t rows, int64_t columns) {
    const double scale = attrs.Double("spatial_scale");
    const bool aligned = attrs.Bool("aligned");
    const double shift = aligned ? 0.5 : 0;
    x = rois.At(r * 5 + 1) * scale - shift;
    y = rois.At(r * 5 + 2) * scale - shift;
    double roi_width = rois.At(r * 5 + 3) * scale - shift - x;
    double roi_height = rois.At(r * 5 + 4) * scale - shift - y;
    if (!aligned) {
      roi_width = std::max(roi_width, 1.0);
      roi_height = std::max(roi_height, 1.0);
    }
    height = roi_height / static_cast<double>(rows);
    width = roi_width / static_cast<double>(columns);
    const int64_t asked = attrs.Int("sample_ratio");
    // A region that ends before it begins has no pixels.
    const auto samples_of = [&](double bin) {
      if (asked > 0) return asked;
      if (std::abs(bin) < kMostSamples) return std::max<int64_t>(static_cast<int64_t>(std::ceil(bin)), 0);
      throw Error(ErrorCategory::kInput,
                  fmt::format("region {} has {} pixels per element of the result, too many to sample", r, bin));
    };
    samples_y = samples_of(height);
    samples_x = samples_of(width);
  }
};

void RoiAlignReference(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const int64_t channels = x.shape()[1];
  const int64_t rows = outputs[0].shape()[2];
  const int64_t columns = outputs[0].shape()[3];
  const bool is_max = attrs.String("mode") == "max";
  int64_t o = 0;
  for (int64_t r = 0; r < inputs[1].shape()[0]; ++r) {
    const int64_t batch = BatchOf(inputs[1], r, x.shape()[0]);
    const RegionBins bins(inputs[1], r, attrs, rows, columns);
    const int64_t samples = bins.samples_y * bins.samples_x;
    for (int64_t i = 0; i < channels * rows * columns; ++i) {
      const int64_t plane = batch * channels + i / (rows * columns);
      const int64_t bin = i % (rows * columns);
      double result = 0;
      for (int64_t s = 0; s < samples; ++s) {
        const double dy = (static_cast<double>(s / bins.samples_x) + 0.5) / static_cast<double>(bins.samples_y);
        const double dx = (static_cast<double>(s % bins.samples_x) + 0.5) / static_cast<double>(bins.samples_x);
        const double row = bins.y + (static_cast<double>(bin / columns) + dy) * bins.height;
        const double column = bins.x + (static_cast<double>(bin % columns) + dx) * bins.width;
        const Corners corners(x, plane, x.shape()[2], x.shape()[3], row, column);
        if (!is_max) {
          result += corners.Sum();
        } else {
          result = s == 0 ? corners.Max() : std::max(result, corners.Max());
        }
      }
      if (!is_max) result /= static_cast<double>(std::max<int64_t>(samples, 1));
      outputs[0].Set(o++, result);
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
  op.relation = Relation([](const OpCall& call) {
    const int64_t samples = call.attrs.Int("sample_ratio");
    if (static_cast<double>(samples) > kMostSamples)
      throw RelationFailure{fmt::format("expects a sample_ratio up to {}, got {}", kMostSamples, samples)};
    return RegionRelation(call);
  });
  op.reference = RoiAlignReference;
  return op;
}

OpDef RoiPool() {
  OpDef op;
  op.name = "vision.roi_pool";
  op.spatial = true;
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
      // All that far outside of the image is the same.
      const auto corner = [&](int64_t k) {
        const double at = inputs[1].At(i[0] * 5 + k) * scale;
        return std::isnan(at) ? 0 : static_cast<int64_t>(std::round(std::clamp(at, -0x1p40, 0x1p40)));
      };
      const int64_t batch = BatchOf(inputs[1], i[0], s[0]);
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

void NonMaxSuppressionReference(std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
  const int64_t classes = inputs[1].shape()[1];
  const int64_t count = inputs[0].shape()[1];
  const auto most = static_cast<size_t>(std::clamp(inputs[2].At(0), 0.0, static_cast<double>(count)));
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
    outputs[0].Set(i, i < static_cast<int64_t>(rows.size()) ? static_cast<double>(rows[i]) : 0);
  }
  outputs[1].Set(0, static_cast<double>(rows.size() / 3));
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
    if (!MayEqual(boxes.shape()[0], scores.shape()[0]) || !MayEqual(boxes.shape()[1], scores.shape()[2])) {
      throw RelationFailure{fmt::format("expects a score per box, class and batch, got {} and {}",
                                        ToString(call.args[0]), ToString(call.args[1]))};
    }
    for (size_t i : {size_t{2}, size_t{3}, size_t{4}}) TensorArg(call, i, 0);
    const Dim rows = Times(Times(scores.shape()[0], scores.shape()[1]), boxes.shape()[1]);
    return TupleType({TensorType(std::vector<Dim>{rows, 3}, kInt64), TensorType(Shape{1}, kInt64)});
  });
  op.reference = NonMaxSuppressionReference;
  return op;
}

}  // namespace

void AddVisionOps(std::vector<OpDef>& rows) {
  rows.push_back(RoiAlign());
  rows.push_back(RoiPool());
  rows.push_back(NonMaxSuppression());
}

}  // namespace collage
