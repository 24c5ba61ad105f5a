// elementwise.cc: binary operators, functions, concatenation and reorders.
#include "backends/dnnl/primitive/parts.h"

namespace collage::dnnl_toolchain {

using dnnl::memory;

void BuildConcat(const Primitive& p, Built& built) {
  std::vector<Operand> operands{p.src};
  operands.insert(operands.end(), p.more.begin(), p.more.end());
  std::vector<Desc> sources;
  for (const Operand& operand : operands) sources.push_back(DescOf(operand.shape, p.dst.layout, operand.dtype));
  built.dst = DescOf(p.dst);
  const dnnl::concat::primitive_desc desc(Engine(), built.dst, static_cast<int>(p.axis), sources, Attributes(p, built));
  built.primitive = dnnl::concat(desc);
  Finish(built, desc);
  for (size_t i = 0; i < operands.size(); ++i) {
    Bind(built, DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), operands[i], DescOf(operands[i]), sources[i]);
  }
}

namespace {

/// A primitive of its own.
void BuildPrelu(const Primitive& p, Built& built) {
  const Desc src = DescLike(p.src, p.dst);
  const Desc slopes = DescLike(p.weights, p.dst);
  built.dst = DescOf(p.dst);
  const dnnl::prelu_forward::primitive_desc desc(Engine(), kInference, src, slopes, built.dst, Attributes(p, built));
  built.primitive = dnnl::prelu_forward(desc);
  Finish(built, desc);
  Bind(built, DNNL_ARG_SRC, p.src, DescOf(p.src), src);
  Bind(built, DNNL_ARG_WEIGHTS, p.weights, DescOf(p.weights), slopes);
}

}  // namespace

void BuildBinary(const Primitive& p, Built& built) {
  if (p.binary == Binary::kPrelu) return BuildPrelu(p, built);
  dnnl::primitive_attr attributes = Attributes(p, built);
  SetQuantisation(p.src, DNNL_ARG_SRC_0, {}, attributes, built);
  SetQuantisation(p.weights, DNNL_ARG_SRC_1, {}, attributes, built);
  const Desc first = DescLike(p.src, p.dst);
  const Desc second = DescLike(p.weights, p.dst);
  built.dst = DescOf(p.dst);
  const dnnl::binary::primitive_desc desc(Engine(), AlgorithmOf(p.binary), first, second, built.dst, attributes);
  built.primitive = dnnl::binary(desc);
  Finish(built, desc);
  Bind(built, DNNL_ARG_SRC_0, p.src, DescOf(p.src), first);
  Bind(built, DNNL_ARG_SRC_1, p.weights, DescOf(p.weights), second);
}

void BuildEltwise(const Primitive& p, Built& built) {
  const PostOp& function = p.post_ops.at(0);
  const dnnl::primitive_attr attributes = Attributes(p, built, 1);
  const Desc src = DescLike(p.src, p.dst);
  built.dst = DescOf(p.dst);
  const dnnl::eltwise_forward::primitive_desc desc(Engine(), kInference, AlgorithmOf(function.eltwise), src, built.dst,
                                                   Finite(function.alpha), Finite(function.beta), attributes);
  built.primitive = dnnl::eltwise_forward(desc);
  Finish(built, desc);
  Bind(built, DNNL_ARG_SRC, p.src, DescOf(p.src), src);
}

void BuildReorder(const Primitive& p, Built& built) {
  dnnl::primitive_attr attributes = Attributes(p, built);
  const ScaleAxis axis = p.axis < 0 ? ScaleAxis{} : ScaleAxis{1 << p.axis, p.dst.shape[static_cast<size_t>(p.axis)]};
  SetQuantisation(p.src, DNNL_ARG_SRC, axis, attributes, built);
  SetQuantisation(p.dst, DNNL_ARG_DST, axis, attributes, built);
  Desc src = DescOf(p.src);
  if (!p.axes.empty()) {
    const memory::dims strides = StridesOf(p.src.shape, p.src.layout);
    memory::dims permuted;
    for (int64_t from : p.axes) permuted.push_back(strides[static_cast<size_t>(from)]);
    src = Desc(p.dst.shape, TypeOf(p.src.dtype), permuted);
  }
  built.dst = DescOf(p.dst);
  const dnnl::reorder::primitive_desc desc(Engine(), src, Engine(), built.dst, attributes);
  built.primitive = dnnl::reorder(desc);
  Finish(built, desc);
  Bind(built, DNNL_ARG_SRC, p.src, src, src);
}

}  // namespace collage::dnnl_toolchain
