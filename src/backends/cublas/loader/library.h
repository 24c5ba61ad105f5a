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
using Operator = struct OperatorObject*;      ///< cublasLtMatmulDesc_t
using Matrix = struct MatrixObject*;          ///< cublasLtMatrixLayout_t
using Preference = struct PreferenceObject*;  ///< cublasLtMatmulPreference_t

// cudaDataType_t.
inline constexpr int kFloat32Type = 0;
inline constexpr int kFloat16Type = 2;
inline constexpr int kInt8Type = 3;
inline constexpr int kInt32Type = 10;
inline constexpr int kBFloat16Type = 14;

// cublasComputeType_t.
inline constexpr int kComputeFloat32 = 68;
inline constexpr int kComputeInt32 = 72;
inline constexpr int kComputeFastFloat16 = 74;
inline constexpr int kComputeFastBFloat16 = 75;
inline constexpr int kComputeFastTf32 = 77;

// Attributes of a product, and values of some.
inline constexpr int kPointerMode = 2;
inline constexpr int kTransposeA = 3;
inline constexpr int kTransposeB = 4;
inline constexpr int kEpilogue = 7;
inline constexpr int kBiasPointer = 8;
inline constexpr int kBiasBatchStride = 10;
inline constexpr int32_t kTransposed = 1;       ///< cublasOperation_t
inline constexpr int32_t kFactorsOnDevice = 4;  ///< ALPHA_DEVICE_VECTOR_BETA_HOST: a factor for each row of D

// cublasLtEpilogue_t; kBias is or'ed with the others.
inline constexpr uint32_t kNothing = 1;
inline constexpr uint32_t kRelu = 2;
inline constexpr uint32_t kBias = 4;
inline constexpr uint32_t kGelu = 32;

// Attributes of a matrix.
inline constexpr int kOrder = 1;
inline constexpr int kBatchCount = 5;
inline constexpr int kBatchStride = 6;
inline constexpr int32_t kRowMajor = 1;  ///< cublasLtOrder_t; columns follow each other without

// Attributes of a preference.
inline constexpr int kMostWorkspace = 1;
inline constexpr int kReductions = 3;
inline constexpr int kAlignments[] = {5, 6, 7, 8};   ///< in bytes: A, B, C, D
inline constexpr uint32_t kReduceInComputeType = 2;  ///< cublasLtReductionScheme_t: the only way to add up parts

/// cublasLtMatmulHeuristicResult_t.
struct Choice {
  uint64_t algorithm[8];
  size_t workspace_bytes;
  Status status;
  float waves;
  int reserved[4];
};

// Name here, name in the library, parameters.
#define COLLAGE_CUBLAS_FUNCTIONS(F)                                                                            \
  F(Create, "cublasLtCreate", (Handle * handle))                                                               \
  F(MatmulDescCreate, "cublasLtMatmulDescCreate", (Operator * product, int compute, int scale))                \
  F(MatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute",                                                  \
    (Operator product, int, const void* value, size_t bytes))                                                  \
  F(MatmulDescDestroy, "cublasLtMatmulDescDestroy", (Operator product))                                        \
  F(MatrixLayoutCreate, "cublasLtMatrixLayoutCreate",                                                          \
    (Matrix * matrix, int type, uint64_t rows, uint64_t columns, int64_t leading))                             \
  F(MatrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute",                                              \
    (Matrix matrix, int, const void* value, size_t bytes))                                                     \
  F(MatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy", (Matrix matrix))                                       \
  F(MatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate", (Preference * preference))                       \
  F(MatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute",                                      \
    (Preference preference, int, const void* value, size_t bytes))                                             \
  F(MatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy", (Preference preference))                       \
  F(MatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic",                                                  \
    (Handle handle, Operator product, Matrix a, Matrix b, Matrix c, Matrix d, Preference preference, int most, \
     Choice* choices, int* count))                                                                             \
  F(Matmul, "cublasLtMatmul",                                                                                  \
    (Handle handle, Operator product, const void* alpha, const void* a, Matrix a_layout, const void* b,        \
     Matrix b_layout, const void* beta, const void* c, Matrix c_layout, void* d, Matrix d_layout,              \
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
