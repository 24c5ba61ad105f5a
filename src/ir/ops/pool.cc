// pool.cc: windows over the spatial dimensions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"

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

/// Taps [begin, end) of a window, the first at `start`, which lie in [0, length).
struct TapRange {
  int64_t start, begin, end;

  TapRange(int64_t first, int64_t size, int64_t dilation, int64_t length) : start(first) {
    begin = std::min(start >= 0 ? 0 : (-start - 1) / dilation + 1, size);
    end = std::clamp(start >= length ? 0 : (length - start - 1) / dilation + 1, begin, size);
  }
};

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
        int64_t count = 1;
        int64_t first = plane * NumElements(in);
        Shape inside;
        for (size_t d = 0; d < in.size(); ++d) {
          const TapRange taps(position[d] * strides[d] - padding.before[d], size[d], dilation[d], in[d]);
          const int64_t padded = TapRange(taps.start, size[d], dilation[d], in[d] + padding.after[d]).end;
          count *= count_pad ? padded : taps.end - taps.begin;
          first += (taps.start + taps.begin * dilation[d]) * in_strides[d];
          inside.push_back(taps.end - taps.begin);
        }
        ForEachIndex(inside, [&](const V& tap) {
          int64_t offset = first;
          for (size_t d = 0; d < tap.size(); ++d) offset += tap[d] * dilation[d] * in_strides[d];
          const double value = x.At(offset);
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
              {"layout", AttrKind::kString,
               rank == 1   ? "NCW"
               : rank == 2 ? "NCHW"
                           : "NCDHW",
               "order of dimensions"},
              {"out_layout", AttrKind::kString, "", "order of the result's dimensions"},
              {"ceil_mode", AttrKind::kBool, false, "whether a last, partial window counts"}};
  if (!is_max) op.attrs.push_back({"count_include_pad", AttrKind::kBool, false, "whether padding counts in the mean"});
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.layout_agnostic = true;
  SetSpatial(op);
  op.is_exact = is_max;
  op.equal_dims = PoolDims;
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
  SetSpatial(op);
  op.is_exact = is_max;
  op.equal_dims = GlobalPoolDims;
  op.relation = Relation([rank](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0, rank + 2);
    std::vector<Dim> shape{data.shape()[0], data.shape()[1]};
    shape.resize(static_cast<size_t>(rank) + 2, Dim(1));
    return TensorType(shape, data.dtype());
  });
  op.reference = [is_max](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    const int64_t planes = outputs[0].num_elements();
    const int64_t pixels = inputs[0].num_elements() / std::max<int64_t>(planes, 1);
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

void MaxPoolIndicesReference(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs, int rank) {
  const Tensor& x = inputs[0];
  const V size = PerDimension(attrs.Ints("pool_size"), rank);
  const V strides = PerDimension(attrs.Ints("strides"), rank);
  const V dilation = PerDimension(attrs.Ints("dilation"), rank);
  const Padding padding = SpatialPadding(attrs, rank);
  const Shape in(x.shape().begin() + 2, x.shape().end());
  const V in_strides = Strides(in);
  V counted = in_strides;
  if (attrs.Bool("column_major")) {
    int64_t step = 1;
    for (size_t d = 0; d < counted.size(); ++d, step *= in[d - 1]) counted[d] = step;
  }
  int64_t o = 0;
  ForEachIndex(outputs[0].shape(), [&](const V& position) {
    const int64_t plane = (position[0] * x.shape()[1] + position[1]) * NumElements(in);
    double best = -INFINITY;
    int64_t where = -1;
    V first;
    Shape inside;
    for (size_t d = 0; d < in.size(); ++d) {
      const TapRange taps(position[d + 2] * strides[d] - padding.before[d], size[d], dilation[d], in[d]);
      first.push_back(taps.start + taps.begin * dilation[d]);
      inside.push_back(taps.end - taps.begin);
    }
    ForEachIndex(inside, [&](const V& tap) {
      int64_t from = 0;
      int64_t index = 0;
      for (size_t d = 0; d < tap.size(); ++d) {
        const int64_t at = first[d] + tap[d] * dilation[d];
        from += at * in_strides[d];
        index += at * counted[d];
      }
      const double value = x.At(plane + from);
      if (where >= 0 && !(value > best)) return;
      best = value;
      where = plane + index;
    });
    outputs[0].data<int64_t>()[o++] = where;
  });
}

/// The position of each window's largest element: an index into the whole data, whose spatial dimensions may be counted
/// in column-major order.
OpDef MaxPoolIndices(int rank) {
  OpDef op = Pool(rank, /*is_max=*/true);
  op.name = fmt::format("nn.max_pool{}d_indices", rank);
  op.doc = "Where in the data the largest element of each window is.";
  op.attrs.push_back(
      {"column_major", AttrKind::kBool, false, "whether the last spatial dimension is counted as the outermost"});
  op.layout_agnostic = false;
  op.pattern = OpPatternKind::kOpaque;
  op.is_exact = false;
  op.keeps_rows = nullptr;  // indices count from the first sample on
  op.relation = Relation(
      [rank](const OpCall& call) { return TensorType(AsTensorType(PoolRelation(call, rank))->shape(), kInt64); });
  op.reference = [rank](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    MaxPoolIndicesReference(inputs, attrs, outputs, rank);
  };
  return op;
}

/// Pools whose windows divide the data in as many parts as the result has pixels.
OpDef AdaptivePool(bool is_max) {
  OpDef op;
  op.name = is_max ? "nn.adaptive_max_pool2d" : "nn.adaptive_avg_pool2d";
  op.doc = is_max ? "Largest element of each part." : "Mean of each part.";
  op.args = {"data"};
  op.attrs = {{"output_size", AttrKind::kInts, {}, "height and width of the result", true},
              {"layout", AttrKind::kString, "NCHW", "order of dimensions"},
              {"out_layout", AttrKind::kString, "", "order of the result's dimensions"}};
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.layout_agnostic = true;
  SetSpatial(op);
  op.is_exact = is_max;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0, 4);
    if (call.attrs.String("layout") != "NCHW")
      throw RelationFailure{"supports layout NCHW only, got " + call.attrs.String("layout")};
    const V size = PerDimension(call.attrs.Ints("output_size"), 2);
    CheckRange("output_size", size, 1);
    return TensorType(std::vector<Dim>{data.shape()[0], data.shape()[1], size[0], size[1]}, data.dtype());
  });
  op.reference = [is_max](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    const Shape& in = inputs[0].shape();
    const Shape& out = outputs[0].shape();
    int64_t o = 0;
    ForEachIndex(out, [&](const V& index) {
      const auto begin = [&](size_t d) { return index[d] * in[d] / out[d]; };
      const auto end = [&](size_t d) { return ((index[d] + 1) * in[d] + out[d] - 1) / out[d]; };
      double result = is_max ? -INFINITY : 0;
      for (int64_t h = begin(2); h < end(2); ++h) {
        for (int64_t w = begin(3); w < end(3); ++w) {
          const double value = inputs[0].At(((index[0] * in[1] + index[1]) * in[2] + h) * in[3] + w);
          result = is_max ? std::max(result, value) : result + value;
        }
      }
      const int64_t count = (end(2) - begin(2)) * (end(3) - begin(3));
      outputs[0].Set(o++, is_max ? result : result / static_cast<double>(std::max<int64_t>(count, 1)));
    });
  };
  op.examples = {{{F32({1, 5, 7, 9})}, {{"output_size", V{3, 2}}}}};
  return op;
}

}  // namespace

void AddPoolOps(std::vector<OpDef>& rows) {
  for (int rank = 1; rank <= 3; ++rank) {
    for (bool is_max : {true, false}) {
      rows.push_back(Pool(rank, is_max));
      rows.push_back(GlobalPool(rank, is_max));
    }
    rows.push_back(MaxPoolIndices(rank));
  }
  rows.push_back(AdaptivePool(/*is_max=*/false));
  rows.push_back(AdaptivePool(/*is_max=*/true));
}

}  // namespace collage
