// build.cc: which function builds which kind.
#include "backends/dnnl/primitive/build.h"

#include "backends/dnnl/primitive/parts.h"

namespace collage::dnnl_toolchain {

Built Build(const Primitive& primitive) {
  Built built;
  switch (primitive.kind) {
    case Kind::kConv:
    case Kind::kDeconv: BuildConvolution(primitive, built); break;
    case Kind::kMatMul: BuildMatMul(primitive, built); break;
    case Kind::kMaxPool:
    case Kind::kAvgPool: BuildPool(primitive, built); break;
    case Kind::kSoftmax:
    case Kind::kLogSoftmax:
    case Kind::kLayerNorm:
    case Kind::kInstanceNorm:
    case Kind::kLrn: BuildNormalisation(primitive, built); break;
    case Kind::kReduction: BuildReduction(primitive, built); break;
    case Kind::kResampling: BuildResampling(primitive, built); break;
    case Kind::kConcat: BuildConcat(primitive, built); break;
    case Kind::kBinary: BuildBinary(primitive, built); break;
    case Kind::kEltwise: BuildEltwise(primitive, built); break;
    case Kind::kReorder: BuildReorder(primitive, built); break;
  }
  return built;
}

}  // namespace collage::dnnl_toolchain
