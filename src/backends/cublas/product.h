// product.h: a product of matrices with what cuBLASLt computes beside it, as a kernel's blob. Free of the IR and of
// vendor headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collage/runtime/tensor.h"

namespace collage::cublas {

// Numbers are in executables: new ones come last.

enum class Type : int64_t { kFloat32, kFloat16, kBFloat16, kInt8, kInt32 };
enum class Activation : int64_t { kNone, kRelu, kGeluTanh };
/// Types that factors of float32 may be rounded to.
enum class Precision : int64_t { kFloat32, kTf32, kBFloat16, kFloat16 };
/// Whether a bias has a value for each column of the result or for each row.
enum class Along : int64_t { kNone, kColumns, kRows };

/// activation(scale * A x B + addend + bias), `batch` times: A is [M, K], B is [K, N], or the transposes of these as
/// stored, all row-major and dense. Fields are of one size, so that equal products have equal bytes.
///
/// Sums are float32, or int32 where the result is int32 or int8. An int8 result is rounded to nearest and limited to
/// its range.
struct Product {
  static constexpr int64_t kFormat = 0x637562'6c6173'0002;

  /// Number of an input or, less than 0, of a constant: -1 is constant 0.
  using Operand = int64_t;

  int64_t format = kFormat;
  Type factors = Type::kFloat32;
  Type result = Type::kFloat32;  ///< the bias and the addend have it, too
  Precision precision = Precision::kFloat32;
  int64_t batch = 1;
  int64_t m = 1, n = 1, k = 1;
  int64_t transpose_a = 0, transpose_b = 0;
  int64_t shared_a = 0, shared_b = 0;  ///< whether all of the batch read the same A, B
  Operand a = 0, b = 0;
  double scale = 1;
  int64_t has_scales = 0;  ///< whether the constant `scales`, float32 [N], has a factor for each column in place of it
  Operand scales = 0;
  Along bias_along = Along::kNone;
  Operand bias = 0;           ///< a constant
  int64_t bias_stride = 0;    ///< elements from one of the batch to the next; 0: all have the same
  int64_t has_addend = 0;     ///< whether a matrix is added
  Operand addend = 0;         ///< [M, N], or a part of it that is read again
  int64_t addend_row = 0;     ///< elements from a row of it to the next; 0: all rows are the same
  int64_t addend_stride = 0;  ///< elements from one of the batch to the next; 0: all are the same
  Activation activation = Activation::kNone;
  int64_t rank = 0;  ///< the algorithm's, in the order of the library's heuristic
};

DataType DTypeOf(Type type);

std::vector<std::byte> ToBlob(const Product& product);
/// Throws kCorrupt, also when a constant operand is not among `constants`, or smaller than the product reads.
Product ProductFrom(std::span<const std::byte> blob, std::span<const Tensor> constants);

}  // namespace collage::cublas
