// library.h: an opened BLAS library: the few functions that are called, by their C interface.
#pragma once

#include <string>

namespace collage::blas_toolchain {

/// The C interface's enumerators, which all libraries share.
enum Order : int { kRowMajor = 101 };
enum Transpose : int { kNoTranspose = 111, kTranspose = 112 };

template <typename T>
using Gemm = void(Order, Transpose a, Transpose b, int m, int n, int k, T alpha, const T* a_data, int lda,
                  const T* b_data, int ldb, T beta, T* c, int ldc);
template <typename T>
using Gemv = void(Order, Transpose a, int rows, int columns, T alpha, const T* a_data, int lda, const T* x, int step_x,
                  T beta, T* y, int step_y);

template <typename T>
struct Functions {
  Gemm<T>* gemm = nullptr;
  Gemv<T>* gemv = nullptr;
};

/// Opened once per process and never closed. It computes on the thread that calls it, and several may.
struct OpenedLibrary {
  std::string name;
  Functions<float> single;
  Functions<double> precise;

  template <typename T>
  const Functions<T>& functions() const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return single;
    } else {
      return precise;
    }
  }
};

/// Throws kUnavailable when `name` is not here or cannot be opened.
const OpenedLibrary& OpenLibrary(const std::string& name);

}  // namespace collage::blas_toolchain
