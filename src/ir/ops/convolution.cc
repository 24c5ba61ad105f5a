// convolution.cc: convolutions and transposed convolutions of any rank.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include "ir/ops/contraction.h"
#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"
#include "support/clones.h"

namespace collage {
namespace {

/// sum[j] += factor * x[j * step].
COLLAGE_CLONES void Accumulate(double* sum, const float* x, int64_t step, double factor, int64_t count) {
  if (step == 1) {
    for (int64_t j = 0; j < count; ++j) sum[j] += factor * static_cast<double>(x[j]);
  } else {
    for (int64_t j = 0; j < count; ++j) sum[j] += factor * static_cast<double>(x[j * step]);
  }
}

const char* DataLayout(int rank) { return rank == 1 ? "NCW" : rank == 2 ? "NCHW" : "NCDHW"; }

std::vector<AttrField> ConvAttrs(int rank, const char* kernel_layout) {
  return {{"strides", AttrKind::kInts, std::vector<int64_t>(static_cast<size_t>(rank), 1), "step per dimension"},
          {"padding", AttrKind::kInts, std::vector<int64_t>(static_cast<size_t>(rank), 0), "begins, then ends"},
          {"dilation", AttrKind::kInts, std::vector<int64_t>(static_cast<size_t>(rank), 1), "distance of taps"},
          {"groups", AttrKind::kInt, 1, "independent groups of channels"},
          {"channels", AttrKind::kInt, {}, "output channels; None: from the weight"},
          {"kernel_size", AttrKind::kInts, {}, "None: from the weight"},
          {"data_layout", AttrKind::kString, DataLayout(rank), "order of the data's dimensions"},
          {"kernel_layout", AttrKind::kString, kernel_layout, "order of the weight's dimensions"},
          {"out_layout", AttrKind::kString, "", "order of the result's dimensions"},
          {"out_dtype", AttrKind::kDType, "", "dtype of the result; empty: the data's"}};
}

struct ConvShape {
  int rank;
  std::vector<int64_t> strides, dilation;
  Padding padding;
  int64_t groups;

  ConvShape(const Attrs& attrs, int spatial_rank)
      : rank(spatial_rank),
        strides(PerDimension(attrs.Ints("strides"), spatial_rank)),
        dilation(PerDimension(attrs.Ints("dilation"), spatial_rank)),
        padding(SpatialPadding(attrs, spatial_rank)),
        groups(attrs.Int("groups")) {
    CheckRange("strides", strides, 1);
    CheckRange("dilation", dilation, 1);
    CheckRange("groups", {groups}, 1);
    constexpr int64_t kLeast = std::numeric_limits<int32_t>::min();
    CheckRange("padding", padding.before, kLeast);
    CheckRange("padding", padding.after, kLeast);
  }
};

Type ConvRelation(const OpCall& call, int rank) {
  CheckSameDType(call);
  const TensorTypeNode& data = TensorArg(call, 0, rank + 2);
  const TensorTypeNode& weight = TensorArg(call, 1, rank + 2);
  const ConvShape conv(call.attrs, rank);
  const Dim channels = data.shape()[1];
  const Dim group_channels = weight.shape()[1];
  const Dim out_channels = weight.shape()[0];
  const Dim wanted = Times(group_channels, conv.groups);
  if (!MayEqual(channels, wanted)) {
    throw RelationFailure{fmt::format("expects {} input channels ({} groups), got {}", wanted.ToString(), conv.groups,
                                      ToString(call.args[0]))};
  }
  if (!out_channels.is_any() && out_channels.size() % conv.groups != 0) {
    throw RelationFailure{
        fmt::format("{} groups do not divide {} output channels", conv.groups, out_channels.ToString())};
  }
  std::vector<Dim> shape{data.shape()[0], out_channels};
  for (int i = 0; i < rank; ++i) {
    const auto d = static_cast<size_t>(i);
    const Dim kernel = weight.shape()[d + 2];
    shape.push_back(kernel.is_any() ? Dim::Any()
                                    : WindowedDim(data.shape()[d + 2], kernel.size(), conv.strides[d],
                                                  conv.padding.before[d], conv.padding.after[d], conv.dilation[d]));
  }
  return TensorType(shape, OutDType(call, data.dtype()));
}

/// Shapes padded with leading 1s to three spatial dimensions.
std::array<int64_t, 3> Spatial(const Shape& shape) {
  std::array<int64_t, 3> result{1, 1, 1};
  const size_t rank = shape.size() - 2;
  for (size_t i = 0; i < rank; ++i) result[3 - rank + i] = shape[i + 2];
  return result;
}

std::array<int64_t, 3> Padded(const std::vector<int64_t>& values, int64_t fill) {
  std::array<int64_t, 3> result{fill, fill, fill};
  for (size_t i = 0; i < values.size(); ++i) result[3 - values.size() + i] = values[i];
  return result;
}

/// Operands of reference convolutions, transposed ones included, with three spatial dimensions.
struct ConvOperands {
  ConvOperands(std::span<const Tensor> inputs, const Attrs& attrs, const Tensor& output)
      : data(inputs[0].Cast(kFloat32)),
        weight(inputs[1].Cast(kFloat32)),
        conv(attrs, data.rank() - 2),
        in(Spatial(data.shape())),
        kernel(Spatial(weight.shape())),
        out(Spatial(output.shape())),
        stride(Padded(conv.strides, 1)),
        dilation(Padded(conv.dilation, 1)),
        pad(Padded(conv.padding.before, 0)),
        channels(data.shape()[1]),
        out_channels(output.shape()[1]),
        num_taps(kernel[0] * kernel[1] * kernel[2]) {}

  Tensor data;
  Tensor weight;
  ConvShape conv;
  std::array<int64_t, 3> in, kernel, out, stride, dilation, pad;
  int64_t channels;
  int64_t out_channels;
  int64_t num_taps;
};

/// Computes each plane of the output: `add(n, channel, sums)` adds up its elements, which are 0 before.
void ForEachPlane(const ConvOperands& operands, const Tensor& output,
                  const std::function<void(int64_t n, int64_t channel, std::vector<double>& sums)>& add) {
  const int64_t pixels = operands.out[0] * operands.out[1] * operands.out[2];
  InParallel(output.shape()[0] * operands.out_channels, [&](int64_t begin, int64_t end) {
    std::vector<double> sums(static_cast<size_t>(pixels));
    for (int64_t unit = begin; unit < end; ++unit) {
      std::fill(sums.begin(), sums.end(), 0.0);
      add(unit / operands.out_channels, unit % operands.out_channels, sums);
      Store(sums, output, unit * pixels);
    }
  });
}

/// Positions of taps in a plane of the data, for a few output positions.
class TapPositions {
 public:
  explicit TapPositions(const ConvOperands& operands)
      : c_(operands), positions_(static_cast<size_t>(operands.num_taps * kPanelColumns)) {}

  /// Finds those of `count` output positions from `first` on; -1 outside of the data.
  void Find(int64_t first, int64_t count) {
    for (int64_t tap = 0; tap < c_.num_taps; ++tap) {
      for (int64_t i = 0; i < count; ++i) positions_[tap * kPanelColumns + i] = At(first + i, tap);
    }
  }

  const int64_t* Of(int64_t tap) const { return positions_.data() + tap * kPanelColumns; }

 private:
  int64_t At(int64_t output, int64_t tap) const {
    int64_t position = 0;
    int64_t plane = 1;
    for (size_t d = 3; d-- > 0; output /= c_.out[d], tap /= c_.kernel[d], plane *= c_.in[d]) {
      const int64_t at = output % c_.out[d] * c_.stride[d] + tap % c_.kernel[d] * c_.dilation[d] - c_.pad[d];
      if (at < 0 || at >= c_.in[d]) return -1;
      position += at * plane;
    }
    return position;
  }

  const ConvOperands& c_;
  std::vector<int64_t> positions_;
};

/// As products: weights by what the taps of each output position read.
void ConvByProducts(const ConvOperands& c, const Tensor& output) {
  const int64_t group_in = c.weight.shape()[1];
  const int64_t group_out = c.out_channels / c.conv.groups;
  const int64_t pixels = c.out[0] * c.out[1] * c.out[2];
  const int64_t plane_size = c.in[0] * c.in[1] * c.in[2];
  const int64_t panels = (pixels + kPanelColumns - 1) / kPanelColumns;
  const int64_t depth = group_in * c.num_taps;
  InParallel(output.shape()[0] * panels, [&](int64_t begin, int64_t end) {
    TapPositions positions(c);
    std::vector<float> panel(static_cast<size_t>(depth * kPanelColumns));
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % panels * kPanelColumns;
      const int64_t count = std::min(kPanelColumns, pixels - first);
      positions.Find(first, count);
      for (int64_t group = 0; group < c.conv.groups; ++group) {
        const int64_t channels = unit / panels * c.channels + group * group_in;
        float* row = panel.data();
        for (int64_t ic = 0; ic < group_in; ++ic) {
          const float* plane = c.data.data<float>() + (channels + ic) * plane_size;
          for (int64_t tap = 0; tap < c.num_taps; ++tap, row += kPanelColumns) {
            const int64_t* from = positions.Of(tap);
            for (int64_t i = 0; i < count; ++i) row[i] = from[i] < 0 ? 0.0f : plane[from[i]];
          }
        }
        const int64_t out_channel = unit / panels * c.out_channels + group * group_out;
        MultiplyPanel(c.weight.data<float>() + group * group_out * depth, group_out, depth, panel.data(), count, output,
                      out_channel * pixels + first, pixels);
      }
    }
  });
}

void ConvReference(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const ConvOperands c(inputs, attrs, outputs[0]);
  const int64_t group_in = c.weight.shape()[1];
  const int64_t group_out = c.out_channels / c.conv.groups;
  constexpr int64_t kLeastRows = 4;  // of weights that are multiplied at once
  if (group_out >= kLeastRows) return ConvByProducts(c, outputs[0]);
  ForEachPlane(c, outputs[0], [&](int64_t n, int64_t oc, std::vector<double>& sums) {
    for (int64_t ic = 0; ic < group_in; ++ic) {
      const float* plane =
          c.data.data<float>() + (n * c.channels + oc / group_out * group_in + ic) * c.in[0] * c.in[1] * c.in[2];
      const float* taps = c.weight.data<float>() + (oc * group_in + ic) * c.num_taps;
      for (int64_t tap = 0; tap < c.num_taps; ++tap) {
        const int64_t kd = tap / (c.kernel[1] * c.kernel[2]);
        const int64_t kh = tap / c.kernel[2] % c.kernel[1];
        const int64_t kw = tap % c.kernel[2];
        const auto [d0, d1] = ValidRange(c.in[0], c.out[0], c.stride[0], kd * c.dilation[0] - c.pad[0]);
        const auto [h0, h1] = ValidRange(c.in[1], c.out[1], c.stride[1], kh * c.dilation[1] - c.pad[1]);
        const int64_t w_shift = kw * c.dilation[2] - c.pad[2];
        const auto [w0, w1] = ValidRange(c.in[2], c.out[2], c.stride[2], w_shift);
        for (int64_t d = d0; d < d1; ++d) {
          for (int64_t h = h0; h < h1; ++h) {
            const int64_t row = ((d * c.stride[0] + kd * c.dilation[0] - c.pad[0]) * c.in[1] + h * c.stride[1] +
                                 kh * c.dilation[1] - c.pad[1]) *
                                c.in[2];
            Accumulate(sums.data() + (d * c.out[1] + h) * c.out[2] + w0, plane + row + w0 * c.stride[2] + w_shift,
                       c.stride[2], static_cast<double>(taps[tap]), w1 - w0);
          }
        }
      }
    }
  });
}

/// For each pair of an input and an output channel, over a window that is moved to `moves` positions on a field of
/// `field` ones: products within the field.
double WindowMultiplyAdds(const ConvShape& conv, const Shape& window, const Shape& moves, const Shape& field) {
  double all = 1;
  for (size_t d = 0; d + 2 < window.size(); ++d) {
    int64_t valid = 0;
    for (int64_t k = 0; k < window[d + 2]; ++k) {
      const auto [first, last] =
          ValidRange(field[d + 2], moves[d + 2], conv.strides[d], k * conv.dilation[d] - conv.padding.before[d]);
      valid += std::max<int64_t>(last - first, 0);
    }
    all *= static_cast<double>(valid);
  }
  return all;
}

Shape StaticShape(const Type& type) { return AsTensorType(type)->static_shape(); }

double ConvMultiplyAdds(const OpCall& call, int rank) {
  const Shape data = StaticShape(call.args[0]), weight = StaticShape(call.args[1]);
  const Shape out = StaticShape(ConvRelation(call, rank));
  return static_cast<double>(out[0] * out[1] * weight[1]) *
         WindowMultiplyAdds(ConvShape(call.attrs, rank), weight, out, data);
}

OpDef Conv(int rank) {
  OpDef op;
  op.name = fmt::format("nn.conv{}d", rank);
  op.doc = "Convolution of data [N, C, spatial…] with weight [O, C / groups, kernel…].";
  op.args = {"data", "weight"};
  op.attrs = ConvAttrs(rank, rank == 1 ? "OIW" : rank == 2 ? "OIHW" : "OIDHW");
  SetSpatial(op);
  op.equal_dims = ConvolutionDims;
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.relation = Relation([rank](const OpCall& call) { return ConvRelation(call, rank); });
  op.reference = ConvReference;
  op.multiply_adds = [rank](const OpCall& call) { return ConvMultiplyAdds(call, rank); };
  using V = std::vector<int64_t>;
  if (rank == 1) {
    op.examples = {{{F32({1, 6, 31}), F32({10, 6, 5})}, {{"padding", V{2}}, {"strides", V{2}}}},
                   {{F32({2, 4, 17}), F32({4, 1, 3})}, {{"groups", 4}, {"padding", V{0, 2}}}},
                   {{F32({1, 5, 8}), F32({9, 5, 4})}, {{"dilation", V{5}}, {"padding", V{8, 9}}, {"strides", V{2}}}}};
  } else if (rank == 2) {
    op.examples = {{{F32({1, 16, 14, 15}), F32({24, 16, 3, 3})}, {{"padding", V{1, 1}}}},
                   {{F32({1, 3, 23, 23}), F32({17, 3, 7, 7})}, {{"padding", V{3, 3}}, {"strides", V{2, 2}}}},
                   {{F32({1, 12, 9, 11}), F32({12, 1, 5, 5})}, {{"groups", 12}, {"padding", V{2, 2}}}},
                   {{F32({1, 8, 9, 11}), F32({12, 4, 3, 3})}, {{"groups", 2}, {"padding", V{0, 1, 2, 3}}}},
                   {{F32({1, 7, 19, 13}), F32({5, 7, 3, 2})}, {{"dilation", V{2, 3}}, {"padding", V{2, 1}}}},
                   {{F32({1, 6, 9, 7}), F32({10, 6, 3, 3})}, {{"dilation", V{6, 5}}, {"padding", V{6, 5}}}},
                   {{F32({2, 4, 11, 9}), F32({8, 2, 3, 3})},
                    {{"dilation", V{7, 8}}, {"groups", 2}, {"padding", V{7, 8}}, {"strides", V{2, 1}}}},
                   {{F32({1, 32, 7, 7}), F32({40, 32, 1, 1})}, {}}};
  } else {
    op.examples = {{{F32({1, 4, 5, 7, 9}), F32({6, 4, 3, 3, 3})}, {{"padding", V{1, 1, 1}}, {"strides", V{1, 2, 2}}}}};
  }
  return op;
}

// ---- transposed convolution ----

Type ConvTransposeRelation(const OpCall& call, int rank) {
  CheckSameDType(call);
  const TensorTypeNode& data = TensorArg(call, 0, rank + 2);
  const TensorTypeNode& weight = TensorArg(call, 1, rank + 2);
  const ConvShape conv(call.attrs, rank);
  const std::vector<int64_t> extra = PerDimension(call.attrs.Ints("output_padding"), rank);
  const Dim channels = data.shape()[1];
  const Dim group_out = weight.shape()[1];
  if (!channels.is_any() && !weight.shape()[0].is_any() && channels != weight.shape()[0]) {
    throw RelationFailure{
        fmt::format("expects {} input channels, got {}", weight.shape()[0].ToString(), ToString(call.args[0]))};
  }
  if (!channels.is_any() && channels.size() % conv.groups != 0)
    throw RelationFailure{fmt::format("{} groups do not divide {} input channels", conv.groups, channels.size())};
  CheckRange("output_padding", extra, std::numeric_limits<int32_t>::min());
  std::vector<Dim> shape{data.shape()[0], Times(group_out, conv.groups)};
  for (int i = 0; i < rank; ++i) {
    const auto d = static_cast<size_t>(i);
    if (data.shape()[d + 2].is_any() || weight.shape()[d + 2].is_any()) {
      const auto size = data.shape()[d + 2].symbolic(), kernel = weight.shape()[d + 2].symbolic();
      const int64_t rest =
          extra[d] + 1 - conv.padding.before[d] - conv.padding.after[d] - conv.strides[d] - conv.dilation[d];
      shape.push_back(size && kernel ? Dim::Of(*size * conv.strides[d] + *kernel * conv.dilation[d] + rest)
                                     : Dim::Any());
      continue;
    }
    if (data.shape()[d + 2].size() < 1)
      throw RelationFailure{"expects at least one pixel, got " + ToString(call.args[0])};
    if (weight.shape()[d + 2].size() < 1)
      throw RelationFailure{"expects at least one weight, got " + ToString(call.args[1])};
    const int64_t moves = Times(data.shape()[d + 2].size() - 1, conv.strides[d]).size();
    const int64_t reach = Times(weight.shape()[d + 2].size() - 1, conv.dilation[d]).size();
    const int64_t size = Plus(moves, reach).size() - conv.padding.before[d] - conv.padding.after[d] + 1 + extra[d];
    if (size < 1) throw RelationFailure{fmt::format("the result would have size {} in dimension {}", size, i + 2)};
    shape.emplace_back(size);
  }
  return TensorType(shape, OutDType(call, data.dtype()));
}

void ConvTransposeReference(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const ConvOperands c(inputs, attrs, outputs[0]);
  const int64_t group_out = c.weight.shape()[1];
  const int64_t group_in = c.channels / c.conv.groups;
  ForEachPlane(c, outputs[0], [&](int64_t n, int64_t oc, std::vector<double>& sums) {
    for (int64_t g = 0; g < group_in; ++g) {
      const int64_t ic = oc / group_out * group_in + g;
      const float* plane = c.data.data<float>() + (n * c.channels + ic) * c.in[0] * c.in[1] * c.in[2];
      const float* factors = c.weight.data<float>() + (ic * group_out + oc % group_out) * c.num_taps;
      for (int64_t tap = 0; tap < c.num_taps; ++tap) {
        for (int64_t d = 0; d < c.in[0]; ++d) {
          const int64_t od = d * c.stride[0] + tap / (c.kernel[1] * c.kernel[2]) * c.dilation[0] - c.pad[0];
          if (od < 0 || od >= c.out[0]) continue;
          for (int64_t h = 0; h < c.in[1]; ++h) {
            const int64_t oh = h * c.stride[1] + tap / c.kernel[2] % c.kernel[1] * c.dilation[1] - c.pad[1];
            if (oh < 0 || oh >= c.out[1]) continue;
            for (int64_t w = 0; w < c.in[2]; ++w) {
              const int64_t ow = w * c.stride[2] + tap % c.kernel[2] * c.dilation[2] - c.pad[2];
              if (ow < 0 || ow >= c.out[2]) continue;
              sums[(od * c.out[1] + oh) * c.out[2] + ow] +=
                  static_cast<double>(factors[tap]) * static_cast<double>(plane[(d * c.in[1] + h) * c.in[2] + w]);
            }
          }
        }
      }
    }
  });
}

double ConvTransposeMultiplyAdds(const OpCall& call, int rank) {
  const Shape data = StaticShape(call.args[0]), weight = StaticShape(call.args[1]);
  const Shape out = StaticShape(ConvTransposeRelation(call, rank));
  return static_cast<double>(data[0] * data[1] * weight[1]) *
         WindowMultiplyAdds(ConvShape(call.attrs, rank), weight, data, out);
}

OpDef ConvTranspose(int rank) {
  OpDef op;
  op.name = fmt::format("nn.conv{}d_transpose", rank);
  op.doc = "Transposed convolution of data [N, C, spatial…] with weight [C, O / groups, kernel…].";
  op.args = {"data", "weight"};
  op.attrs = ConvAttrs(rank, rank == 1 ? "IOW" : rank == 2 ? "IOHW" : "IODHW");
  SetSpatial(op);
  op.attrs.push_back({"output_padding", AttrKind::kInts, std::vector<int64_t>(static_cast<size_t>(rank), 0),
                      "rows added at the end of each dimension"});
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.relation = Relation([rank](const OpCall& call) { return ConvTransposeRelation(call, rank); });
  op.reference = ConvTransposeReference;
  op.multiply_adds = [rank](const OpCall& call) { return ConvTransposeMultiplyAdds(call, rank); };
  using V = std::vector<int64_t>;
  if (rank == 2) {
    op.examples = {{{F32({1, 8, 7, 9}), F32({8, 6, 4, 4})}, {{"strides", V{2, 2}}, {"padding", V{1, 1}}}},
                   {{F32({1, 8, 7, 9}), F32({8, 5, 2, 2})}, {{"strides", V{2, 2}}}},
                   {{F32({1, 8, 1, 1}), F32({8, 16, 4, 4})}, {}}};
  }
  return op;
}

}  // namespace

void AddConvolutionOps(std::vector<OpDef>& rows) {
  for (int rank = 1; rank <= 3; ++rank) {
    rows.push_back(Conv(rank));
    rows.push_back(ConvTranspose(rank));
  }
}

}  // namespace collage
