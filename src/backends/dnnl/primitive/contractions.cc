// contractions.cc: convolutions and matrix products, of floats or 8-bit integers.
#include "backends/dnnl/primitive/parts.h"

namespace collage::dnnl_toolchain {
namespace {

using dnnl::algorithm;
using dnnl::memory;

/// oneDNN counts dilation from 0.
memory::dims Dilation(const Primitive& p) {
  memory::dims result = p.dilation;
  for (int64_t& distance : result) --distance;
  return result;
}

/// Weights as oneDNN's [G,] O, I, kernel…, with strides that describe how they lie.
Desc WeightsDesc(const Primitive& p) {
  const Shape& shape = p.weights.shape;
  const memory::dims strides = StridesOf(shape, Layout::kPlain);
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
  return {dims, TypeOf(p.weights.dtype), steps};
}

/// Returns the type in which data are multiplied: their own, or a narrower one that they are rounded to.
DType DataTypeOf(const Primitive& p) { return TypeOf(p.src.dtype == kFloat32 ? p.multiplied_as : p.src.dtype); }

/// A matrix stored transposed is the same memory with other strides.
Desc MatrixDesc(const Operand& operand, bool transposed) {
  memory::dims dims = operand.shape;
  memory::dims strides = StridesOf(dims, Layout::kPlain);
  if (transposed) {
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    std::swap(strides[dims.size() - 1], strides[dims.size() - 2]);
  }
  return {dims, TypeOf(operand.dtype), strides};
}

bool IsByte(const Operand& operand) { return operand.dtype == kInt8 || operand.dtype == kUInt8; }

/// Weights are read as signed bytes for 8-bit data, else as the data's floats.
DType WeightsType(const Primitive& p) { return IsByte(p.src) ? DType::s8 : DataTypeOf(p); }

/// `desc` with elements of `type`.
Desc WithType(const Desc& desc, DType type) { return {desc.get_dims(), type, desc.get_strides()}; }

/// Post-ops, scales and zero points; those of float data's weights are taken off when the weights are packed.
dnnl::primitive_attr ContractionAttributes(const Primitive& p, ScaleAxis channels, Built& built) {
  dnnl::primitive_attr attributes = Attributes(p, built);
  if (IsByte(p.src)) {
    SetQuantisation(p.src, DNNL_ARG_SRC, {}, attributes, built);
    Operand weights = p.weights;
    weights.zero = 0;  // they become signed bytes around 0
    SetQuantisation(weights, DNNL_ARG_WEIGHTS, channels, attributes, built);
  }
  SetQuantisation(p.dst, DNNL_ARG_DST, {}, attributes, built);
  return attributes;
}

/// A bias along `channels` of the result, as float32.
Desc BiasDesc(const Operand& bias, DType type, const memory::dims& dims) {
  if (!bias.defined()) return {};
  memory::dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return {dims, type, strides};
}

void BindBias(const Primitive& p, const Desc& wanted, Built& built) {
  if (!p.bias.defined()) return;
  Bind(built, DNNL_ARG_BIAS, p.bias, BiasDesc(p.bias, TypeOf(p.bias.dtype), wanted.get_dims()), wanted);
}

/// Source as it is when it has the result's layout (in which the fast kernels work), else as oneDNN likes best.
Desc WindowSource(const Primitive& p) {
  if (p.src.layout == p.dst.layout) return WithType(DescOf(p.src), DataTypeOf(p));
  return {p.src.shape, DataTypeOf(p), memory::format_tag::any};
}

template <typename Forward>
void BuildForward(const Primitive& p, algorithm how, Built& built) {
  const int mask = p.groups > 1 ? 3 : 1;
  const dnnl::primitive_attr attributes = ContractionAttributes(p, {mask, p.dst.shape[1]}, built);
  const Desc given = WeightsDesc(p);
  const Desc weights{given.get_dims(), WeightsType(p), memory::format_tag::any};
  built.dst = DescOf(p.dst);
  const Desc bias = BiasDesc(p.bias, DType::f32, {p.dst.shape[1]});
  const typename Forward::primitive_desc desc(Engine(), kInference, how, WindowSource(p), weights, bias, built.dst,
                                              p.strides, Dilation(p), p.before, p.after, attributes);
  built.primitive = Forward(desc);
  Finish(built, desc);
  Bind(built, DNNL_ARG_SRC, p.src, DescOf(p.src), desc.src_desc());
  Bind(built, DNNL_ARG_WEIGHTS, p.weights, given, desc.weights_desc());
  built.bindings.back().scale_mask = mask;
  BindBias(p, bias, built);
}

}  // namespace

void BuildConvolution(const Primitive& p, Built& built) {
  if (p.kind == Kind::kConv) {
    BuildForward<dnnl::convolution_forward>(p, algorithm::convolution_direct, built);
  } else {
    BuildForward<dnnl::deconvolution_forward>(p, algorithm::deconvolution_direct, built);
  }
}

void BuildMatMul(const Primitive& p, Built& built) {
  const int last = static_cast<int>(p.dst.shape.size()) - 1;
  const dnnl::primitive_attr attributes = ContractionAttributes(p, {1 << last, p.dst.shape.back()}, built);
  const Desc a = MatrixDesc(p.src, p.transpose_a);
  const Desc b = MatrixDesc(p.weights, p.transpose_b);
  built.dst = DescOf(p.dst);
  const Desc wanted_a = WithType(a, DataTypeOf(p));
  const Desc wanted_b = p.weights.constant >= 0 ? Desc(b.get_dims(), WeightsType(p), memory::format_tag::any)
                        : IsByte(p.src)         ? b
                                                : WithType(b, WeightsType(p));
  const Desc bias = BiasDesc(p.bias, DType::f32, p.bias.shape);
  const dnnl::matmul::primitive_desc desc(Engine(), wanted_a, wanted_b, bias, built.dst, attributes);
  built.primitive = dnnl::matmul(desc);
  Finish(built, desc);
  Bind(built, DNNL_ARG_SRC, p.src, a, wanted_a);
  Bind(built, DNNL_ARG_WEIGHTS, p.weights, b, desc.weights_desc());
  built.bindings.back().scale_mask = 1 << last;
  BindBias(p, bias, built);
}

}  // namespace collage::dnnl_toolchain
