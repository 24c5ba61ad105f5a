// pool.cc: windows without weights: maxima, averages, interpolation.
#include "backends/xnnpack/operators/build.h"
#include "collage/support/error.h"

namespace collage::xnnpack_toolchain {
namespace {

/// Calls `create` with the window of a pool and then `arguments`; maxima have a dilation.
template <typename Create, typename... Arguments>
Part MakePool(const Operation& o, Create create, Arguments... arguments) {
  const size_t channels = Size(o.result.back());
  Part part;
  if constexpr (std::is_invocable_v<Create, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
                                    uint32_t, uint32_t, uint32_t, size_t, size_t, size_t, Arguments...,
                                    xnn_operator_t*>) {
    part.op = Make(create, U32(o.before[0]), U32(o.after[1]), U32(o.after[0]), U32(o.before[1]), U32(o.kernel[0]),
                   U32(o.kernel[1]), U32(o.strides[0]), U32(o.strides[1]), U32(o.dilation[0]), U32(o.dilation[1]),
                   channels, channels, channels, arguments...);
  } else {
    part.op = Make(create, U32(o.before[0]), U32(o.after[1]), U32(o.after[0]), U32(o.before[1]), U32(o.kernel[0]),
                   U32(o.kernel[1]), U32(o.strides[0]), U32(o.strides[1]), channels, channels, channels, arguments...);
  }
  return part;
}

template <typename T, typename SetUp>
void SetUpImage(const Operation& o, Part& part, SetUp set_up) {
  const std::vector<size_t> shape = Sizes(o.data[0].shape);
  part.set_up = [shape, set_up](xnn_operator_t op, const void* const* data, void* result, pthreadpool_t pool) {
    return set_up(op, shape[0], shape[1], shape[2], static_cast<const T*>(data[0]), static_cast<T*>(result), pool);
  };
}

template <typename T, typename SetUp>
void SetUpWholeImage(const Operation& o, Part& part, SetUp set_up) {
  const std::vector<size_t> shape = Sizes(o.data[0].shape);
  part.set_up = [shape, set_up](xnn_operator_t op, const void* const* data, void* result, pthreadpool_t pool) {
    return set_up(op, shape[0], shape[1] * shape[2], static_cast<const T*>(data[0]), static_cast<T*>(result), pool);
  };
}

template <typename T, typename SetUp>
void SetUpResize(const Operation& o, Part& part, SetUp set_up) {
  const std::vector<size_t> in = Sizes(o.data[0].shape), out = Sizes(o.result);
  part.set_up = [in, out, set_up](xnn_operator_t op, const void* const* data, void* result, pthreadpool_t pool) {
    return set_up(op, in[0], in[1], in[2], out[1], out[2], static_cast<const T*>(data[0]), static_cast<T*>(result),
                  pool);
  };
}

Part MaxPool(const Operation& o) {
  const Range range = QuantisedRange(o);
  if (o.element == Element::kInt8) {
    Part part = MakePool(o, xnn_create_max_pooling2d_nhwc_s8, static_cast<int8_t>(range.low),
                         static_cast<int8_t>(range.high), 0u);
    SetUpImage<int8_t>(o, part, xnn_setup_max_pooling2d_nhwc_s8);
    return part;
  }
  if (o.element == Element::kUInt8) {
    Part part = MakePool(o, xnn_create_max_pooling2d_nhwc_u8, static_cast<uint8_t>(range.low),
                         static_cast<uint8_t>(range.high), 0u);
    SetUpImage<uint8_t>(o, part, xnn_setup_max_pooling2d_nhwc_u8);
    return part;
  }
  Part part = MakePool(o, xnn_create_max_pooling2d_nhwc_f32, static_cast<float>(o.low), static_cast<float>(o.high), 0u);
  SetUpImage<float>(o, part, xnn_setup_max_pooling2d_nhwc_f32);
  return part;
}

Part AvgPool(const Operation& o) {
  if (o.element == Element::kUInt8) {
    const Range range = QuantisedRange(o);
    Part part = MakePool(
        o, xnn_create_average_pooling2d_nhwc_qu8, static_cast<uint8_t>(o.data[0].quantisation.zero_point),
        static_cast<float>(o.data[0].quantisation.scale()), static_cast<uint8_t>(o.result_quantisation.zero_point),
        static_cast<float>(o.result_quantisation.scale()), static_cast<uint8_t>(range.low),
        static_cast<uint8_t>(range.high), 0u);
    SetUpImage<uint8_t>(o, part, xnn_setup_average_pooling2d_nhwc_qu8);
    return part;
  }
  Part part =
      MakePool(o, xnn_create_average_pooling2d_nhwc_f32, static_cast<float>(o.low), static_cast<float>(o.high), 0u);
  SetUpImage<float>(o, part, xnn_setup_average_pooling2d_nhwc_f32);
  return part;
}

template <typename T, typename Create, typename SetUp>
Part QuantisedGlobalAvgPool(const Operation& o, Create create, SetUp set_up) {
  const size_t channels = Size(o.result.back());
  const Range range = QuantisedRange(o);
  Part part;
  part.op = Make(create, channels, channels, channels, static_cast<T>(o.data[0].quantisation.zero_point),
                 static_cast<float>(o.data[0].quantisation.scale()), static_cast<T>(o.result_quantisation.zero_point),
                 static_cast<float>(o.result_quantisation.scale()), static_cast<T>(range.low),
                 static_cast<T>(range.high), 0u);
  SetUpWholeImage<T>(o, part, set_up);
  return part;
}

Part GlobalAvgPool(const Operation& o) {
  if (o.element == Element::kInt8) {
    return QuantisedGlobalAvgPool<int8_t>(o, xnn_create_global_average_pooling_nwc_qs8,
                                          xnn_setup_global_average_pooling_nwc_qs8);
  }
  if (o.element == Element::kUInt8) {
    return QuantisedGlobalAvgPool<uint8_t>(o, xnn_create_global_average_pooling_nwc_qu8,
                                           xnn_setup_global_average_pooling_nwc_qu8);
  }
  const size_t channels = Size(o.result.back());
  Part part;
  part.op = Make(xnn_create_global_average_pooling_nwc_f32, channels, channels, channels, static_cast<float>(o.low),
                 static_cast<float>(o.high), 0u);
  SetUpWholeImage<float>(o, part, xnn_setup_global_average_pooling_nwc_f32);
  return part;
}

Part Resize(const Operation& o) {
  const size_t channels = Size(o.result.back());
  const uint32_t flags = o.align_corners ? XNN_FLAG_ALIGN_CORNERS : o.asymmetric ? XNN_FLAG_TENSORFLOW_LEGACY_MODE : 0;
  Part part;
  switch (o.element) {
    case Element::kInt8:
      part.op = Make(xnn_create_resize_bilinear2d_nhwc_s8, channels, channels, channels, flags);
      SetUpResize<int8_t>(o, part, xnn_setup_resize_bilinear2d_nhwc_s8);
      break;
    case Element::kUInt8:
      part.op = Make(xnn_create_resize_bilinear2d_nhwc_u8, channels, channels, channels, flags);
      SetUpResize<uint8_t>(o, part, xnn_setup_resize_bilinear2d_nhwc_u8);
      break;
    case Element::kFloat32:
      part.op = Make(xnn_create_resize_bilinear2d_nhwc_f32, channels, channels, channels, flags);
      SetUpResize<float>(o, part, xnn_setup_resize_bilinear2d_nhwc_f32);
      break;
  }
  return part;
}

}  // namespace

std::vector<Part> BuildPool(const Operation& o) {
  std::vector<Part> parts;
  switch (o.kind) {
    case Kind::kMaxPool: parts.push_back(MaxPool(o)); break;
    case Kind::kAvgPool: parts.push_back(AvgPool(o)); break;
    case Kind::kGlobalAvgPool: parts.push_back(GlobalAvgPool(o)); break;
    default: parts.push_back(Resize(o)); break;
  }
  return parts;
}

}  // namespace collage::xnnpack_toolchain
