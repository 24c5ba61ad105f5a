// product.cc: nothing of a blob is believed.
#include "backends/cublas/product.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>

#include "collage/support/error.h"

namespace collage::cublas {
namespace {

/// More algorithms than any heuristic ranks.
constexpr int64_t kMostRank = 1000;

[[noreturn]] void Fail() { throw Error(ErrorCategory::kCorrupt, "a kernel's product cannot be read", "cublas"); }

void Require(bool holds) {
  if (!holds) Fail();
}

template <typename Enum>
bool IsOneOf(Enum value, Enum last) {
  return value >= Enum{} && value <= last;
}

bool IsSize(int64_t size) { return size > 0 && size <= std::numeric_limits<int32_t>::max(); }
bool IsFlag(int64_t flag) { return flag == 0 || flag == 1; }

/// Reads of constants.
class Constants {
 public:
  explicit Constants(std::span<const Tensor> tensors) : tensors_(tensors) {}

  /// `operand` holds an array of that shape, if it is a constant at all.
  void Check(Product::Operand operand, const Shape& shape, DataType dtype) const {
    const std::optional<size_t> bytes = CheckedBytes(shape, dtype);
    Require(bytes.has_value());
    if (operand >= 0) return;
    const auto index = static_cast<uint64_t>(-(operand + 1));
    Require(index < tensors_.size() && tensors_[index].size_bytes() >= *bytes);
  }

 private:
  std::span<const Tensor> tensors_;
};

void CheckNumbers(const Product& p) {
  Require(p.format == Product::kFormat);
  Require(IsOneOf(p.factors, Type::kInt32) && IsOneOf(p.result, Type::kInt32));
  Require(IsOneOf(p.precision, Precision::kFloat16) && IsOneOf(p.activation, Activation::kGeluTanh));
  Require(IsOneOf(p.bias_along, Along::kRows));
  Require(IsSize(p.batch) && IsSize(p.m) && IsSize(p.n) && IsSize(p.k));
  const std::array flags{p.transpose_a, p.transpose_b, p.shared_a, p.shared_b, p.has_scales, p.has_addend};
  Require(std::ranges::all_of(flags, IsFlag));
  Require(p.rank >= 0 && p.rank <= kMostRank);
}

void CheckConstants(const Product& p, const Constants& constants) {
  const DataType factors = DTypeOf(p.factors), result = DTypeOf(p.result);
  constants.Check(p.a, {p.shared_a != 0 ? 1 : p.batch, p.m, p.k}, factors);
  constants.Check(p.b, {p.shared_b != 0 ? 1 : p.batch, p.k, p.n}, factors);
  constants.Check(0, {p.batch, p.m, p.n}, result);
  if (p.has_scales != 0) {
    Require(p.scales < 0);
    constants.Check(p.scales, {p.n}, kFloat32);
  }
  if (p.bias_along != Along::kNone) {
    const int64_t length = p.bias_along == Along::kRows ? p.m : p.n;
    Require(p.bias < 0 && (p.bias_stride == 0 || p.bias_stride == length));
    constants.Check(p.bias, {p.bias_stride == 0 ? 1 : p.batch, length}, result);
  }
  if (p.has_addend != 0) {
    const int64_t rows = p.addend_row == 0 ? 1 : p.m;
    Require(p.addend_row == 0 || p.addend_row == p.n);
    Require(p.addend_stride == 0 || p.addend_stride == rows * p.n);
    constants.Check(p.addend, {p.addend_stride == 0 ? 1 : p.batch, rows, p.n}, result);
  }
}

}  // namespace

DataType DTypeOf(Type type) {
  switch (type) {
    case Type::kFloat32: return kFloat32;
    case Type::kFloat16: return kFloat16;
    case Type::kBFloat16: return kBFloat16;
    case Type::kInt8: return kInt8;
    case Type::kInt32: return kInt32;
  }
  Fail();
}

std::vector<std::byte> ToBlob(const Product& product) {
  const auto bytes = std::as_bytes(std::span(&product, 1));
  return {bytes.begin(), bytes.end()};
}

Product ProductFrom(std::span<const std::byte> blob, std::span<const Tensor> constants) {
  Product product;
  Require(blob.size() == sizeof product);
  std::memcpy(&product, blob.data(), sizeof product);
  CheckNumbers(product);
  CheckConstants(product, Constants(constants));
  return product;
}

}  // namespace collage::cublas
