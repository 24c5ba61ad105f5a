// rules.cc: "cublasLtMatmul()" in the documentation of CUDA 13, its table of regular matrices and the first set of
// requirements for 8-bit integers.
#include "rules.h"

#include <algorithm>
#include <iterator>

namespace standin::cublas {
namespace {

/// A row of the table of types that are supported.
struct Types {
  int compute, scale, factors, result;
  bool has_epilogues;
};

constexpr Types kTypes[] = {
    {kComputeFloat32, kFloat32, kFloat32, kFloat32, true},
    {kComputeFloat32, kFloat32, kFloat16, kFloat16, true},
    {kComputeFloat32, kFloat32, kFloat16, kFloat32, true},
    {kComputeFloat32, kFloat32, kBFloat16, kBFloat16, true},
    {kComputeFloat32, kFloat32, kBFloat16, kFloat32, true},
    {kComputeFloat32, kFloat32, kInt8, kFloat32, false},
    {kComputeFastFloat16, kFloat32, kFloat32, kFloat32, true},
    {kComputeFastBFloat16, kFloat32, kFloat32, kFloat32, true},
    {kComputeFastTf32, kFloat32, kFloat32, kFloat32, true},
    {kComputeInt32, kInt32, kInt8, kInt32, false},
    {kComputeInt32, kFloat32, kInt8, kInt8, false},
};

const Types* TypesOf(const Product& product, const Matrix& a, const Matrix& b, const Matrix& c, const Matrix& d) {
  if (a.type != b.type || c.type != d.type) return nullptr;
  const auto* found = std::ranges::find_if(kTypes, [&](const Types& types) {
    return types.compute == product.compute && types.scale == product.scale && types.factors == a.type &&
           types.result == d.type;
  });
  return found == std::end(kTypes) ? nullptr : found;
}

bool IsEpilogue(uint32_t epilogue) {
  const uint32_t function = epilogue & ~kBias;
  return epilogue == kNothing || epilogue == kBias || function == kRelu || function == kGelu;
}

/// A leading dimension of 0 repeats a row or column.
bool IsLarge(const Matrix& matrix, bool may_repeat) {
  const uint64_t inner = matrix.order == kColumnMajor ? matrix.rows : matrix.columns;
  if (matrix.rows == 0 || matrix.columns == 0) return false;
  return matrix.leading >= static_cast<int64_t>(inner) || (may_repeat && matrix.leading == 0);
}

bool Fit(const Product& product, const Matrix& a, const Matrix& b, const Matrix& c, const Matrix& d, Sizes& sizes) {
  const bool ta = product.transposes[0] == 1, tb = product.transposes[1] == 1;
  sizes = {ta ? a.columns : a.rows, tb ? b.rows : b.columns, ta ? a.rows : a.columns};
  if ((tb ? b.columns : b.rows) != sizes.k || d.rows != sizes.m || d.columns != sizes.n) return false;
  if (c.rows != d.rows || c.columns != d.columns || c.order != d.order) return false;
  const Matrix* const all[] = {&a, &b, &c, &d};
  if (!std::ranges::all_of(all, [&](const Matrix* one) { return one->batch == d.batch && one->stride >= 0; })) {
    return false;
  }
  if (d.batch > 1 && d.stride == 0) return false;
  return IsLarge(a, false) && IsLarge(b, false) && IsLarge(c, true) && IsLarge(d, false);
}

/// A transposed and B not, all sizes in fours.
bool MayMultiplyIntegers(const Product& product, const Matrix& a, const Matrix& b, const Matrix& c, const Matrix& d,
                         const Sizes& sizes) {
  const Matrix* const all[] = {&a, &b, &c, &d};
  const bool is_regular =
      std::ranges::all_of(all, [](const Matrix* one) { return one->leading % 4 == 0 && one->order == kColumnMajor; });
  return is_regular && product.transposes[0] == 1 && product.transposes[1] == 0 && sizes.m % 4 == 0 && sizes.k % 4 == 0;
}

}  // namespace

int Check(const Product& product, const Matrix& a, const Matrix& b, const Matrix& c, const Matrix& d, Sizes& sizes) {
  if (!Fit(product, a, b, c, d, sizes)) return kInvalidValue;
  const Types* types = TypesOf(product, a, b, c, d);
  if (types == nullptr || !IsEpilogue(product.epilogue)) return kNotSupported;
  if (!types->has_epilogues && product.epilogue != kNothing) return kNotSupported;
  if ((product.epilogue & kBias) != 0 && product.bias == nullptr) return kInvalidValue;
  // Functions behind a bias are for results whose columns follow each other.
  if (d.order == kRowMajor && product.epilogue == (product.epilogue | kBias) && product.epilogue != kBias) {
    return kNotSupported;
  }
  const bool is_integer = a.type == kInt8;
  if (product.pointer_mode != kHost && !(is_integer && product.pointer_mode == kFactorsOnDevice)) return kNotSupported;
  if (product.pointer_mode != kHost && product.scale != kFloat32) return kNotSupported;
  if (is_integer && !MayMultiplyIntegers(product, a, b, c, d, sizes)) return kNotSupported;
  return kSuccess;
}

}  // namespace standin::cublas
