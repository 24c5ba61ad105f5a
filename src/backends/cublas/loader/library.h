// library.h: cuBLASLt by a table of its functions (CUDA 12 and 13). Types, numbers and names are those of its
// documentation; "cublasLtMatmul" is called Matmul here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "backends/cuda_driver/driver.h"

namespace collage::cublas {

/// cublasStatus_t: 0 is success.
using Status = int;

// Objects of the library.
using Handle = struct HandleObject*;
using Product = struct ProductObject*;        ///< cublasLtMatmulDesc_t
using Matrix = struct MatrixObject*;          ///< cublasLtMatrixLayout_t
using Preference = struct PreferenceObject*;  ///< cublasLtMatmulPreference_t

// cudaDataType_t, cublasComputeType_t and cublasOperation_t.
inline constexpr int kFloat32Type = 0;
inline constexpr int kComputeFloat32 = 68;
inline constexpr int32_t kTransposed = 1;

// Attributes of a product, and its epilogues.
inline constexpr int kTransposeA = 3;
inline constexpr int kTransposeB = 4;
inline constexpr int kEpilogue = 7;
inline constexpr int kBiasPointer = 8;
inline constexpr uint32_t kNothing = 1;
inline constexpr uint32_t kRelu = 2;
inline constexpr uint32_t kBias = 4;  ///< or'ed with kRelu: both

// Attributes of a matrix and of a preference.
inline constexpr int kBatchCount = 5;
inline constexpr int kBatchStride = 6;
inline constexpr int kMostWorkspace = 1;

/// cublasLtMatmulHeuristicResult_t.
struct Choice {
  uint64_t algorithm[8];
  size_t workspace_bytes;
  Status status;
  float waves;
  int reserved[4];
};

// Name here, name in the library, parameters.
#define COLLAGE_CUBLAS_FUNCTIONS(F)                                                                                    \
  F(Create, "cublasLtCreate", (Handle * handle))                                                                       \
  F(MatmulDescCreate, "cublasLtMatmulDescCreate", (Product * product, int compute, int scale))                         \
  F(MatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute", (Product product, int, const void* value, size_t bytes)) \
  F(MatmulDescDestroy, "cublasLtMatmulDescDestroy", (Product product))                                                 \
  F(MatrixLayoutCreate, "cublasLtMatrixLayoutCreate",                                                                  \
    (Matrix * matrix, int type, uint64_t rows, uint64_t columns, int64_t leading))                                     \
  F(MatrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute",                                                      \
    (Matrix matrix, int, const void* value, size_t bytes))                                                             \
  F(MatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy", (Matrix matrix))                                               \
  F(MatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate", (Preference * preference))                               \
  F(MatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute",                                              \
    (Preference preference, int, const void* value, size_t bytes))                                                     \
  F(MatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy", (Preference preference))                               \
  F(MatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic",                                                          \
    (Handle handle, Product product, Matrix a, Matrix b, Matrix c, Matrix d, Preference preference, int most,          \
     Choice* choices, int* count))                                                                                     \
  F(Matmul, "cublasLtMatmul",                                                                                          \
    (Handle handle, Product product, const void* alpha, const void* a, Matrix a_layout, const void* b,                 \
     Matrix b_layout, const void* beta, const void* c, Matrix c_layout, void* d, Matrix d_layout,                      \
     const void* algorithm, void* workspace, size_t workspace_bytes, cuda_driver::Stream stream))

/// The functions that Collage calls.
struct Library {
#define COLLAGE_CUBLAS_MEMBER(name, symbol, parameters) Status(*name) parameters = nullptr;
  COLLAGE_CUBLAS_FUNCTIONS(COLLAGE_CUBLAS_MEMBER)
#undef COLLAGE_CUBLAS_MEMBER
  size_t (*GetVersion)() = nullptr;
  const char* (*GetStatusString)(Status status) = nullptr;

  /// Throws kInternal unless `status` is success; `doing` says what failed.
  void Check(Status status, std::string_view doing) const;
};

/// The library of this machine, opened by the first call. Throws kUnavailable with the reason.
const Library& GetLibrary();

}  // namespace collage::cublas
