// build.cc: the engine, and which function builds which kind.
#include "backends/dnnl/primitive/build.h"

#include <dlfcn.h>

#include "backends/dnnl/primitive/parts.h"
#include "collage/support/error.h"

namespace collage::dnnl_toolchain {

dnnl::engine& Engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& Stream() {
  static thread_local dnnl::stream stream(Engine());
  return stream;
}

void UseThreads(int num_threads) {
  // The OpenMP that oneDNN uses is whatever is loaded under this name: the system's, or the process's pool behind its
  // interface.
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
