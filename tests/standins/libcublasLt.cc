// libcublasLt.cc: cuBLASLt for tests on machines without a GPU: products of float32 matrices by three loops, on streams
// of the stand-in for the driver. It refuses what its documentation forbids: matrices whose sizes do not fit each
// other, leading dimensions that are too small, memory that is not the device's, calls from threads without a context.
//
// The list in docs/gpus.md has what it takes for granted.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "standin_cuda.h"

namespace {

// cublasStatus_t.
constexpr int kSuccess = 0;
constexpr int kNotInitialized = 1;
constexpr int kInvalidValue = 7;
constexpr int kNotSupported = 15;

constexpr int kFloat32 = 0;
constexpr int kComputeFloat32 = 68;
constexpr int kNumAlgorithms = 3;
constexpr uint32_t kRelu = 2;
constexpr uint32_t kBias = 4;

struct Product {
  int32_t transposes[2] = {0, 0};
  uint32_t epilogue = 1;
  const float* bias = nullptr;
};
struct Matrix {
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
  int32_t batch = 1;
  int64_t stride = 0;

  size_t LastElement() const {
    return static_cast<size_t>(stride) * static_cast<size_t>(batch - 1) + static_cast<size_t>(leading) * (columns - 1) +
           rows;
  }
};
struct Preference {
  uint64_t workspace = 0;
};
struct Choice {
  uint64_t algorithm[8];
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};

/// Sizes of one product, as both operands and the result must have them.
struct Sizes {
  uint64_t m, n, k;
};

template <typename T>
bool Take(T& field, const void* value, size_t bytes) {
  if (bytes != sizeof field) return false;
  std::memcpy(&field, value, bytes);
  return true;
}

/// False where the matrices do not fit.
bool SizesOf(const Product& product, const Matrix& a, const Matrix& b, const Matrix& d, Sizes& sizes) {
  const bool ta = product.transposes[0] == 1, tb = product.transposes[1] == 1;
  sizes = {ta ? a.columns : a.rows, tb ? b.rows : b.columns, ta ? a.rows : a.columns};
  const uint64_t k = tb ? b.columns : b.rows;
  for (const Matrix* one : {&a, &b, &d}) {
    if (one->leading < static_cast<int64_t>(one->rows) || one->batch != d.batch || one->rows == 0) return false;
  }
  return k == sizes.k && d.rows == sizes.m && d.columns == sizes.n && (d.batch == 1 || d.stride != 0);
}

/// The rows of an operand as the product wants it, one behind the other: `of_row` apart, and `of_step` within a row.
std::vector<float> RowsOf(const float* matrix, uint64_t rows, uint64_t steps, int64_t of_row, int64_t of_step) {
  std::vector<float> all;
  all.reserve(rows * steps);
  for (uint64_t row = 0; row < rows; ++row) {
    const float* element = matrix + static_cast<int64_t>(row) * of_row;
    for (uint64_t step = 0; step < steps; ++step, element += of_step) all.push_back(*element);
  }
  return all;
}

void Multiply(const Product& product, const Sizes& sizes, float alpha, const float* a, int64_t lda, const float* b,
              int64_t ldb, float* d, int64_t ldd) {
  const bool ta = product.transposes[0] == 1, tb = product.transposes[1] == 1;
  const std::vector<float> left = RowsOf(a, sizes.m, sizes.k, ta ? lda : 1, ta ? 1 : lda);
  const std::vector<float> right = RowsOf(b, sizes.n, sizes.k, tb ? 1 : ldb, tb ? ldb : 1);
  for (uint64_t column = 0; column < sizes.n; ++column) {
    for (uint64_t row = 0; row < sizes.m; ++row) {
      const float* x = left.data() + row * sizes.k;
      const float* y = right.data() + column * sizes.k;
      const float sum = std::inner_product(x, x + sizes.k, y, 0.0F);
      const float value = alpha * sum + (product.bias != nullptr ? product.bias[row] : 0);
      d[column * static_cast<uint64_t>(ldd) + row] = (product.epilogue & kRelu) != 0 ? std::max(value, 0.0F) : value;
    }
  }
}

}  // namespace

extern "C" {

size_t cublasLtGetVersion() { return 130100; }

const char* cublasLtGetStatusString(int status) {
  switch (status) {
    case kSuccess: return "CUBLAS_STATUS_SUCCESS";
    case kNotInitialized: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case kInvalidValue: return "CUBLAS_STATUS_INVALID_VALUE";
    case kNotSupported: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "unknown status";
  }
}

int cublasLtCreate(void** handle) {
  static int object = 0;
  *handle = &object;
  return kSuccess;
}

int cublasLtMatmulDescCreate(Product** product, int compute, int scale) {
  if (compute != kComputeFloat32 || scale != kFloat32) return kNotSupported;
  *product = new Product;
  return kSuccess;
}

int cublasLtMatmulDescSetAttribute(Product* product, int attribute, const void* value, size_t bytes) {
  constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8;
  bool is_taken = false;
  switch (attribute) {
    case kTransposeA: is_taken = Take(product->transposes[0], value, bytes); break;
    case kTransposeB: is_taken = Take(product->transposes[1], value, bytes); break;
    case kEpilogue: is_taken = Take(product->epilogue, value, bytes); break;
    case kBiasPointer: is_taken = Take(product->bias, value, bytes); break;
    default: break;
  }
  return is_taken ? kSuccess : kInvalidValue;
}

int cublasLtMatmulDescDestroy(Product* product) {
  delete product;
  return kSuccess;
}

int cublasLtMatrixLayoutCreate(Matrix** matrix, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  if (type != kFloat32) return kNotSupported;
  *matrix = new Matrix{rows, columns, leading};
  return kSuccess;
}

int cublasLtMatrixLayoutSetAttribute(Matrix* matrix, int attribute, const void* value, size_t bytes) {
  constexpr int kBatchCount = 5, kBatchStride = 6;
  if (attribute == kBatchCount) return Take(matrix->batch, value, bytes) ? kSuccess : kInvalidValue;
  if (attribute == kBatchStride) return Take(matrix->stride, value, bytes) ? kSuccess : kInvalidValue;
  return kInvalidValue;
}

int cublasLtMatrixLayoutDestroy(Matrix* matrix) {
  delete matrix;
  return kSuccess;
}

int cublasLtMatmulPreferenceCreate(Preference** preference) {
  *preference = new Preference;
  return kSuccess;
}

int cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute, const void* value, size_t bytes) {
  constexpr int kMostWorkspace = 1;
  return attribute == kMostWorkspace && Take(preference->workspace, value, bytes) ? kSuccess : kInvalidValue;
}

int cublasLtMatmulPreferenceDestroy(Preference* preference) {
  delete preference;
  return kSuccess;
}

int cublasLtMatmulAlgoGetHeuristic(void*, const Product* product, const Matrix* a, const Matrix* b, const Matrix*,
                                   const Matrix* d, const Preference* preference, int most, Choice* choices,
                                   int* count) {
  Sizes sizes{};
  *count = 0;
  if (!SizesOf(*product, *a, *b, *d, sizes)) return kInvalidValue;
  for (; *count < most && *count < kNumAlgorithms; ++*count) {
    const size_t workspace = static_cast<size_t>(*count) << 20;
    if (workspace > preference->workspace) break;
    choices[*count] = {{static_cast<uint64_t>(*count) + 1}, workspace, kSuccess, 1, {}};
  }
  return *count > 0 ? kSuccess : kNotSupported;
}

int cublasLtMatmul(void* handle, const Product* product, const float* alpha, const float* a, const Matrix* a_layout,
                   const float* b, const Matrix* b_layout, const float* beta, const float*, const Matrix*, float* d,
                   const Matrix* d_layout, const uint64_t* algorithm, void* workspace, size_t workspace_bytes,
                   void* stream) {
  Sizes sizes{};
  if (handle == nullptr) return kNotInitialized;
  if (!SizesOf(*product, *a_layout, *b_layout, *d_layout, sizes) || *beta != 0) return kInvalidValue;
  if (algorithm == nullptr || algorithm[0] < 1 || algorithm[0] > kNumAlgorithms) return kInvalidValue;
  const auto within = [](auto* address, size_t elements) {
    return static_cast<decltype(address)>(standin_cuda_within(address, elements * sizeof(float)));
  };
  Product own = *product;  // what is described may change when this returns
  own.bias = (product->epilogue & kBias) != 0 ? within(product->bias, sizes.m) : nullptr;
  const float* left = within(a, a_layout->LastElement());
  const float* right = within(b, b_layout->LastElement());
  float* result = within(d, d_layout->LastElement());
  const bool owns_all = left != nullptr && right != nullptr && result != nullptr &&
                        ((product->epilogue & kBias) == 0 || own.bias != nullptr) &&
                        (workspace_bytes == 0 || standin_cuda_within(workspace, workspace_bytes) != nullptr);
  if (!owns_all) return kInvalidValue;
  std::function<void()> work = [own, sizes, alpha = *alpha, left, right, result, of_left = *a_layout,
                                of_right = *b_layout, of_result = *d_layout] {
    for (int32_t i = 0; i < of_result.batch; ++i) {
      Multiply(own, sizes, alpha, left + i * of_left.stride, of_left.leading, right + i * of_right.stride,
               of_right.leading, result + i * of_result.stride, of_result.leading);
    }
  };
  return standin_cuda_enqueue(stream, &work) ? kSuccess : kInvalidValue;
}

}  // extern "C"
