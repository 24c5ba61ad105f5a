// element_wise.cc: functions of one and two tensors, conversions, rows of a softmax.
#include <array>

#include "backends/xnnpack/operators/build.h"
#include "collage/support/error.h"

namespace collage::xnnpack_toolchain {
namespace {

float Float(double value) { return static_cast<float>(value); }

/// An operator on `rows` of `channels` contiguous elements, `Source` to `Target`.
template <typename Source, typename Target, typename SetUp>
void SetUpRows(Part& part, size_t rows, SetUp set_up) {
  part.set_up = [rows, set_up](xnn_operator_t op, const void* const* data, void* result, pthreadpool_t pool) {
    return set_up(op, rows, static_cast<const Source*>(data[0]), static_cast<Target*>(result), pool);
  };
}

/// `create(channels, strides…, arguments…)` where all elements are one row.
template <typename Source, typename Target = Source, typename Create, typename SetUp, typename... Arguments>
Part OneRow(const Operation& o, Create create, SetUp set_up, Arguments... arguments) {
  const size_t count = Size(NumElements(o.result));
  Part part;
  part.op = Make(create, count, count, count, arguments...);
  SetUpRows<Source, Target>(part, 1, set_up);
  return part;
}

/// Makes an operator for which each innermost dimension is a row.
template <typename T, typename Create, typename SetUp, typename... Arguments>
Part ManyRows(const Operation& o, Create create, SetUp set_up, Arguments... arguments) {
  const size_t channels = Size(o.result.back());
  Part part;
  part.op = Make(create, channels, channels, channels, arguments...);
  SetUpRows<T, T>(part, Size(NumElements(o.result)) / channels, set_up);
  return part;
}

/// `before` the zero points and scales of source and result, and the range behind them.
template <typename T, typename Create, typename SetUp, typename... Before>
Part QuantisedRow(const Operation& o, Create create, SetUp set_up, Before... before) {
  const Range range = QuantisedRange(o);
  return OneRow<T>(o, create, set_up, before..., static_cast<T>(o.data[0].quantisation.zero_point),
                   Float(o.data[0].quantisation.scale()), static_cast<T>(o.result_quantisation.zero_point),
                   Float(o.result_quantisation.scale()), static_cast<T>(range.low), static_cast<T>(range.high), 0u);
}

Error NotThere() { return Error(ErrorCategory::kCorrupt, "an XNNPACK kernel is of a kind that there is not"); }

Part SignedFunction(const Operation& o) {
  const Range range = QuantisedRange(o);
  switch (o.unary) {
    case Unary::kClamp:
      return OneRow<int8_t>(o, xnn_create_clamp_nc_s8, xnn_setup_clamp_nc_s8, static_cast<int8_t>(range.low),
                            static_cast<int8_t>(range.high), 0u);
    case Unary::kSigmoid: return QuantisedRow<int8_t>(o, xnn_create_sigmoid_nc_qs8, xnn_setup_sigmoid_nc_qs8);
    case Unary::kTanh: return QuantisedRow<int8_t>(o, xnn_create_tanh_nc_qs8, xnn_setup_tanh_nc_qs8);
    case Unary::kElu: return QuantisedRow<int8_t>(o, xnn_create_elu_nc_qs8, xnn_setup_elu_nc_qs8, Float(o.alpha));
    default: throw NotThere();
  }
}

Part UnsignedFunction(const Operation& o) {
  const Range range = QuantisedRange(o);
  switch (o.unary) {
    case Unary::kClamp:
      return OneRow<uint8_t>(o, xnn_create_clamp_nc_u8, xnn_setup_clamp_nc_u8, static_cast<uint8_t>(range.low),
                             static_cast<uint8_t>(range.high), 0u);
    case Unary::kSigmoid: return QuantisedRow<uint8_t>(o, xnn_create_sigmoid_nc_qu8, xnn_setup_sigmoid_nc_qu8);
    case Unary::kTanh: return QuantisedRow<uint8_t>(o, xnn_create_tanh_nc_qu8, xnn_setup_tanh_nc_qu8);
    case Unary::kLeakyRelu:
      return QuantisedRow<uint8_t>(o, xnn_create_leaky_relu_nc_qu8, xnn_setup_leaky_relu_nc_qu8, Float(o.alpha));
    default: throw NotThere();
  }
}

Part FloatFunction(const Operation& o) {
  switch (o.unary) {
    case Unary::kClamp:
      return OneRow<float>(o, xnn_create_clamp_nc_f32, xnn_setup_clamp_nc_f32, Float(o.low), Float(o.high), 0u);
    case Unary::kAbs: return OneRow<float>(o, xnn_create_abs_nc_f32, xnn_setup_abs_nc_f32, 0u);
    case Unary::kNegate: return OneRow<float>(o, xnn_create_negate_nc_f32, xnn_setup_negate_nc_f32, 0u);
    case Unary::kFloor: return OneRow<float>(o, xnn_create_floor_nc_f32, xnn_setup_floor_nc_f32, 0u);
    case Unary::kCeiling: return OneRow<float>(o, xnn_create_ceiling_nc_f32, xnn_setup_ceiling_nc_f32, 0u);
    case Unary::kRound:
      return OneRow<float>(o, xnn_create_bankers_rounding_nc_f32, xnn_setup_bankers_rounding_nc_f32, 0u);
    case Unary::kTruncate: return OneRow<float>(o, xnn_create_truncation_nc_f32, xnn_setup_truncation_nc_f32, 0u);
    case Unary::kSquare: return OneRow<float>(o, xnn_create_square_nc_f32, xnn_setup_square_nc_f32, 0u);
    case Unary::kSquareRoot: return OneRow<float>(o, xnn_create_square_root_nc_f32, xnn_setup_square_root_nc_f32, 0u);
    case Unary::kSigmoid: return OneRow<float>(o, xnn_create_sigmoid_nc_f32, xnn_setup_sigmoid_nc_f32, 0u);
    case Unary::kElu: return OneRow<float>(o, xnn_create_elu_nc_f32, xnn_setup_elu_nc_f32, Float(o.alpha), 0u);
    case Unary::kHardSwish: return OneRow<float>(o, xnn_create_hardswish_nc_f32, xnn_setup_hardswish_nc_f32, 0u);
    case Unary::kLeakyRelu:
      return OneRow<float>(o, xnn_create_leaky_relu_nc_f32, xnn_setup_leaky_relu_nc_f32, Float(o.alpha), 0u);
    default: throw NotThere();
  }
}

// ---- two tensors ----

template <typename T, typename SetUp>
void SetUpBroadcast(const Operation& o, Part& part, SetUp set_up) {
  const std::vector<size_t> a = Sizes(o.data.at(0).shape), b = Sizes(o.data.at(1).shape);
  part.set_up = [a, b, set_up](xnn_operator_t op, const void* const* data, void* result, pthreadpool_t pool) {
    return set_up(op, a.size(), a.data(), b.size(), b.data(), static_cast<const T*>(data[0]),
                  static_cast<const T*>(data[1]), static_cast<T*>(result), pool);
  };
}

template <typename T, typename Create, typename SetUp>
Part QuantisedBinary(const Operation& o, Create create, SetUp set_up) {
  const Quantisation &a = o.data.at(0).quantisation, &b = o.data.at(1).quantisation, &r = o.result_quantisation;
  const Range range = QuantisedRange(o);
  Part part;
  part.op =
      Make(create, static_cast<T>(a.zero_point), Float(a.scale()), static_cast<T>(b.zero_point), Float(b.scale()),
           static_cast<T>(r.zero_point), Float(r.scale()), static_cast<T>(range.low), static_cast<T>(range.high), 0u);
  SetUpBroadcast<T>(o, part, set_up);
  return part;
}

template <typename Create, typename SetUp, typename... Clamp>
Part FloatBinary(const Operation& o, Create create, SetUp set_up, Clamp... clamp) {
  Part part;
  part.op = Make(create, clamp..., 0u);
  SetUpBroadcast<float>(o, part, set_up);
  return part;
}

Part TwoTensors(const Operation& o) {
  const float low = Float(o.low), high = Float(o.high);
  if (o.element != Element::kFloat32) {
    const bool is_signed = o.element == Element::kInt8;
    switch (o.binary) {
      case Binary::kAdd:
        return is_signed ? QuantisedBinary<int8_t>(o, xnn_create_add_nd_qs8, xnn_setup_add_nd_qs8)
                         : QuantisedBinary<uint8_t>(o, xnn_create_add_nd_qu8, xnn_setup_add_nd_qu8);
      case Binary::kSubtract:
        return is_signed ? QuantisedBinary<int8_t>(o, xnn_create_subtract_nd_qs8, xnn_setup_subtract_nd_qs8)
                         : QuantisedBinary<uint8_t>(o, xnn_create_subtract_nd_qu8, xnn_setup_subtract_nd_qu8);
      case Binary::kMultiply:
        return is_signed ? QuantisedBinary<int8_t>(o, xnn_create_multiply_nd_qs8, xnn_setup_multiply_nd_qs8)
                         : QuantisedBinary<uint8_t>(o, xnn_create_multiply_nd_qu8, xnn_setup_multiply_nd_qu8);
      default: throw NotThere();
    }
  }
  switch (o.binary) {
    case Binary::kAdd: return FloatBinary(o, xnn_create_add_nd_f32, xnn_setup_add_nd_f32, low, high);
    case Binary::kSubtract: return FloatBinary(o, xnn_create_subtract_nd_f32, xnn_setup_subtract_nd_f32, low, high);
    case Binary::kMultiply: return FloatBinary(o, xnn_create_multiply_nd_f32, xnn_setup_multiply_nd_f32, low, high);
    case Binary::kDivide: return FloatBinary(o, xnn_create_divide_nd_f32, xnn_setup_divide_nd_f32, low, high);
    case Binary::kMaximum: return FloatBinary(o, xnn_create_maximum_nd_f32, xnn_setup_maximum_nd_f32);
    case Binary::kMinimum: return FloatBinary(o, xnn_create_minimum_nd_f32, xnn_setup_minimum_nd_f32);
    case Binary::kSquaredDifference:
      return FloatBinary(o, xnn_create_squared_difference_nd_f32, xnn_setup_squared_difference_nd_f32);
  }
  throw NotThere();
}

// ---- the rest ----

Part Conversion(const Operation& o) {
  const bool is_signed = o.element == Element::kInt8;
  const bool quantizes = o.kind == Kind::kQuantize;
  const Quantisation& q = quantizes ? o.result_quantisation : o.data[0].quantisation;
  const float scale = Float(q.scale());
  if (quantizes && is_signed) {
    return OneRow<float, int8_t>(o, xnn_create_convert_nc_f32_qs8, xnn_setup_convert_nc_f32_qs8, scale,
                                 static_cast<int8_t>(q.zero_point), int8_t{-128}, int8_t{127}, 0u);
  }
  if (quantizes) {
    return OneRow<float, uint8_t>(o, xnn_create_convert_nc_f32_qu8, xnn_setup_convert_nc_f32_qu8, scale,
                                  static_cast<uint8_t>(q.zero_point), uint8_t{0}, uint8_t{255}, 0u);
  }
  if (is_signed) {
    return OneRow<int8_t, float>(o, xnn_create_convert_nc_qs8_f32, xnn_setup_convert_nc_qs8_f32, scale,
                                 static_cast<int8_t>(q.zero_point), 0u);
  }
  return OneRow<uint8_t, float>(o, xnn_create_convert_nc_qu8_f32, xnn_setup_convert_nc_qu8_f32, scale,
                                static_cast<uint8_t>(q.zero_point), 0u);
}

Part Softmax(const Operation& o) {
  if (o.element == Element::kFloat32)
    return ManyRows<float>(o, xnn_create_softmax_nc_f32, xnn_setup_softmax_nc_f32, 0u);
  return ManyRows<uint8_t>(
      o, xnn_create_softmax_nc_qu8, xnn_setup_softmax_nc_qu8, Float(o.data[0].quantisation.scale()),
      static_cast<uint8_t>(o.result_quantisation.zero_point), Float(o.result_quantisation.scale()), 0u);
}

}  // namespace

std::vector<Part> BuildElementWise(const Operation& o, std::span<const Tensor> constants) {
  std::vector<Part> parts;
  switch (o.kind) {
    case Kind::kBinary: parts.push_back(TwoTensors(o)); break;
    case Kind::kQuantize:
    case Kind::kDequantize: parts.push_back(Conversion(o)); break;
    case Kind::kSoftmax: parts.push_back(Softmax(o)); break;
    case Kind::kPRelu:
      parts.push_back(ManyRows<float>(o, xnn_create_prelu_nc_f32, xnn_setup_prelu_nc_f32,
                                      static_cast<const float*>(ConstantOf(o.weights, constants).data<float>()), 0u));
      break;
    default:
      parts.push_back(o.element == Element::kFloat32 ? FloatFunction(o)
                      : o.element == Element::kInt8  ? SignedFunction(o)
                                                     : UnsignedFunction(o));
  }
  return parts;
}

}  // namespace collage::xnnpack_toolchain
