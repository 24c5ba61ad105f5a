// matrix_writer.h: products of small matrices of constants with vectors, as instructions.
#pragma once

#include <cstddef>
#include <vector>

#include "backends/native/compiler/emit/vector_math.h"
#include "backends/native/description/winograd_transforms.h"

namespace collage::native {

class MatrixWriter {
 public:
  explicit MatrixWriter(VectorMath& math) : math_(math) {}

  /// matrix x. Neighbouring rows that differ in the signs of their odd (or of their even) places share two sums.
  std::vector<Value> Rows(const Matrix& matrix, const std::vector<Value>& x);

  /// Multiplies by a matrix whose neighbouring columns differ in the signs of their odd rows: x is added up and
  /// subtracted in pairs first.
  std::vector<Value> Columns(const Matrix& matrix, const std::vector<Value>& x);

 private:
  Value Combine(const std::vector<double>& factors, const std::vector<Value>& x);

  VectorMath& math_;
};

}  // namespace collage::native
