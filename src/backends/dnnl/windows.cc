// windows.cc: convolutions, pools and resampling as primitives.
#include <fmt/format.h>

#include <algorithm>

#include "backends/dnnl/anchors.h"
#include "collage/ir/op.h"
#include "ir/ops/relations.h"

namespace collage::dnnl_toolchain {
namespace {

void SetWindow(const Attrs& attrs, int rank, Primitive& p) {
  p.strides = PerDimension(attrs.Ints("strides"), rank);
  p.dilation = PerDimension(attrs.Ints("dilation"), rank);
  const Padding padding = SpatialPadding(attrs, rank);
  p.before = padding.before;
  p.after = padding.after;
}

/// Windows of all of the data.
void SetWholeWindow(Primitive& p) {
  const size_t rank = p.src.shape.size() - 2;
  p.kernel.assign(p.src.shape.begin() + 2, p.src.shape.end());
  p.strides = p.kernel;
  p.dilation.assign(rank, 1);
  p.before.assign(rank, 0);
  p.after.assign(rank, 0);
}

/// Windows of one size that divide the data in as many parts as the result has pixels.
void SetAdaptiveWindow(Primitive& p) {
  SetWholeWindow(p);
  for (size_t d = 0; d < p.kernel.size(); ++d) {
    const int64_t in = p.src.shape[d + 2], out = p.dst.shape[d + 2];
    if (in % out != 0) throw Refusal{fmt::format("pools windows of one size only, {} does not divide {}", out, in)};
    p.kernel[d] = p.strides[d] = in / out;
  }
}

/// A multiple of the data's size per dimension: only there do all ways of rounding agree with oneDNN's.
bool IsWholeFactor(const Primitive& p) {
  for (size_t d = 2; d < p.src.shape.size(); ++d) {
    if (p.dst.shape[d] % p.src.shape[d] != 0) return false;
  }
  return true;
}

/// Whether coordinates are computed with the ratio of the sizes, not with scales that differ from it.
bool UsesRatioOfSizes(const AttrValue& scales, const Primitive& p) {
  if (scales.as_list() == nullptr || scales.as_list()->size() + 2 != p.src.shape.size()) return true;
  for (size_t d = 0; d < scales.as_list()->size(); ++d) {
    const AttrValue& value = (*scales.as_list())[d];
    const double scale = value.as_double() != nullptr ? *value.as_double()
                         : value.as_int() != nullptr  ? static_cast<double>(*value.as_int())
                                                      : 0;
    if (scale * static_cast<double>(p.src.shape[d + 2]) != static_cast<double>(p.dst.shape[d + 2])) return false;
  }
  return true;
}

}  // namespace

void ReadConvolution(Reading& reading, const CallNode& call, Primitive& p) {
  const bool transposed = call.op()->name.ends_with("_transpose");
  RequireChannelsFirst(call, "data_layout");
  const std::string& kernel_layout = call.attrs().String("kernel_layout");
  if (!kernel_layout.starts_with(transposed ? "IO" : "OI"))
    throw Refusal{"takes weights in the usual order only, got " + kernel_layout};
  p.kind = transposed ? Kind::kDeconv : Kind::kConv;
  p.groups = call.attrs().Int("groups");
  p.src = reading.OperandOf(call.args()[0]);
  p.weights = reading.OperandOf(call.args()[1], transposed ? 1 : 0);
  if (p.weights.constant < 0) throw Refusal{"takes constant weights only, which are packed once"};
  if (transposed && p.groups > 1 && p.weights.scales >= 0)
    throw Refusal{"takes one scale for grouped transposed weights"};
  const int rank = static_cast<int>(p.src.shape.size()) - 2;
  SetWindow(call.attrs(), rank, p);
  if (!transposed) return;
  const std::vector<int64_t> extra = PerDimension(call.attrs().Ints("output_padding"), rank);
  for (size_t d = 0; d < extra.size(); ++d) p.after[d] -= extra[d];
}

void ReadPool(Reading& reading, const CallNode& call, Primitive& p) {
  const std::string& name = call.op()->name;
  RequireChannelsFirst(call, "layout");
  p.kind = name.find("max_pool") != std::string::npos ? Kind::kMaxPool : Kind::kAvgPool;
  p.src = reading.OperandOf(call.args()[0]);
  if (name.starts_with("nn.global_")) return SetWholeWindow(p);
  if (name.starts_with("nn.adaptive_")) return SetAdaptiveWindow(p);
  if (name.ends_with("_indices") || (!name.starts_with("nn.max_pool") && !name.starts_with("nn.avg_pool"))) {
    throw Refusal{"has no '" + name + "'"};
  }
  const int rank = static_cast<int>(p.src.shape.size()) - 2;
  p.kernel = PerDimension(call.attrs().Ints("pool_size"), rank);
  SetWindow(call.attrs(), rank, p);
  p.count_include_pad = p.kind == Kind::kAvgPool && call.attrs().Bool("count_include_pad");
  for (size_t d = 0; d < p.kernel.size(); ++d) {
    if (p.dilation[d] != 1) throw Refusal{"pools without dilation only"};
    if (p.before[d] >= p.kernel[d]) throw Refusal{"pools with padding smaller than the window only"};
    // With ceil_mode the last window may reach beyond the padding; without, it may stop short of it.
    const int64_t after = (p.dst.shape[d + 2] - 1) * p.strides[d] + p.kernel[d] - p.src.shape[d + 2] - p.before[d];
    if (p.count_include_pad && after > p.after[d]) throw Refusal{"divides partial windows by another count"};
    if (after >= p.kernel[d]) throw Refusal{"has windows that see no data"};
    p.after[d] = after;
  }
  const bool is_padded = std::ranges::any_of(p.before, [](int64_t size) { return size > 0; }) ||
                         std::ranges::any_of(p.after, [](int64_t size) { return size > 0; });
  if (p.count_include_pad && is_padded && p.src.zero != 0)
    throw Refusal{"pads with 0, which stands for another number"};
}

void ReadResampling(Reading& reading, const CallNode& call, Primitive& p) {
  const Attrs& attrs = call.attrs();
  RequireChannelsFirst(call, "layout");
  p.kind = Kind::kResampling;
  p.src = reading.OperandOf(call.args()[0]);
  const std::string& method = attrs.String("method");
  const std::string& coordinates = attrs.String("coordinate_transformation_mode");
  p.is_linear = method == "linear";
  const bool is_centred = coordinates == "half_pixel" || coordinates == "pytorch_half_pixel";
  if (!UsesRatioOfSizes(attrs.Get("scales"), p)) throw Refusal{"resizes by the ratio of the sizes only"};
  if (attrs.Bool("antialias")) throw Refusal{"has no antialiasing"};
  if (p.is_linear) {
    const bool keeps_a_pixel =
        std::any_of(p.dst.shape.begin() + 2, p.dst.shape.end(), [](int64_t size) { return size == 1; });
    if (!is_centred || (coordinates == "pytorch_half_pixel" && keeps_a_pixel)) {
      throw Refusal{"interpolates between pixels' centres only, got " + coordinates};
    }
    if (attrs.Int("cubic_exclude") != 0) throw Refusal{"repeats pixels at the edge only"};
    return;
  }
  if (method != "nearest_neighbor") throw Refusal{"has no interpolation '" + method + "'"};
  const bool is_asymmetric = coordinates == "asymmetric" && attrs.String("rounding_method") == "floor";
  if (!IsWholeFactor(p) || (!is_centred && !is_asymmetric)) {
    throw Refusal{"repeats pixels a whole number of times only, or rounds otherwise"};
  }
  const std::string& rounding = attrs.String("rounding_method");
  if (is_centred && (rounding == "floor" || rounding == "ceil"))
    throw Refusal{"takes the nearest pixel, not " + rounding};
}

}  // namespace collage::dnnl_toolchain
