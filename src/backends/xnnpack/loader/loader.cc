// loader.cc: the module that the runtime opens for XNNPACK kernels. Before XNNPACK is loaded, the name of the thread
// pool library that it needs is taken by ours, so that it computes on the process's own pool.
#include <dlfcn.h>

#include <filesystem>

#include "backends/xnnpack/query.h"
#include "collage/runtime/kernel.h"
#include "support/dynamic_library.h"

namespace collage::xnnpack_toolchain {
namespace {

constexpr const char* kPoolLibrary = "libpthreadpool.so.0";

/// Nothing happens when another library of that name is loaded already, or ours is missing: the module sees that and
/// computes on one thread.
void UseSharedPool() {
  if (void* loaded = dlopen(kPoolLibrary, RTLD_LAZY | RTLD_NOLOAD)) {
    dlclose(loaded);  // only this call's reference
    return;
  }
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&UseSharedPool), &info) == 0 || info.dli_fname == nullptr) return;
  std::error_code ignored;
  const auto folder = std::filesystem::weakly_canonical(info.dli_fname, ignored).parent_path();
  dlopen((folder / "collage_pthreadpool" / kPoolLibrary).c_str(), RTLD_NOW | RTLD_LOCAL);
}

void* OpenImplementation(const char* symbol) {
  UseSharedPool();
  return FindModuleSymbol("libcollage_rt_xnnpack_impl.so", symbol);
}

}  // namespace
}  // namespace collage::xnnpack_toolchain

extern "C" collage::KernelLoader* collage_make_kernel_loader() {
  void* make = collage::xnnpack_toolchain::OpenImplementation("collage_xnnpack_make_loader");
  return reinterpret_cast<collage::MakeKernelLoaderFn*>(make)();
}

extern "C" collage::Result<void> collage_xnnpack_query(const collage::xnnpack_toolchain::Operation& operation,
                                                       std::span<const collage::Tensor> constants) {
  using collage::xnnpack_toolchain::QueryFn;
  void* query = collage::xnnpack_toolchain::OpenImplementation("collage_xnnpack_query_operator");
  return reinterpret_cast<QueryFn*>(query)(operation, constants);
}
