// normalisations.cc: softmax, normalisations, reductions.
#include "backends/dnnl/primitive/parts.h"

namespace collage::dnnl_toolchain {
namespace {

using dnnl::algorithm;
using dnnl::memory;

void BuildSoftmax(const Primitive& p, Built& built) {
  const Desc data = DescOf(p.src);
  const algorithm how = p.kind == Kind::kLogSoftmax ? algorithm::softmax_log : algorithm::softmax_accurate;
  built.dst = DescOf(p.dst);
  const dnnl::softmax_forward::primitive_desc desc(Engine(), kInference, how, data, built.dst, static_cast<int>(p.axis),
                                                   Attributes(p, built));
  built.primitive = dnnl::softmax_forward(desc);
  Finish(built, desc);
  Bind(built, DNNL_ARG_SRC, p.src, data, data);
}

/// Scale and shift are read as float32.
void BindScaleAndShift(const Primitive& p, Built& built) {
  for (const auto& [argument, operand] : {std::pair{DNNL_ARG_SCALE, p.weights}, std::pair{DNNL_ARG_SHIFT, p.bias}}) {
    if (operand.defined())
      Bind(built, argument, operand, DescOf(operand), DescOf(operand.shape, Layout::kPlain, kFloat32));
  }
}

void BuildLayerNorm(const Primitive& p, Built& built) {
  const Desc data = DescOf(p.src);
  built.dst = DescOf(p.dst);
  const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  const dnnl::layer_normalization_forward::primitive_desc desc(
      Engine(), kInference, data, built.dst, static_cast<float>(p.epsilon), flags, Attributes(p, built));
  built.primitive = dnnl::layer_normalization_forward(desc);
  Finish(built, desc);
  Bind(built, DNNL_ARG_SRC, p.src, data, data);
  BindScaleAndShift(p, built);
}

/// Batch normalisation, which finds mean and variance itself, of one sample: all planes are its channels.
void BuildInstanceNorm(const Primitive& p, Built& built) {
  Shape shape = p.src.shape;
  shape[1] *= shape[0];
  shape[0] = 1;
  const Desc data = DescOf(shape, Layout::kPlain, p.src.dtype);
  built.dst = data;
  auto flags = dnnl::normalization_flags::none;
  if (p.weights.defined()) flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  const dnnl::batch_normalization_forward::primitive_desc desc(
      Engine(), kInference, data, data, static_cast<float>(p.epsilon), flags, Attributes(p, built));
  built.primitive = dnnl::batch_normalization_forward(desc);
  Finish(built, desc);
  Bind(built, DNNL_ARG_SRC, p.src, data, data);
  BindScaleAndShift(p, built);
}

void BuildLrn(const Primitive& p, Built& built) {
  built.dst = DescOf(p.dst);
  const Desc src = DescOf(p.src.shape, p.dst.layout, p.src.dtype);
  const dnnl::lrn_forward::primitive_desc desc(Engine(), kInference, algorithm::lrn_across_channels, src, built.dst,
                                               p.axis, static_cast<float>(p.alpha), static_cast<float>(p.beta),
                                               static_cast<float>(p.offset), Attributes(p, built));
  built.primitive = dnnl::lrn_forward(desc);
  Finish(built, desc);
  Bind(built, DNNL_ARG_SRC, p.src, DescOf(p.src), src);
}

algorithm AlgorithmOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum: return algorithm::reduction_sum;
    case Reduction::kMean: return algorithm::reduction_mean;
    case Reduction::kMax: return algorithm::reduction_max;
    case Reduction::kMin: return algorithm::reduction_min;
    case Reduction::kProduct: break;
  }
  return algorithm::reduction_mul;
}

}  // namespace

void BuildNormalisation(const Primitive& p, Built& built) {
  if (p.kind == Kind::kLayerNorm) return BuildLayerNorm(p, built);
  if (p.kind == Kind::kInstanceNorm) return BuildInstanceNorm(p, built);
  if (p.kind == Kind::kLrn) return BuildLrn(p, built);
  BuildSoftmax(p, built);
}

void BuildReduction(const Primitive& p, Built& built) {
  const dnnl::primitive_attr attributes = Attributes(p, built);
  const Desc src = DescOf(p.src);
  built.dst = DescOf(p.dst);
  const dnnl::reduction::primitive_desc desc(Engine(), AlgorithmOf(p.reduction), src, built.dst, 0, 0, attributes);
  built.primitive = dnnl::reduction(desc);
  Finish(built, desc);
  Bind(built, DNNL_ARG_SRC, p.src, src, src);
}

}  // namespace collage::dnnl_toolchain
