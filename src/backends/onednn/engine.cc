// engine.cc: one engine, streams by thread, and the setting of whatever OpenMP the library found.
#include "backends/onednn/engine.h"

#include <dlfcn.h>

#include "collage/support/error.h"

namespace collage::onednn {

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

}  // namespace collage::onednn
