// libcublasLt.cc: cuBLASLt for tests on machines without a GPU: products by three loops, on streams of the stand-in for
// the driver. It refuses what the documentation forbids (cublas/rules.cc), attributes of another size, memory that is
// not the device's, a workspace that is too small or not in units of 256 bytes, addresses that are less aligned than an
// algorithm wants, algorithms that were chosen for another product, a matrix C that overlaps D, and calls from threads
// without a context.
//
// The list in docs/gpus.md has what it takes for granted.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>

#include "cublas/descriptors.h"
#include "cublas/evaluation.h"
#include "cublas/rules.h"
#include "standin_cuda.h"

namespace {

using namespace standin::cublas;  // NOLINT: all of it is about that

/// Only a value of its own size fits an attribute.
template <typename T>
int Take(T& field, const void* value, size_t bytes) {
  if (value == nullptr || bytes != sizeof field) return kInvalidValue;
  std::memcpy(&field, value, bytes);
  return kSuccess;
}

/// A number that differs between products: FNV-1a of what describes them.
class Fingerprint {
 public:
  template <typename T>
  Fingerprint& Add(const T& value) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
    for (size_t i = 0; i < sizeof value; ++i) number_ = (number_ ^ bytes[i]) * 0x100000001b3;
    return *this;
  }
  uint64_t number() const { return number_; }

 private:
  uint64_t number_ = 0xcbf29ce484222325;
};

uint64_t FingerprintOf(const Product& product, const Matrix& a, const Matrix& b, const Matrix& c, const Matrix& d) {
  Fingerprint all;
  all.Add(product.compute).Add(product.scale).Add(product.transposes).Add(product.epilogue);
  for (const Matrix* one : {&a, &b, &c, &d}) {
    all.Add(one->type).Add(one->rows).Add(one->columns).Add(one->leading).Add(one->order).Add(one->batch);
    all.Add(one->stride);
  }
  return all.number();
}

bool Allows(const Preference& preference, const Algorithm& algorithm) {
  const bool is_aligned =
      std::ranges::all_of(preference.alignments, [&](uint32_t bytes) { return bytes >= algorithm.alignment; });
  const bool may_reduce = algorithm.reduction == 0 || (preference.reductions & algorithm.reduction) != 0;
  return is_aligned && may_reduce && algorithm.workspace <= preference.workspace;
}

/// Memory of the device at an address, for work on a stream.
class Places {
 public:
  explicit Places(const Algorithm& algorithm) : algorithm_(algorithm) {}

  std::byte* Find(const void* address, size_t bytes) {
    auto* place = static_cast<std::byte*>(standin_cuda_within(address, bytes));
    are_found_ = are_found_ && place != nullptr;
    return place;
  }
  std::byte* Find(const void* address, const Matrix& matrix) {
    are_found_ = are_found_ && reinterpret_cast<uintptr_t>(address) % algorithm_.alignment == 0;
    return Find(address, matrix.bytes());
  }
  bool are_found() const { return are_found_; }

 private:
  const Algorithm& algorithm_;
  bool are_found_ = true;
};

bool Overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return x < y + b_bytes && y < x + a_bytes;
}

double NumberAt(const void* address, int type) {
  if (type == kInt32) return *static_cast<const int32_t*>(address);
  return *static_cast<const float*>(address);
}

/// The algorithm that `words` hold, if it was chosen for this product; else null.
const Algorithm* AlgorithmOf(const uint64_t* words, uint64_t fingerprint) {
  if (words == nullptr || words[1] != fingerprint) return nullptr;
  const auto* found = std::ranges::find(kAlgorithms, words[0], &Algorithm::number);
  return found == std::end(kAlgorithms) ? nullptr : found;
}

/// Numbers and addresses of one call.
struct Operands {
  const void *alpha, *a, *b, *beta, *c;
  void* d;
};

/// Finds all places. False where one is not in the device's memory, not aligned, or where C overlaps D.
bool Place(const Operands& given, Work& work) {
  Places places(work.algorithm);
  const Product& product = work.product;
  const bool has_factors = product.pointer_mode == kFactorsOnDevice;
  work.alpha = has_factors ? 1 : NumberAt(given.alpha, product.scale);
  work.beta = NumberAt(given.beta, product.scale);
  if (has_factors) work.alphas = places.Find(given.alpha, work.sizes.m * sizeof(float));
  work.at_a = places.Find(given.a, work.a);
  work.at_b = places.Find(given.b, work.b);
  work.at_d = places.Find(given.d, work.d);
  if ((product.epilogue & kBias) != 0) {
    const auto last = static_cast<size_t>(product.bias_stride * (work.d.batch - 1)) + work.sizes.m;
    work.at_bias = places.Find(product.bias, last * work.d.element_bytes());
  }
  if (work.beta == 0) return places.are_found();
  work.at_c = places.Find(given.c, work.c);
  return places.are_found() && !Overlap(given.c, work.c.bytes(), given.d, work.d.bytes());
}

bool IsZeroOrOne(double value) { return value == 0 || value == 1; }

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
  *product = new Product{compute, scale};
  return kSuccess;
}

int cublasLtMatmulDescSetAttribute(Product* product, int attribute, const void* value, size_t bytes) {
  switch (attribute) {
    case 2: return Take(product->pointer_mode, value, bytes);
    case 3: return Take(product->transposes[0], value, bytes);
    case 4: return Take(product->transposes[1], value, bytes);
    case 7: return Take(product->epilogue, value, bytes);
    case 8: return Take(product->bias, value, bytes);
    case 10: return Take(product->bias_stride, value, bytes);
    default: return kInvalidValue;
  }
}

int cublasLtMatmulDescDestroy(Product* product) {
  delete product;
  return kSuccess;
}

int cublasLtMatrixLayoutCreate(Matrix** matrix, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  *matrix = new Matrix{type, rows, columns, leading};
  return kSuccess;
}

int cublasLtMatrixLayoutSetAttribute(Matrix* matrix, int attribute, const void* value, size_t bytes) {
  switch (attribute) {
    case 1: return Take(matrix->order, value, bytes);
    case 5: return Take(matrix->batch, value, bytes);
    case 6: return Take(matrix->stride, value, bytes);
    default: return kInvalidValue;
  }
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
  if (attribute >= 5 && attribute <= 8) return Take(preference->alignments[attribute - 5], value, bytes);
  switch (attribute) {
    case 1: return Take(preference->workspace, value, bytes);
    case 3: return Take(preference->reductions, value, bytes);
    default: return kInvalidValue;
  }
}

int cublasLtMatmulPreferenceDestroy(Preference* preference) {
  delete preference;
  return kSuccess;
}

int cublasLtMatmulAlgoGetHeuristic(void* handle, const Product* product, const Matrix* a, const Matrix* b,
                                   const Matrix* c, const Matrix* d, const Preference* preference, int most,
                                   Choice* choices, int* count) {
  *count = 0;
  if (handle == nullptr) return kNotInitialized;
  if (most <= 0) return kInvalidValue;
  Sizes sizes{};
  if (const int status = Check(*product, *a, *b, *c, *d, sizes); status != kSuccess) return status;
  const uint64_t fingerprint = FingerprintOf(*product, *a, *b, *c, *d);
  for (const Algorithm& algorithm : kAlgorithms) {
    if (*count == most || !Allows(*preference, algorithm)) continue;
    choices[(*count)++] = {{algorithm.number, fingerprint}, algorithm.workspace, kSuccess, 1, {}};
  }
  return *count > 0 ? kSuccess : kNotSupported;
}

int cublasLtMatmul(void* handle, const Product* product, const void* alpha, const void* a, const Matrix* a_layout,
                   const void* b, const Matrix* b_layout, const void* beta, const void* c, const Matrix* c_layout,
                   void* d, const Matrix* d_layout, const uint64_t* algorithm, void* workspace, size_t workspace_bytes,
                   void* stream) {
  if (handle == nullptr) return kNotInitialized;
  Sizes sizes{};
  const int status = Check(*product, *a_layout, *b_layout, *c_layout, *d_layout, sizes);
  if (status != kSuccess) return status;
  const Algorithm* chosen = AlgorithmOf(algorithm, FingerprintOf(*product, *a_layout, *b_layout, *c_layout, *d_layout));
  if (chosen == nullptr || workspace_bytes < chosen->workspace) return kInvalidValue;
  Work work{*product, *chosen, sizes, *a_layout, *b_layout, *c_layout, *d_layout};
  if (!Place({alpha, a, b, beta, c, d}, work)) return kInvalidValue;
  if (product->scale == kInt32 && !(IsZeroOrOne(work.alpha) && IsZeroOrOne(work.beta))) return kNotSupported;
  void* scratch = chosen->workspace == 0 ? nullptr : standin_cuda_within(workspace, chosen->workspace);
  const bool is_aligned = reinterpret_cast<uintptr_t>(workspace) % 256 == 0;
  if (chosen->workspace > 0 && (scratch == nullptr || !is_aligned)) return kInvalidValue;
  std::function<void()> enqueued = [work, scratch] {
    if (scratch != nullptr) std::memset(scratch, 0xAB, work.algorithm.workspace);
    Evaluate(work);
  };
  return standin_cuda_enqueue(stream, &enqueued) ? kSuccess : kInvalidValue;
}

}  // extern "C"
