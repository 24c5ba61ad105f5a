// operation.cc: descriptors, and the heuristic's choice.
#include "backends/cublas/loader/operation.h"

#include <fmt/format.h>

#include <vector>

#include "collage/support/error.h"

namespace collage::cublas {
namespace {

constexpr const char* kDescribing = "describe a product";
/// Addresses of inputs, results and constants are multiples of it (collage/runtime/kernel.h).
constexpr uint32_t kAlignment = 64;

int LibraryType(Type type) {
  switch (type) {
    case Type::kFloat32: return kFloat32Type;
    case Type::kFloat16: return kFloat16Type;
    case Type::kBFloat16: return kBFloat16Type;
    case Type::kInt8: return kInt8Type;
    case Type::kInt32: return kInt32Type;
  }
  throw Error(ErrorCategory::kInternal, "a product is of no type that cuBLASLt has", "cublas");
}

int ComputeType(const Product& product) {
  if (product.result == Type::kInt32 || product.result == Type::kInt8) return kComputeInt32;
  switch (product.precision) {
    case Precision::kFloat32: return kComputeFloat32;
    case Precision::kTf32: return kComputeFastTf32;
    case Precision::kBFloat16: return kComputeFastBFloat16;
    case Precision::kFloat16: return kComputeFastFloat16;
  }
  throw Error(ErrorCategory::kInternal, "a product is of no precision that cuBLASLt has", "cublas");
}

/// The type of factors, alpha and beta.
int ScaleType(const Product& product) { return product.result == Type::kInt32 ? kInt32Type : kFloat32Type; }

uint32_t EpilogueOf(const Product& product) {
  uint32_t epilogue = product.bias_along == Along::kNone ? 0 : kBias;
  if (product.activation == Activation::kRelu) epilogue |= kRelu;
  if (product.activation == Activation::kGeluTanh) epilogue |= kGelu;
  return epilogue == 0 ? kNothing : epilogue;
}

/// Whether parts of sums would be rounded to the result's type if they were kept in that.
bool RoundsParts(Type result) { return result == Type::kFloat16 || result == Type::kBFloat16; }

}  // namespace

Operation::Operation(Handle handle, const Product& product, const void* scales, const void* bias)
    : handle_(handle),
      library_(GetLibrary()),
      product_(product),
      is_row_major_(product.bias_along == Along::kRows),
      scales_(scales) {
  DescribeOperator(bias);
  const int64_t m = product.m, n = product.n, k = product.k;
  const auto dense = [](int64_t outer, int64_t inner, bool is_shared) {
    return Stored{outer, inner, inner, is_shared ? 0 : outer * inner};
  };
  const bool shared_a = product.shared_a != 0, shared_b = product.shared_b != 0;
  a_ = Describe(product.factors, product.transpose_a != 0 ? dense(k, m, shared_a) : dense(m, k, shared_a));
  b_ = Describe(product.factors, product.transpose_b != 0 ? dense(n, k, shared_b) : dense(k, n, shared_b));
  result_ = Describe(product.result, dense(m, n, /*is_shared=*/false));
  if (product.has_addend != 0) addend_ = Describe(product.result, {m, n, product.addend_row, product.addend_stride});
  Choose();
}

void Operation::Enqueue(const Addresses& addresses, void* workspace, cuda_driver::Stream stream) const {
  const auto alpha = static_cast<float>(product_.scale);
  const float beta = product_.has_addend != 0 ? 1 : 0;
  const auto whole_alpha = static_cast<int32_t>(product_.scale);
  const auto whole_beta = static_cast<int32_t>(beta);
  const bool is_whole = ScaleType(product_) == kInt32Type;
  const void* factor = is_whole ? static_cast<const void*>(&whole_alpha) : &alpha;
  if (scales_ != nullptr) factor = scales_;
  const bool adds = product_.has_addend != 0;
  const void* left = is_row_major_ ? addresses.a : addresses.b;
  const void* right = is_row_major_ ? addresses.b : addresses.a;
  library_.Check(
      library_.Matmul(handle_, operator_.get(), factor, left, (is_row_major_ ? a_ : b_).get(), right,
                      (is_row_major_ ? b_ : a_).get(), is_whole ? static_cast<const void*>(&whole_beta) : &beta,
                      adds ? addresses.addend : addresses.result, (adds ? addend_ : result_).get(), addresses.result,
                      result_.get(), choice_.algorithm, workspace, choice_.workspace_bytes, stream),
      "multiply");
}

template <typename T>
void Operation::Set(int attribute, const T& value) {
  library_.Check(library_.MatmulDescSetAttribute(operator_.get(), attribute, &value, sizeof value), kDescribing);
}

void Operation::DescribeOperator(const void* bias) {
  Operator created = nullptr;
  library_.Check(library_.MatmulDescCreate(&created, ComputeType(product_), ScaleType(product_)), kDescribing);
  operator_ = {created, library_.MatmulDescDestroy};
  // Stored rows of B are columns of its transpose, so that a B which is stored transposed needs an operation.
  if (product_.transpose_a != 0) Set(is_row_major_ ? kTransposeA : kTransposeB, kTransposed);
  if (product_.transpose_b != 0) Set(is_row_major_ ? kTransposeB : kTransposeA, kTransposed);
  Set(kEpilogue, EpilogueOf(product_));
  if (scales_ != nullptr) Set(kPointerMode, kFactorsOnDevice);
  if (product_.bias_along == Along::kNone) return;
  Set(kBiasPointer, bias);
  if (product_.bias_stride != 0) Set(kBiasBatchStride, product_.bias_stride);
}

Owned<Matrix> Operation::Describe(Type type, const Stored& stored) const {
  constexpr const char* kDoing = "describe a matrix";
  const auto outer = static_cast<uint64_t>(stored.outer), inner = static_cast<uint64_t>(stored.inner);
  Matrix matrix = nullptr;
  library_.Check(library_.MatrixLayoutCreate(&matrix, LibraryType(type), is_row_major_ ? outer : inner,
                                             is_row_major_ ? inner : outer, stored.leading),
                 kDoing);
  Owned<Matrix> owned(matrix, library_.MatrixLayoutDestroy);
  const auto set = [&](int attribute, const auto& value) {
    library_.Check(library_.MatrixLayoutSetAttribute(matrix, attribute, &value, sizeof value), kDoing);
  };
  if (is_row_major_) set(kOrder, kRowMajor);
  set(kBatchCount, static_cast<int32_t>(product_.batch));
  set(kBatchStride, stored.batch_stride);
  return owned;
}

void Operation::Choose() {
  constexpr const char* kDoing = "choose an algorithm";
  Preference created = nullptr;
  library_.Check(library_.MatmulPreferenceCreate(&created), kDoing);
  const Owned<Preference> preference(created, library_.MatmulPreferenceDestroy);
  const auto set = [&](int attribute, const auto& value) {
    library_.Check(library_.MatmulPreferenceSetAttribute(created, attribute, &value, sizeof value), kDoing);
  };
  set(kMostWorkspace, uint64_t{kWorkspaceBytes});
  for (const int alignment : kAlignments) set(alignment, kAlignment);
  if (RoundsParts(product_.result)) set(kReductions, kReduceInComputeType);
  std::vector<Choice> choices(static_cast<size_t>(product_.rank) + 1);
  int count = 0;
  const Status status = library_.MatmulAlgoGetHeuristic(
      handle_, operator_.get(), (is_row_major_ ? a_ : b_).get(), (is_row_major_ ? b_ : a_).get(),
      (product_.has_addend != 0 ? addend_ : result_).get(), result_.get(), created, static_cast<int>(choices.size()),
      choices.data(), &count);
  choice_ = choices.back();
  if (status == 0 && count > product_.rank && choice_.status == 0) return;
  const std::string said = status == 0 ? "" : fmt::format(" ({})", library_.GetStatusString(status));
  throw Error(
      ErrorCategory::kUnsupported,
      fmt::format("cuBLASLt has {} algorithms for this product{}, number {} is wanted", count, said, product_.rank + 1),
      "cublas");
}

}  // namespace collage::cublas
