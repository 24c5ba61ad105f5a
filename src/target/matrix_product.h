// matrix_product.h: one product of matrices with what BLAS-like libraries compute beside it, as their kernels' blob.
// Free of the IR, so that kernels can read it.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "collage/runtime/tensor.h"
#include "collage/support/error.h"

namespace collage {

/// scale * A x B + bias, `batch` times: A is [M, K], B is [K, N], or the transposes of these as stored. All row-major
/// and dense. Fields are of one size, so that equal products have equal bytes.
struct MatrixProduct {
  static constexpr int64_t kFormat = 0x6d6174707264'0001;

  /// Matrix operand: the number of an input or, less than 0, of a constant: -1 is constant 0.
  using Operand = int64_t;

  int64_t format = kFormat;
  int64_t element_bytes = 4;  ///< 4: float32, 8: float64
  int64_t batch = 1;
  int64_t m = 1, n = 1, k = 1;
  int64_t transpose_a = 0, transpose_b = 0;
  int64_t same_a = 0, same_b = 0;  ///< whether all of the batch read the same A, B
  double scale = 1;
  Operand a = 0, b = 0;
  int64_t has_bias = 0;  ///< whether the constant `bias`, [N], is added to every row
  Operand bias = 0;

  size_t bytes() const { return static_cast<size_t>(element_bytes); }
  double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

inline std::vector<std::byte> ToBlob(const MatrixProduct& product) {
  const auto bytes = std::as_bytes(std::span(&product, 1));
  return {bytes.begin(), bytes.end()};
}

/// Throws kCorrupt, also when an operand is not among `constants`, or smaller than the product reads.
inline MatrixProduct MatrixProductFrom(std::span<const std::byte> blob, std::span<const Tensor> constants) {
  MatrixProduct product;
  const Error corrupt(ErrorCategory::kCorrupt, "a kernel's matrix product cannot be read");
  if (blob.size() != sizeof(product)) throw corrupt;
  std::memcpy(&product, blob.data(), sizeof(product));
  const bool sized = product.element_bytes == 4 || product.element_bytes == 8;
  const bool shaped = product.batch > 0 && product.m > 0 && product.n > 0 && product.k > 0;
  if (product.format != MatrixProduct::kFormat || !sized || !shaped) throw corrupt;
  const DataType dtype = DataType::Float(static_cast<int>(8 * product.element_bytes));
  const auto check = [&](MatrixProduct::Operand operand, bool is_shared, int64_t rows, int64_t columns) {
    const std::optional<size_t> bytes = CheckedBytes(Shape{is_shared ? 1 : product.batch, rows, columns}, dtype);
    if (!bytes) throw corrupt;
    if (operand >= 0) return;
    const auto index = static_cast<size_t>(-1 - operand);
    if (index >= constants.size() || constants[index].size_bytes() < *bytes) throw corrupt;
  };
  check(product.a, product.same_a != 0, product.m, product.k);
  check(product.b, product.same_b != 0, product.k, product.n);
  check(0, false, product.m, product.n);
  if (product.has_bias != 0 && product.bias >= 0) throw corrupt;
  if (product.has_bias != 0) check(product.bias, true, 1, product.n);
  return product;
}

}  // namespace collage
