// loader.cc: the module that the runtime opens for oneDNN kernels. oneDNN computes with OpenMP; before it is loaded,
// OpenMP is put on the process's own thread pool, so that no second team of spinning threads competes with it.
#include "backends/dnnl/query.h"
#include "collage/runtime/kernel.h"
#include "collage/runtime/micro_kernels.h"
#include "support/dynamic_library.h"

#if __has_include("runtime/threads/shared_gomp.h")
#include "runtime/threads/shared_gomp.h"
#endif

namespace collage::dnnl_toolchain {
namespace {

void* OpenImplementation(const char* symbol) {
#if __has_include("runtime/threads/shared_gomp.h")
  UseSharedGomp();
#endif
  return FindModuleSymbol("libcollage_rt_dnnl_impl.so", symbol);
}

}  // namespace
}  // namespace collage::dnnl_toolchain

extern "C" collage::KernelLoader* collage_make_kernel_loader() {
  void* make = collage::dnnl_toolchain::OpenImplementation("collage_dnnl_make_loader");
  return reinterpret_cast<collage::MakeKernelLoaderFn*>(make)();
}

extern "C" collage::Result<collage::dnnl_toolchain::Implementation> collage_dnnl_query(
    const collage::dnnl_toolchain::Primitive& primitive, int num_threads) {
  static void* const query = collage::dnnl_toolchain::OpenImplementation("collage_dnnl_query_implementation");
  return reinterpret_cast<collage::dnnl_toolchain::QueryFn*>(query)(primitive, num_threads);
}

extern "C" collage::Result<collage::dnnl_toolchain::PreparedCall> collage_dnnl_prepare_call(
    const collage::dnnl_toolchain::Primitive& primitive, std::span<const collage::Tensor> constants, int num_threads) {
  static void* const prepare = collage::dnnl_toolchain::OpenImplementation("collage_dnnl_prepare_primitive_call");
  return reinterpret_cast<collage::dnnl_toolchain::PrepareCallFn*>(prepare)(primitive, constants, num_threads);
}

extern "C" void* collage_find_micro_kernel(const char* request) {
  static void* const find = collage::dnnl_toolchain::OpenImplementation("collage_dnnl_find_call");
  return reinterpret_cast<collage::FindMicroKernelFn*>(find)(request);
}
