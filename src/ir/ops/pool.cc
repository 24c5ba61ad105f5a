// pool.cc: windows over the spatial dimensions: pooling and resizing.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

Type PoolRelation(const OpCall& call, int rank) {
  const TensorTypeNode& data = TensorArg(call, 0, rank + 2);
  const V size = PerDimension(call.attrs.Ints("pool_size"), rank);
  const V strides = PerDimension(call.attrs.Ints("strides"), rank);
  const V dilation = PerDimension(call.attrs.Ints("dilation"), rank);
  const Padding padding = SpatialPadding(call.attrs, rank);
  std::vector<Dim> shape{data.shape()[0], data.shape()[1]};
  for (size_t d = 0; d < static_cast<size_t>(rank); ++d) {
    shape.push_back(WindowedDim(data.shape()[d + 2], size[d], strides[d], padding.before[d], padding.after[d],
                                dilation[d], call.attrs.Bool("ceil_mode")));
  }
  return TensorType(shape, data.dtype());
}

void PoolReference(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs, bool is_max) {
  const Tensor& x = inputs[0];
  const int rank = x.rank() - 2;
  const V size = PerDimension(attrs.Ints("pool_size"), rank);
  const V strides = PerDimension(attrs.Ints("strides"), rank);
  const V dilation = PerDimension(attrs.Ints("dilation"), rank);
  const Padding padding = SpatialPadding(attrs, rank);
  const bool count_pad = !is_max && attrs.Bool("count_include_pad");
  const Shape in(x.shape().begin() + 2, x.shape().end());
  const Shape out(outputs[0].shape().begin() + 2, outputs[0].shape().end());
  const V in_strides = Strides(in);
  InParallel(x.shape()[0] * x.shape()[1], [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      int64_t o = plane * NumElements(out);
      ForEachIndex(out, [&](const V& position) {
        double result = is_max ? -INFINITY : 0;
        int64_t count = 0;
        ForEachIndex(size, [&](const V& tap) {
          int64_t offset = 0;
          bool inside = true;
          bool counted = true;
          for (size_t d = 0; d < tap.size(); ++d) {
            const int64_t at = position[d] * strides[d] + tap[d] * dilation[d] - padding.before[d];
            inside = inside && at >= 0 && at < in[d];
            counted = counted && at < in[d] + padding.after[d];
            offset += at * in_strides[d];
          }
          if (inside || (count_pad && counted)) ++count;
          if (!inside) return;
          const double value = x.At(plane * NumElements(in) + offset);
          result = is_max ? std::max(result, value) : result + value;
        });
        outputs[0].Set(o++, is_max ? result : result / static_cast<double>(std::max<int64_t>(count, 1)));
      });
    }
  });
}

OpDef Pool(int rank, bool is_max) {
  OpDef op;
  op.name = fmt::format("nn.{}_pool{}d", is_max ? "max" : "avg", rank);
  op.doc = is_max ? "Largest element of each window." : "Mean of each window.";
  op.args = {"data"};
  const auto dims = static_cast<size_t>(rank);
  op.attrs = {{"pool_size", AttrKind::kInts, {}, "size of the window", true},
              {"strides", AttrKind::kInts, V(dims, 1), "step per dimension"},
              {"dilation", AttrKind::kInts, V(dims, 1), "distance of taps"},
              {"padding", AttrKind::kInts, V(dims, 0), "begins, then ends"},
              {"layout", AttrKind::kString, rank == 1 ? "NCW" : rank == 2 ? "NCHW" : "NCDHW", "order of dimensions"},
              {"out_layout", AttrKind::kString, "", "order of the result's dimensions"},
              {"ceil_mode", AttrKind::kBool, false, "whether a last, partial window counts"}};
  if (!is_max) op.attrs.push_back({"count_include_pad", AttrKind::kBool, false, "whether padding counts in the mean"});
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.layout_agnostic = true;
  op.relation = Relation([rank](const OpCall& call) { return PoolRelation(call, rank); });
  op.reference = [is_max](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    PoolReference(inputs, attrs, outputs, is_max);
  };
  if (rank == 2) {
    op.examples = {{{F32({1, 5, 13, 12})}, {{"pool_size", V{3, 3}}, {"strides", V{2, 2}}, {"padding", V{1, 1}}}},
                   {{F32({1, 16, 8, 8})}, {{"pool_size", V{2, 2}}, {"strides", V{2, 2}}}},
                   {{F32({1, 16, 7, 7})}, {{"pool_size", V{3, 3}}, {"padding", V{1, 1}}}}};
  }
  return op;
}

OpDef GlobalPool(int rank, bool is_max) {
  OpDef op;
  op.name = fmt::format("nn.global_{}_pool{}d", is_max ? "max" : "avg", rank);
  op.doc = is_max ? "Largest element of each channel." : "Mean of each channel.";
  op.args = {"data"};
  op.attrs = {{"layout", AttrKind::kString, rank == 1 ? "NCW" : rank == 2 ? "NCHW" : "NCDHW", "order of dimensions"}};
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.layout_agnostic = true;
  op.relation = Relation([rank](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0, rank + 2);
    std::vector<Dim> shape{data.shape()[0], data.shape()[1]};
    shape.resize(static_cast<size_t>(rank) + 2, Dim(1));
    return TensorType(shape, data.dtype());
  });
  op.reference = [is_max](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    const int64_t planes = outputs[0].num_elements();
    const int64_t pixels = inputs[0].num_elements() / planes;
    for (int64_t plane = 0; plane < planes; ++plane) {
      double result = is_max ? -INFINITY : 0;
      for (int64_t i = 0; i < pixels; ++i) {
        const double value = inputs[0].At(plane * pixels + i);
        result = is_max ? std::max(result, value) : result + value;
      }
      outputs[0].Set(plane, is_max ? result : result / static_cast<double>(pixels));
    }
  };
  if (rank == 2) op.examples = {{{F32({2, 19, 7, 7})}, {}}, {{F32({1, 32, 5, 9})}, {}}};
  return op;
}

// ---- resize ----

struct Resizer {
  std::string method, coordinates, rounding;
  double cubic_alpha;
  Shape in, out;
  std::vector<double> scales;

  Resizer(const Attrs& attrs, const Shape& in_shape, const Shape& out_shape)
      : method(attrs.String("method")),
        coordinates(attrs.String("coordinate_transformation_mode")),
        rounding(attrs.String("rounding_method")),
        cubic_alpha(attrs.Double("cubic_alpha")),
        in(in_shape.begin() + 2, in_shape.end()),
        out(out_shape.begin() + 2, out_shape.end()) {
    for (size_t d = 0; d < in.size(); ++d) scales.push_back(static_cast<double>(out[d]) / static_cast<double>(in[d]));
    if (const AttrValue::List* given = attrs.Get("scales").as_list()) {
      for (size_t d = 0; d < in.size() && d < given->size(); ++d) {
        if ((*given)[d].as_double() != nullptr) scales[d] = *(*given)[d].as_double();
      }
    }
  }

  /// The source coordinate of output position `o` in dimension `d`.
  double Source(size_t d, int64_t o) const {
    const auto x = static_cast<double>(o);
    if (coordinates == "asymmetric") return x / scales[d];
    if (coordinates == "align_corners") {
      return out[d] == 1 ? 0 : x * static_cast<double>(in[d] - 1) / static_cast<double>(out[d] - 1);
    }
    if (coordinates == "pytorch_half_pixel" && out[d] == 1) return 0;
    if (coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / scales[d];
    return (x + 0.5) / scales[d] - 0.5;
  }

  /// Source positions and weights that make output position `o` in dimension `d`.
  std::vector<std::pair<int64_t, double>> Taps(size_t d, int64_t o) const {
    const double x = Source(d, o);
    const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at, 0, in[d] - 1); };
    if (method == "nearest_neighbor") {
      double at = std::ceil(x - 0.5);  // round half down
      if (rounding == "floor") at = std::floor(x);
      if (rounding == "ceil") at = std::ceil(x);
      if (rounding == "round_prefer_ceil") at = std::floor(x + 0.5);
      return {{clamp(static_cast<int64_t>(at)), 1.0}};
    }
    const double base = std::floor(x);
    const double t = x - base;
    const auto first = static_cast<int64_t>(base);
    if (method == "linear") return {{clamp(first), 1 - t}, {clamp(first + 1), t}};
    const double a = cubic_alpha;
    const auto near = [a](double s) { return ((a + 2) * s - (a + 3)) * s * s + 1; };
    const auto far = [a](double s) { return ((a * s - 5 * a) * s + 8 * a) * s - 4 * a; };
    return {{clamp(first - 1), far(1 + t)}, {clamp(first), near(t)}, {clamp(first + 1), near(1 - t)},
            {clamp(first + 2), far(2 - t)}};
  }
};

void ResizeReference(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const Resizer resizer(attrs, x.shape(), outputs[0].shape());
  const V in_strides = Strides(resizer.in);
  const int64_t in_pixels = NumElements(resizer.in);
  int64_t o = 0;
  for (int64_t plane = 0; plane < x.shape()[0] * x.shape()[1]; ++plane) {
    ForEachIndex(resizer.out, [&](const V& position) {
      std::vector<std::pair<int64_t, double>> terms{{0, 1.0}};
      for (size_t d = 0; d < position.size(); ++d) {
        std::vector<std::pair<int64_t, double>> next;
        for (const auto& [at, weight] : resizer.Taps(d, position[d])) {
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

OpDef Resize(int rank) {
  OpDef op;
  op.name = fmt::format("image.resize{}d", rank);
  op.doc = "Resizes the spatial dimensions.";
  op.args = {"data"};
  op.attrs = {{"size", AttrKind::kInts, {}, "new spatial size", true},
              {"layout", AttrKind::kString, rank == 1 ? "NCW" : rank == 2 ? "NCHW" : "NCDHW", "order of dimensions"},
              {"method", AttrKind::kString, "linear", "nearest_neighbor, linear or cubic"},
              {"coordinate_transformation_mode", AttrKind::kString, "half_pixel",
               "half_pixel, pytorch_half_pixel, align_corners, asymmetric or tf_half_pixel_for_nn"},
              {"rounding_method", AttrKind::kString, "", "round (default), round_prefer_ceil, floor or ceil"},
              {"cubic_alpha", AttrKind::kDouble, -0.75, "coefficient of cubic interpolation"},
              {"scales", AttrKind::kAny, {}, "scales to compute coordinates with, instead of the ratio of sizes"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([rank](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0, rank + 2);
    std::vector<Dim> shape{data.shape()[0], data.shape()[1]};
    for (int64_t size : PerDimension(call.attrs.Ints("size"), rank)) shape.emplace_back(size);
    return TensorType(shape, data.dtype());
  });
  op.layout_agnostic = true;
  op.reference = ResizeReference;
  if (rank == 2) {
    op.examples = {{{F32({1, 3, 5, 7})}, {{"size", V{10, 14}}, {"method", "nearest_neighbor"},
                                          {"coordinate_transformation_mode", "asymmetric"}, {"rounding_method", "floor"}}},
                   {{F32({1, 16, 5, 7})}, {{"size", V{10, 21}}}}};
  }
  return op;
}

}  // namespace

void AddPoolOps(std::vector<OpDef>& rows) {
  for (int rank = 1; rank <= 3; ++rank) {
    for (bool is_max : {true, false}) {
      rows.push_back(Pool(rank, is_max));
      rows.push_back(GlobalPool(rank, is_max));
    }
    rows.push_back(Resize(rank));
  }
}

}  // namespace collage
