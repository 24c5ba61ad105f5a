// windows.cc: pools and resampling.
#include "backends/dnnl/primitive/parts.h"

namespace collage::dnnl_toolchain {

using dnnl::algorithm;
using dnnl::memory;

void BuildPool(const Primitive& p, Built& built) {
  const dnnl::primitive_attr attributes = Attributes(p, built);
  const algorithm how = p.kind == Kind::kMaxPool ? algorithm::pooling_max
                        : p.count_include_pad    ? algorithm::pooling_avg_include_padding
                                                 : algorithm::pooling_avg_exclude_padding;
  built.dst = DescOf(p.dst);
  const Desc src = DescOf(p.src.shape, p.dst.layout, p.src.dtype);
  const memory::dims dilation(p.kernel.size(), 0);
  const dnnl::pooling_forward::primitive_desc desc(Engine(), kInference, how, src, built.dst, p.strides, p.kernel,
                                                   dilation, p.before, p.after, attributes);
  built.primitive = dnnl::pooling_forward(desc);
  Finish(built, desc);
  Bind(built, DNNL_ARG_SRC, p.src, DescOf(p.src), src);
}

void BuildResampling(const Primitive& p, Built& built) {
  const dnnl::primitive_attr attributes = Attributes(p, built);
  built.dst = DescOf(p.dst);
  const Desc src = DescOf(p.src.shape, p.dst.layout, p.src.dtype);
  const algorithm how = p.is_linear ? algorithm::resampling_linear : algorithm::resampling_nearest;
  const dnnl::resampling_forward::primitive_desc desc(Engine(), kInference, how, src, built.dst, attributes);
  built.primitive = dnnl::resampling_forward(desc);
  Finish(built, desc);
  Bind(built, DNNL_ARG_SRC, p.src, DescOf(p.src), src);
}

}  // namespace collage::dnnl_toolchain
