// build.cc: memory descriptors, attributes and primitive descriptors.
#include "backends/dnnl/primitive/build.h"

#include <dlfcn.h>

#include <algorithm>
#include <limits>

#include "collage/support/error.h"

namespace collage::dnnl_toolchain {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
using Desc = memory::desc;
using DType = memory::data_type;

constexpr auto kF32 = DType::f32;
constexpr auto kInference = prop_kind::forward_inference;

/// Row-major strides of `shape`, whose axes lie in memory in the order `physical`.
memory::dims StridesOf(const Shape& shape, const std::vector<int>& physical) {
  memory::dims strides(shape.size());
  int64_t stride = 1;
  for (size_t i = physical.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(physical[i]);
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

Desc DescOf(const Shape& shape, Layout layout) {
  return {shape, kF32, StridesOf(shape, PhysicalAxes(layout, static_cast<int>(shape.size())))};
}

Desc DescOf(const Operand& operand) { return DescOf(operand.shape, operand.layout); }

Desc AnyDesc(const Shape& shape) { return {shape, kF32, memory::format_tag::any}; }

/// oneDNN counts dilation from 0.
memory::dims Dilation(const Primitive& p) {
  memory::dims result = p.dilation;
  for (int64_t& distance : result) --distance;
  return result;
}

/// Weights as oneDNN's [G,] O, I, kernel…, with strides that describe how they lie.
Desc WeightsDesc(const Primitive& p) {
  const Shape& shape = p.weights.shape;
  const memory::dims strides = StridesOf(shape, PhysicalAxes(Layout::kPlain, static_cast<int>(shape.size())));
  memory::dims dims = shape;
  memory::dims steps = strides;
  if (p.groups > 1) {
    dims[0] /= p.groups;
    dims.insert(dims.begin(), p.groups);
    steps.insert(steps.begin(), strides[0] * dims[1]);
  }
  if (p.kind == Kind::kDeconv) {  // stored [G *] I, O
    const size_t first = p.groups > 1 ? 1 : 0;
    std::swap(dims[first], dims[first + 1]);
    std::swap(steps[first], steps[first + 1]);
  }
  return {dims, kF32, steps};
}

/// A matrix stored transposed is the same memory with other strides.
Desc MatrixDesc(const Operand& operand, bool transposed) {
  memory::dims dims = operand.shape;
  memory::dims strides = StridesOf(dims, PhysicalAxes(Layout::kPlain, static_cast<int>(dims.size())));
  if (transposed) {
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    std::swap(strides[dims.size() - 1], strides[dims.size() - 2]);
  }
  return {dims, kF32, strides};
}

algorithm EltwiseOf(Eltwise function) {
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
  }
  throw Error(ErrorCategory::kCorrupt, "a oneDNN kernel names an unknown function");
}

algorithm BinaryOf(Binary op) {
  switch (op) {
    case Binary::kAdd: return algorithm::binary_add;
    case Binary::kSubtract: return algorithm::binary_sub;
    case Binary::kMultiply: return algorithm::binary_mul;
    case Binary::kDivide: return algorithm::binary_div;
    case Binary::kMaximum: return algorithm::binary_max;
    case Binary::kMinimum: return algorithm::binary_min;
    case Binary::kNone: break;
  }
  throw Error(ErrorCategory::kCorrupt, "a oneDNN kernel names an unknown operator");
}

/// oneDNN wants finite bounds.
float Finite(double value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kLargest, kLargest));
}

/// Adds the post-ops to the attributes and their operands to `built`.
dnnl::primitive_attr Attributes(const Primitive& p, Built& built) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops post_ops;
  for (size_t i = 0; i < p.post_ops.size(); ++i) {
    const PostOp& op = p.post_ops[i];
    if (op.binary == Binary::kNone) {
      post_ops.append_eltwise(EltwiseOf(op.eltwise), Finite(op.alpha), Finite(op.beta));
      continue;
    }
    // Only operands in the result's own layout have fast implementations.
    const bool full = op.operand.shape == p.dst_shape;
    const Desc wanted = DescOf(op.operand.shape, full ? p.dst_layout : op.operand.layout);
    post_ops.append_binary(BinaryOf(op.binary), wanted);
    const int argument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1;
    built.bindings.push_back({argument, op.operand, DescOf(op.operand), wanted});
  }
  attributes.set_post_ops(post_ops);
  return attributes;
}

void Bind(Built& built, int argument, const Operand& operand, const Desc& given, const Desc& wanted) {
  built.bindings.push_back({argument, operand, given, wanted});
}

template <typename PrimitiveDesc>
void Finish(Built& built, const PrimitiveDesc& desc) {
  built.implementation = desc.impl_info_str();
  built.scratchpad = desc.scratchpad_desc();
}

/// Source as it is when it has the result's layout (in which the fast kernels work), else as oneDNN likes best.
Desc WindowSource(const Primitive& p) {
  return p.src.layout == p.dst_layout ? DescOf(p.src) : AnyDesc(p.src.shape);
}

template <typename Forward>
void BuildConvolution(const Primitive& p, algorithm how, Built& built) {
  const dnnl::primitive_attr attributes = Attributes(p, built);
  const Desc given_weights = WeightsDesc(p);
  const Desc weights = AnyDesc(given_weights.get_dims());
  built.dst = DescOf(p.dst_shape, p.dst_layout);
  const Desc bias = p.bias.defined() ? Desc({NumElements(p.bias.shape)}, kF32, memory::format_tag::a) : Desc();
  const typename Forward::primitive_desc desc(Engine(), kInference, how, WindowSource(p), weights, bias, built.dst,
                                              p.strides, Dilation(p), p.before, p.after, attributes);
  built.primitive = Forward(desc);
  Finish(built, desc);
  Bind(built, DNNL_ARG_SRC, p.src, DescOf(p.src), desc.src_desc());
  Bind(built, DNNL_ARG_WEIGHTS, p.weights, given_weights, desc.weights_desc());
  if (p.bias.defined()) Bind(built, DNNL_ARG_BIAS, p.bias, bias, bias);
}

void BuildPool(const Primitive& p, Built& built) {
  const dnnl::primitive_attr attributes = Attributes(p, built);
  const algorithm how = p.kind == Kind::kMaxPool   ? algorithm::pooling_max
                        : p.count_include_pad      ? algorithm::pooling_avg_include_padding
                                                   : algorithm::pooling_avg_exclude_padding;
  built.dst = DescOf(p.dst_shape, p.dst_layout);
  const dnnl::pooling_forward::primitive_desc desc(Engine(), kInference, how, WindowSource(p), built.dst, p.strides,
                                                   p.kernel, Dilation(p), p.before, p.after, attributes);
  built.primitive = dnnl::pooling_forward(desc);
  Finish(built, desc);
  Bind(built, DNNL_ARG_SRC, p.src, DescOf(p.src), desc.src_desc());
}

void BuildMatMul(const Primitive& p, Built& built) {
  const dnnl::primitive_attr attributes = Attributes(p, built);
  const Desc a = MatrixDesc(p.src, p.transpose_a);
  const Desc b = MatrixDesc(p.weights, p.transpose_b);
  built.dst = DescOf(p.dst_shape, Layout::kPlain);
  const Desc wanted_b = p.weights.constant >= 0 ? AnyDesc(b.get_dims()) : b;
  Desc bias;
  if (p.bias.defined()) bias = DescOf(p.bias.shape, Layout::kPlain);
  const dnnl::matmul::primitive_desc desc(Engine(), a, wanted_b, bias, built.dst, attributes);
  built.primitive = dnnl::matmul(desc);
  Finish(built, desc);
  Bind(built, DNNL_ARG_SRC, p.src, a, a);
  Bind(built, DNNL_ARG_WEIGHTS, p.weights, b, desc.weights_desc());
  if (p.bias.defined()) Bind(built, DNNL_ARG_BIAS, p.bias, bias, bias);
}

void BuildSoftmax(const Primitive& p, Built& built) {
  const Desc data = DescOf(p.src);
  const algorithm how = p.kind == Kind::kLogSoftmax ? algorithm::softmax_log : algorithm::softmax_accurate;
  built.dst = data;
  const dnnl::softmax_forward::primitive_desc desc(Engine(), kInference, how, data, data, static_cast<int>(p.axis),
                                                   Attributes(p, built));
  built.primitive = dnnl::softmax_forward(desc);
  Finish(built, desc);
  Bind(built, DNNL_ARG_SRC, p.src, data, data);
}

void BuildLayerNorm(const Primitive& p, Built& built) {
  const Desc data = DescOf(p.src);
  built.dst = data;
  const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  const dnnl::layer_normalization_forward::primitive_desc desc(Engine(), kInference, data, data,
                                                               static_cast<float>(p.epsilon), flags, Attributes(p, built));
  built.primitive = dnnl::layer_normalization_forward(desc);
  Finish(built, desc);
  const Desc scale = DescOf(p.weights);
  Bind(built, DNNL_ARG_SRC, p.src, data, data);
  Bind(built, DNNL_ARG_SCALE, p.weights, scale, scale);
  Bind(built, DNNL_ARG_SHIFT, p.bias, scale, scale);
}

}  // namespace

dnnl::engine& Engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& Stream() {
  static dnnl::stream stream(Engine());
  return stream;
}

void UseThreads(int num_threads) {
  // The OpenMP that oneDNN uses is whatever is loaded under this name: the system's, or the process's pool behind its interface.
  using SetFn = void(int);
  static SetFn* const set = [] {
    void* library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
    COLLAGE_CHECK(library != nullptr) << "oneDNN is loaded, but no libgomp.so.1";
    return reinterpret_cast<SetFn*>(dlsym(library, "omp_set_num_threads"));
  }();
  if (set != nullptr) set(num_threads);
}

Built Build(const Primitive& primitive) {
  Built built;
  switch (primitive.kind) {
    case Kind::kConv:
      BuildConvolution<dnnl::convolution_forward>(primitive, algorithm::convolution_direct, built);
      break;
    case Kind::kDeconv:
      BuildConvolution<dnnl::deconvolution_forward>(primitive, algorithm::deconvolution_direct, built);
      break;
    case Kind::kMaxPool:
    case Kind::kAvgPool:
      BuildPool(primitive, built);
      break;
    case Kind::kMatMul:
      BuildMatMul(primitive, built);
      break;
    case Kind::kSoftmax:
    case Kind::kLogSoftmax:
      BuildSoftmax(primitive, built);
      break;
    case Kind::kLayerNorm:
      BuildLayerNorm(primitive, built);
      break;
    default:
      throw Error(ErrorCategory::kCorrupt, "a oneDNN kernel is of an unknown kind");
  }
  return built;
}

}  // namespace collage::dnnl_toolchain
