// parts.cc: memory descriptors, attributes and bindings.
#include "backends/dnnl/primitive/parts.h"

#include <algorithm>
#include <limits>

#include "collage/support/error.h"

namespace collage::dnnl_toolchain {

using dnnl::algorithm;
using dnnl::memory;

DType TypeOf(DataType dtype) {
  if (dtype == kFloat32) return DType::f32;
  if (dtype == kBFloat16) return DType::bf16;
  if (dtype == kFloat16) return DType::f16;
  if (dtype == kInt32) return DType::s32;
  if (dtype == kInt8) return DType::s8;
  if (dtype == kUInt8 || dtype.is_bool()) return DType::u8;
  throw Error(ErrorCategory::kCorrupt, "a oneDNN kernel names a dtype that oneDNN has not: " + dtype.ToString());
}

memory::dims StridesOf(const Shape& shape, Layout layout) {
  const std::vector<int> physical = PhysicalAxes(layout, static_cast<int>(shape.size()));
  memory::dims strides(shape.size());
  int64_t stride = 1;
  for (size_t i = physical.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(physical[i]);
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

Desc DescOf(const Shape& shape, Layout layout, DataType dtype) {
  if (shape.empty()) return {{1}, TypeOf(dtype), memory::dims{1}};  // oneDNN has no scalars
  return {shape, TypeOf(dtype), StridesOf(shape, layout)};
}

Desc DescLike(const Operand& operand, const Operand& dst) {
  return DescOf(operand.shape, operand.shape == dst.shape ? dst.layout : operand.layout, operand.dtype);
}

algorithm AlgorithmOf(Eltwise function) {
  switch (function) {
    case Eltwise::kRelu: return algorithm::eltwise_relu;
    case Eltwise::kClip: return algorithm::eltwise_clip;
    case Eltwise::kLinear: return algorithm::eltwise_linear;
    case Eltwise::kLogistic: return algorithm::eltwise_logistic;
    case Eltwise::kTanh: return algorithm::eltwise_tanh;
    case Eltwise::kAbs: return algorithm::eltwise_abs;
    case Eltwise::kExp: return algorithm::eltwise_exp;
    case Eltwise::kSqrt: return algorithm::eltwise_sqrt;
    case Eltwise::kGeluErf: return algorithm::eltwise_gelu_erf;
    case Eltwise::kGeluTanh: return algorithm::eltwise_gelu_tanh;
    case Eltwise::kSwish: return algorithm::eltwise_swish;
    case Eltwise::kHardSwish: return algorithm::eltwise_hardswish;
    case Eltwise::kMish: return algorithm::eltwise_mish;
    case Eltwise::kLog: return algorithm::eltwise_log;
    case Eltwise::kPower: return algorithm::eltwise_pow;
    case Eltwise::kRound: return algorithm::eltwise_round;
    case Eltwise::kElu: return algorithm::eltwise_elu;
    case Eltwise::kSquare: return algorithm::eltwise_square;
    case Eltwise::kSoftRelu: return algorithm::eltwise_soft_relu;
  }
  throw Error(ErrorCategory::kCorrupt, "a oneDNN kernel names an unknown function");
}

algorithm AlgorithmOf(Binary op) {
  switch (op) {
    case Binary::kAdd: return algorithm::binary_add;
    case Binary::kSubtract: return algorithm::binary_sub;
    case Binary::kMultiply: return algorithm::binary_mul;
    case Binary::kDivide: return algorithm::binary_div;
    case Binary::kMaximum: return algorithm::binary_max;
    case Binary::kMinimum: return algorithm::binary_min;
    case Binary::kEqual: return algorithm::binary_eq;
    case Binary::kNotEqual: return algorithm::binary_ne;
    case Binary::kLess: return algorithm::binary_lt;
    case Binary::kLessEqual: return algorithm::binary_le;
    case Binary::kGreater: return algorithm::binary_gt;
    case Binary::kGreaterEqual: return algorithm::binary_ge;
    case Binary::kNone:
    case Binary::kPrelu: break;
  }
  throw Error(ErrorCategory::kCorrupt, "a oneDNN kernel names an unknown operator");
}

float Finite(double value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kLargest, kLargest));
}

namespace {

/// Slopes, read as float32: one for each index of the axes along which there are several.
void AppendPrelu(const Operand& slopes, int position, dnnl::post_ops& post_ops, Built& built) {
  int mask = 0;
  for (size_t axis = 0; axis < slopes.shape.size(); ++axis) mask |= slopes.shape[axis] == 1 ? 0 : 1 << axis;
  post_ops.append_prelu(mask);
  const int argument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_WEIGHTS;
  Bind(built, argument, slopes, DescOf(slopes), DescOf(slopes.shape, Layout::kPlain, kFloat32));
}

}  // namespace

dnnl::primitive_attr Attributes(const Primitive& p, Built& built, size_t first) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops post_ops;
  for (size_t i = first; i < p.post_ops.size(); ++i) {
    const PostOp& op = p.post_ops[i];
    if (op.binary == Binary::kNone) {
      post_ops.append_eltwise(AlgorithmOf(op.eltwise), Finite(op.alpha), Finite(op.beta));
      continue;
    }
    const auto position = static_cast<int>(i - first);
    if (op.binary == Binary::kPrelu) {
      AppendPrelu(op.operand, position, post_ops, built);
      continue;
    }
    const Desc wanted = DescLike(op.operand, p.dst);
    post_ops.append_binary(AlgorithmOf(op.binary), wanted);
    const int argument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1;
    Bind(built, argument, op.operand, DescOf(op.operand), wanted);
  }
  attributes.set_post_ops(post_ops);
  return attributes;
}

namespace {

/// A memory of one number.
template <typename T>
memory Number(DType type, T value) {
  memory result({{1}, type, memory::dims{1}}, Engine());
  *static_cast<T*>(result.get_data_handle()) = value;
  return result;
}

}  // namespace

void SetQuantisation(const Operand& operand, int argument, ScaleAxis axis, dnnl::primitive_attr& attributes,
                     Built& built) {
  if (operand.scales >= 0) {
    attributes.set_scales_mask(argument, axis.mask);
    Operand scales;
    scales.constant = operand.scales;
    scales.shape = {axis.count};
    Bind(built, DNNL_ARG_ATTR_SCALES | argument, scales, DescOf(scales), DescOf(scales));
  } else if (operand.scale != 1) {
    attributes.set_scales_mask(argument, 0);
    built.numbers.emplace_back(DNNL_ARG_ATTR_SCALES | argument, Number(DType::f32, static_cast<float>(operand.scale)));
  }
  if (operand.zero_input >= 0) {
    attributes.set_zero_points_mask(argument, 0);
    Operand zero;
    zero.input = operand.zero_input;
    zero.shape = {1};
    zero.dtype = kInt32;
    Bind(built, DNNL_ARG_ATTR_ZERO_POINTS | argument, zero, DescOf(zero), DescOf(zero));
  } else if (operand.zero != 0) {
    attributes.set_zero_points_mask(argument, 0);
    built.numbers.emplace_back(DNNL_ARG_ATTR_ZERO_POINTS | argument,
                               Number(DType::s32, static_cast<int32_t>(operand.zero)));
  }
}

void Bind(Built& built, int argument, const Operand& operand, const Desc& given, const Desc& wanted) {
  built.bindings.push_back({argument, operand, given, wanted});
}

}  // namespace collage::dnnl_toolchain
