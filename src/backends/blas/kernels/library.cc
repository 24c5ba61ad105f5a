// library.cc: opens BLAS libraries so that none sees another: each defines the same names.
#include "backends/blas/kernels/library.h"

#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>

#include "backends/blas/libraries.h"
#include "collage/support/error.h"
#include "runtime/threads/shared_gomp.h"

namespace collage::blas_toolchain {
namespace {

constexpr const char* kHint = "apt-get install libopenblas0-pthread libblis4-serial, or pip install mkl";

/// Its own names before those of the process, and hidden from all others. Sanitizers replace functions of the C library
/// and cannot work with such a library; no program that is tested with them has another BLAS.
int Flags() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return RTLD_NOW | RTLD_LOCAL;
#else
  return RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif
}

/// Calls `name(value)` if the library has it.
void CallIfThere(void* handle, const char* name, int value) {
  using SetFn = int(int);
  if (auto* set = reinterpret_cast<SetFn*>(dlsym(handle, name))) set(value);
}

/// OpenBLAS starts a thread per processor when it is loaded; they would spin for a moment, for work that never comes.
void EndThreads(void* handle) {
  using EndFn = int();
  if (auto* end = reinterpret_cast<EndFn*>(dlsym(handle, "blas_thread_shutdown_"))) end();
}

template <typename Fn>
Fn* Symbol(void* handle, const std::string& library, const char* name) {
  auto* found = reinterpret_cast<Fn*>(dlsym(handle, name));
  if (found == nullptr) throw Error(ErrorCategory::kUnavailable, "'" + library + "' has no '" + name + "'", "", kHint);
  return found;
}

std::unique_ptr<OpenedLibrary> Open(const std::string& name) {
  for (const Library& library : FindLibraries()) {
    if (library.name != name) continue;
    if (library.version.find("openmp") != library.version.npos) UseSharedGomp();
    void* handle = dlopen(library.path.c_str(), Flags());
    if (handle == nullptr) {
      throw Error(ErrorCategory::kUnavailable, "'" + library.path + "' cannot be opened: " + dlerror(), "", kHint);
    }
    // MKL: sequential, with 32-bit sizes. The others: one thread, where they have more.
    CallIfThere(handle, "MKL_Set_Threading_Layer", 1);
    CallIfThere(handle, "MKL_Set_Interface_Layer", 0);
    CallIfThere(handle, "openblas_set_num_threads", 1);
    EndThreads(handle);
    using ParallelFn = int();
    constexpr int kThreads = 1;  // 0: none, and no locks either; 2: OpenMP
    if (auto* parallel = reinterpret_cast<ParallelFn*>(dlsym(handle, "openblas_get_parallel"))) {
      if (parallel() != kThreads) {
        throw Error(ErrorCategory::kUnavailable, "'" + library.path + "' is OpenBLAS without locks, or with OpenMP", "",
                    kHint);
      }
    }
    auto opened = std::make_unique<OpenedLibrary>();
    opened->name = name;
    opened->single = {Symbol<Gemm<float>>(handle, name, "cblas_sgemm"),
                      Symbol<Gemv<float>>(handle, name, "cblas_sgemv")};
    opened->precise = {Symbol<Gemm<double>>(handle, name, "cblas_dgemm"),
                       Symbol<Gemv<double>>(handle, name, "cblas_dgemv")};
    return opened;
  }
  throw Error(ErrorCategory::kUnavailable, "the BLAS library '" + name + "' is not here", "", kHint);
}

}  // namespace

const OpenedLibrary& OpenLibrary(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<OpenedLibrary>> opened;
  const std::lock_guard lock(mutex);
  std::unique_ptr<OpenedLibrary>& library = opened[name];
  if (library == nullptr) library = Open(name);
  return *library;
}

}  // namespace collage::blas_toolchain
