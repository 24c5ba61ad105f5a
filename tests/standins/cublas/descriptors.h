// descriptors.h: objects of the stand-in for cuBLASLt, and numbers of its documentation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace standin::cublas {

// cublasStatus_t.
inline constexpr int kSuccess = 0;
inline constexpr int kNotInitialized = 1;
inline constexpr int kInvalidValue = 7;
inline constexpr int kNotSupported = 15;

// cudaDataType_t.
inline constexpr int kFloat32 = 0;
inline constexpr int kFloat16 = 2;
inline constexpr int kInt8 = 3;
inline constexpr int kInt32 = 10;
inline constexpr int kBFloat16 = 14;

// cublasComputeType_t.
inline constexpr int kComputeFloat32 = 68;
inline constexpr int kComputeInt32 = 72;
inline constexpr int kComputeFastFloat16 = 74;
inline constexpr int kComputeFastBFloat16 = 75;
inline constexpr int kComputeFastTf32 = 77;

// cublasLtEpilogue_t.
inline constexpr uint32_t kNothing = 1;
inline constexpr uint32_t kRelu = 2;
inline constexpr uint32_t kBias = 4;
inline constexpr uint32_t kGelu = 32;

// cublasLtPointerMode_t and cublasLtOrder_t.
inline constexpr int32_t kHost = 0;
inline constexpr int32_t kFactorsOnDevice = 4;
inline constexpr int32_t kColumnMajor = 0;
inline constexpr int32_t kRowMajor = 1;

// cublasLtReductionScheme_t, as a mask.
inline constexpr uint32_t kReduceInPlace = 1;
inline constexpr uint32_t kReduceInComputeType = 2;
inline constexpr uint32_t kReduceInResultType = 4;

struct Product {
  int32_t compute = 0, scale = 0;
  int32_t pointer_mode = kHost;
  int32_t transposes[2] = {0, 0};  ///< cublasOperation_t of A and B
  uint32_t epilogue = kNothing;
  const void* bias = nullptr;
  int64_t bias_stride = 0;
};

struct Matrix {
  int32_t type = kFloat32;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
  int32_t order = kColumnMajor;
  int32_t batch = 1;
  int64_t stride = 0;

  size_t element_bytes() const { return type == kInt8 ? 1 : type == kFloat16 || type == kBFloat16 ? 2 : 4; }
  int64_t PlaceOf(uint64_t row, uint64_t column) const {
    const auto r = static_cast<int64_t>(row), c = static_cast<int64_t>(column);
    return order == kColumnMajor ? c * leading + r : r * leading + c;
  }
  /// From the address of the first element to the end of the last.
  size_t bytes() const {
    return static_cast<size_t>(stride * (batch - 1) + PlaceOf(rows - 1, columns - 1) + 1) * element_bytes();
  }
};

struct Preference {
  uint64_t workspace = 0;
  uint32_t reductions = 7;
  uint32_t alignments[4] = {256, 256, 256, 256};  ///< A, B, C, D
};

/// cublasLtMatmulHeuristicResult_t.
struct Choice {
  uint64_t algorithm[8];
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};

/// Sizes of one product, as the operands and the result must have them.
struct Sizes {
  uint64_t m, n, k;
};

/// An algorithm of the heuristic.
struct Algorithm {
  uint64_t number;
  uint64_t workspace;
  uint32_t reduction;  ///< 0: it adds up in one go; else it adds two halves of a sum
  uint32_t alignment;  ///< addresses are multiples of it
};

/// The best first.
inline constexpr Algorithm kAlgorithms[] = {{1, uint64_t{1} << 20, kReduceInResultType, 16},
                                            {2, 0, 0, 256},
                                            {3, 0, 0, 4},
                                            {4, uint64_t{1} << 20, kReduceInComputeType, 16},
                                            {5, uint64_t{2} << 20, kReduceInPlace, 16}};

}  // namespace standin::cublas
