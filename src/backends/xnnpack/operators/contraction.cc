// contraction.cc: convolutions and dense layers, whose weights XNNPACK packs when the operator is made.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/xnnpack/operators/build.h"
#include "collage/support/error.h"

namespace collage::xnnpack_toolchain {
namespace {

/// Sizes of a convolution in XNNPACK's words.
struct Channels {
  size_t group_in, group_out, in, out;
};

Channels ChannelsOf(const Operation& o) {
  const size_t in = Size(o.data[0].shape.back());
  const size_t out = Size(o.result.back());
  return {in / Size(o.groups), out / Size(o.groups), in, out};
}

/// Weights as XNNPACK reads them: of every output channel the window, of every place in it the group's input channels.
template <typename T>
std::vector<T> Packed(const Operation& o, const Tensor& weights) {
  const T* source = weights.data<T>();
  const auto count = Size(weights.num_elements());
  if (o.kind == Kind::kDense) return {source, source + count};
  const auto [group_in, group_out, in, out] = ChannelsOf(o);
  const size_t window = Size(o.kernel[0] * o.kernel[1]);
  if (count != out * group_in * window)
    throw Error(ErrorCategory::kCorrupt, "an XNNPACK kernel has weights of another size");
  std::vector<T> packed(count);
  for (size_t channel = 0; channel < out; ++channel) {
    for (size_t place = 0; place < window; ++place) {
      for (size_t i = 0; i < group_in; ++i) {
        // Relay: [out, in of group, window]; transposed ones [in, out of group, window].
        const size_t group = channel / group_out;
        const size_t row =
            o.kind == Kind::kConv ? channel * group_in + i : (group * group_in + i) * group_out + channel % group_out;
        packed[(channel * window + place) * group_in + i] = source[row * window + place];
      }
    }
  }
  return packed;
}

const float* FloatBias(const Operation& o, std::span<const Tensor> constants) {
  return o.bias.defined() ? ConstantOf(o.bias, constants).data<float>() : nullptr;
}

/// The bias in units of the products' sums; empty when there is none.
std::vector<int32_t> QuantisedBias(const Operation& o, std::span<const Tensor> constants) {
  std::vector<int32_t> result;
  if (!o.bias.defined()) return result;
  const Tensor& bias = ConstantOf(o.bias, constants);
  const std::vector<double>& scales = o.weights.quantisation.scales;
  for (int64_t c = 0; c < bias.num_elements(); ++c) {
    const double scale = o.data[0].quantisation.scale() * scales[scales.size() == 1 ? 0 : Size(c)];
    constexpr double kLimit = 2147483647.0;
    result.push_back(static_cast<int32_t>(std::clamp(std::nearbyint(bias.At(c) / scale), -kLimit, kLimit)));
  }
  return result;
}

/// 8-bit weights of the data's signedness: the others are shifted by 128, which moves their zero point too.
struct IntegerWeights {
  std::vector<uint8_t> bytes;
  int zero_point;
  const int8_t* as_signed() const { return reinterpret_cast<const int8_t*>(bytes.data()); }
};

IntegerWeights WeightsLikeData(const Operation& o, const Tensor& weights) {
  IntegerWeights result{Packed<uint8_t>(o, weights), o.weights.quantisation.zero_point};
  if (o.weights.element == o.element) return result;
  for (uint8_t& byte : result.bytes) byte ^= 0x80;
  result.zero_point += o.element == Element::kUInt8 ? 128 : -128;
  return result;
}

/// Calls `create` with what all convolutions begin with, and then `arguments`.
template <typename Create, typename... Arguments>
Part MakeConvolution(const Operation& o, Create create, Arguments... arguments) {
  const auto [group_in, group_out, in, out] = ChannelsOf(o);
  Part part;
  part.op = Make(create, U32(o.before[0]), U32(o.after[1]), U32(o.after[0]), U32(o.before[1]), U32(o.kernel[0]),
                 U32(o.kernel[1]), U32(o.strides[0]), U32(o.strides[1]), U32(o.dilation[0]), U32(o.dilation[1]),
                 U32(o.groups), group_in, group_out, in, out, arguments...);
  return part;
}

/// Returns the set-up of a convolution's addresses, by the function of its type.
template <typename T, typename SetUp>
void SetUpConvolution(const Operation& o, Part& part, SetUp set_up) {
  const std::vector<size_t> shape = Sizes(o.data[0].shape);
  part.set_up = [shape, set_up](xnn_operator_t op, const void* const* data, void* result, pthreadpool_t pool) {
    return set_up(op, shape[0], shape[1], shape[2], static_cast<const T*>(data[0]), static_cast<T*>(result), pool);
  };
}

template <typename T, typename SetUp>
void SetUpDeconvolution(const Operation& o, Part& part, SetUp set_up) {
  const std::vector<size_t> shape = Sizes(o.data[0].shape);
  const uint32_t height = U32(o.adjustment[0]), width = U32(o.adjustment[1]);
  part.set_up = [=](xnn_operator_t op, const void* const* data, void* result, pthreadpool_t pool) {
    return set_up(op, shape[0], shape[1], shape[2], height, width, static_cast<const T*>(data[0]),
                  static_cast<T*>(result), pool);
  };
}

template <typename T, typename SetUp>
void SetUpRows(const Operation& o, Part& part, SetUp set_up) {
  const size_t rows = Size(NumElements(o.data[0].shape) / o.data[0].shape.back());
  part.set_up = [rows, set_up](xnn_operator_t op, const void* const* data, void* result, pthreadpool_t pool) {
    return set_up(op, rows, static_cast<const T*>(data[0]), static_cast<T*>(result), pool);
  };
}

Part BuildFloat(const Operation& o, const Tensor& weights, const float* bias) {
  const std::vector<float> kernel = Packed<float>(o, weights);
  const auto low = static_cast<float>(o.low), high = static_cast<float>(o.high);
  Part part;
  if (o.kind == Kind::kConv) {
    part = MakeConvolution(o, xnn_create_convolution2d_nhwc_f32, kernel.data(), bias, low, high, 0u);
    SetUpConvolution<float>(o, part, xnn_setup_convolution2d_nhwc_f32);
  } else if (o.kind == Kind::kDeconv) {
    part = MakeConvolution(o, xnn_create_deconvolution2d_nhwc_f32, kernel.data(), bias, low, high, 0u);
    SetUpDeconvolution<float>(o, part, xnn_setup_deconvolution2d_nhwc_f32);
  } else {
    const size_t in = Size(o.data[0].shape.back()), out = Size(o.result.back());
    part.op = Make(xnn_create_fully_connected_nc_f32, in, out, in, out, kernel.data(), bias, low, high, 0u);
    SetUpRows<float>(o, part, xnn_setup_fully_connected_nc_f32);
  }
  return part;
}

/// Arguments of the integer variants behind the sizes.
struct IntegerArguments {
  IntegerWeights weights;
  std::vector<int32_t> bias;
  int in_zero, out_zero;
  float in_scale, weight_scale, out_scale;
  Range range;

  IntegerArguments(const Operation& o, std::span<const Tensor> constants)
      : weights(WeightsLikeData(o, ConstantOf(o.weights, constants))),
        bias(QuantisedBias(o, constants)),
        in_zero(o.data[0].quantisation.zero_point),
        out_zero(o.result_quantisation.zero_point),
        in_scale(static_cast<float>(o.data[0].quantisation.scale())),
        weight_scale(static_cast<float>(o.weights.quantisation.scale())),
        out_scale(static_cast<float>(o.result_quantisation.scale())),
        range(QuantisedRange(o)) {}

  const int32_t* bias_data() const { return bias.empty() ? nullptr : bias.data(); }
};

Part BuildSigned(const Operation& o, std::span<const Tensor> constants) {
  const IntegerArguments a(o, constants);
  const auto in_zero = static_cast<int8_t>(a.in_zero), out_zero = static_cast<int8_t>(a.out_zero);
  const auto low = static_cast<int8_t>(a.range.low), high = static_cast<int8_t>(a.range.high);
  const std::vector<double>& scales = o.weights.quantisation.scales;
  Part part;
  if (o.kind == Kind::kConv && scales.size() > 1) {
    const std::vector<float> channel_scales(scales.begin(), scales.end());
    part = MakeConvolution(o, xnn_create_convolution2d_nhwc_qc8, in_zero, a.in_scale, channel_scales.data(),
                           a.weights.as_signed(), a.bias_data(), out_zero, a.out_scale, low, high, 0u);
    SetUpConvolution<int8_t>(o, part, xnn_setup_convolution2d_nhwc_qc8);
  } else if (o.kind == Kind::kConv) {
    part = MakeConvolution(o, xnn_create_convolution2d_nhwc_qs8, in_zero, a.in_scale, a.weight_scale,
                           a.weights.as_signed(), a.bias_data(), out_zero, a.out_scale, low, high, 0u);
    SetUpConvolution<int8_t>(o, part, xnn_setup_convolution2d_nhwc_qs8);
  } else if (o.kind == Kind::kDeconv) {
    part = MakeConvolution(o, xnn_create_deconvolution2d_nhwc_qs8, in_zero, a.in_scale, a.weight_scale,
                           a.weights.as_signed(), a.bias_data(), out_zero, a.out_scale, low, high, 0u);
    SetUpDeconvolution<int8_t>(o, part, xnn_setup_deconvolution2d_nhwc_qs8);
  } else {
    const size_t in = Size(o.data[0].shape.back()), out = Size(o.result.back());
    part.op = Make(xnn_create_fully_connected_nc_qs8, in, out, in, out, in_zero, a.in_scale, a.weight_scale,
                   a.weights.as_signed(), a.bias_data(), out_zero, a.out_scale, low, high, 0u);
    SetUpRows<int8_t>(o, part, xnn_setup_fully_connected_nc_qs8);
  }
  return part;
}

Part BuildUnsigned(const Operation& o, std::span<const Tensor> constants) {
  const IntegerArguments a(o, constants);
  const auto in_zero = static_cast<uint8_t>(a.in_zero), out_zero = static_cast<uint8_t>(a.out_zero);
  const auto weight_zero = static_cast<uint8_t>(a.weights.zero_point);
  const auto low = static_cast<uint8_t>(a.range.low), high = static_cast<uint8_t>(a.range.high);
  const uint8_t* weights = a.weights.bytes.data();
  Part part;
  if (o.kind == Kind::kConv) {
    part = MakeConvolution(o, xnn_create_convolution2d_nhwc_qu8, in_zero, a.in_scale, weight_zero, a.weight_scale,
                           weights, a.bias_data(), out_zero, a.out_scale, low, high, 0u);
    SetUpConvolution<uint8_t>(o, part, xnn_setup_convolution2d_nhwc_qu8);
  } else if (o.kind == Kind::kDeconv) {
    part = MakeConvolution(o, xnn_create_deconvolution2d_nhwc_qu8, in_zero, a.in_scale, weight_zero, a.weight_scale,
                           weights, a.bias_data(), out_zero, a.out_scale, low, high, 0u);
    SetUpDeconvolution<uint8_t>(o, part, xnn_setup_deconvolution2d_nhwc_qu8);
  } else {
    const size_t in = Size(o.data[0].shape.back()), out = Size(o.result.back());
    part.op = Make(xnn_create_fully_connected_nc_qu8, in, out, in, out, in_zero, a.in_scale, weight_zero,
                   a.weight_scale, weights, a.bias_data(), out_zero, a.out_scale, low, high, 0u);
    SetUpRows<uint8_t>(o, part, xnn_setup_fully_connected_nc_qu8);
  }
  return part;
}

}  // namespace

std::vector<Part> BuildContraction(const Operation& o, std::span<const Tensor> constants) {
  std::vector<Part> parts;
  if (o.element == Element::kFloat32) {
    parts.push_back(BuildFloat(o, ConstantOf(o.weights, constants), FloatBias(o, constants)));
  } else {
    parts.push_back(o.element == Element::kInt8 ? BuildSigned(o, constants) : BuildUnsigned(o, constants));
  }
  return parts;
}

}  // namespace collage::xnnpack_toolchain
