// parts.h: memory descriptors, attributes and bindings, of which all kinds of primitives are made.
#pragma once

#include "backends/dnnl/primitive/build.h"

namespace collage::dnnl_toolchain {

using Desc = dnnl::memory::desc;
using DType = dnnl::memory::data_type;

inline constexpr auto kInference = dnnl::prop_kind::forward_inference;

DType TypeOf(DataType dtype);
/// Row-major strides of `shape`, whose axes lie in memory in the order of `layout`.
dnnl::memory::dims StridesOf(const Shape& shape, Layout layout);
Desc DescOf(const Shape& shape, Layout layout, DataType dtype);
inline Desc DescOf(const Operand& operand) { return DescOf(operand.shape, operand.layout, operand.dtype); }
/// `operand` in the layout of the result if it has its rank and is not broadcast, since only that is fast.
Desc DescLike(const Operand& operand, const Operand& dst);

dnnl::algorithm AlgorithmOf(Eltwise function);
dnnl::algorithm AlgorithmOf(Binary op);
/// oneDNN wants finite bounds.
float Finite(double value);

/// Attributes with the post-ops from number `first` on, and the scratchpad given by us. Their operands go to `built`.
dnnl::primitive_attr Attributes(const Primitive& primitive, Built& built, size_t first = 0);
/// Axis of an operand's scales, one per channel: oneDNN's mask, and their number.
struct ScaleAxis {
  int mask = 0;
  int64_t count = 1;
};
/// Scale and zero point of `argument` as attributes and arguments.
void SetQuantisation(const Operand& operand, int argument, ScaleAxis axis, dnnl::primitive_attr& attributes,
                     Built& built);

void Bind(Built& built, int argument, const Operand& operand, const Desc& given, const Desc& wanted);

template <typename PrimitiveDesc>
void Finish(Built& built, const PrimitiveDesc& desc) {
  built.implementation = desc.impl_info_str();
  built.scratchpad = desc.scratchpad_desc();
}

// The kinds, by family.

void BuildConvolution(const Primitive& primitive, Built& built);
void BuildMatMul(const Primitive& primitive, Built& built);
void BuildPool(const Primitive& primitive, Built& built);
void BuildResampling(const Primitive& primitive, Built& built);
void BuildNormalisation(const Primitive& primitive, Built& built);
void BuildReduction(const Primitive& primitive, Built& built);
void BuildConcat(const Primitive& primitive, Built& built);
void BuildBinary(const Primitive& primitive, Built& built);
void BuildEltwise(const Primitive& primitive, Built& built);
void BuildReorder(const Primitive& primitive, Built& built);

}  // namespace collage::dnnl_toolchain
