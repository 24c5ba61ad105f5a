// matrix_writer.cc: see matrix_writer.h.
#include "backends/native/compiler/emit/matrix_writer.h"

#include <cmath>

namespace collage::native {
namespace {

/// 1 when `b` is `a` with its odd places negated, -1 with its even ones, 0 otherwise.
int MirrorSign(const std::vector<double>& a, const std::vector<double>& b) {
  bool odd_negated = true;
  bool even_negated = true;
  for (size_t k = 0; k < a.size(); ++k) {
    odd_negated = odd_negated && b[k] == (k % 2 == 0 ? a[k] : -a[k]);
    even_negated = even_negated && b[k] == (k % 2 == 0 ? -a[k] : a[k]);
  }
  return odd_negated ? 1 : even_negated ? -1 : 0;
}

std::vector<double> Places(std::vector<double> row, size_t parity) {
  for (size_t k = 0; k < row.size(); ++k) {
    if (k % 2 != parity) row[k] = 0;
  }
  return row;
}

}  // namespace

std::vector<Value> MatrixWriter::Rows(const Matrix& matrix, const std::vector<Value>& x) {
  std::vector<Value> result;
  for (size_t i = 0; i < matrix.size(); ++i) {
    const int sign = i + 1 < matrix.size() ? MirrorSign(matrix[i], matrix[i + 1]) : 0;
    if (sign == 0) {
      result.push_back(Combine(matrix[i], x));
      continue;
    }
    const Value even = Combine(Places(matrix[i], 0), x);
    const Value odd = Combine(Places(matrix[i], 1), x);
    result.push_back(math_.Add(even, odd));
    result.push_back(sign > 0 ? math_.Subtract(even, odd) : math_.Subtract(odd, even));
    ++i;
  }
  return result;
}

std::vector<Value> MatrixWriter::Columns(const Matrix& matrix, const std::vector<Value>& x) {
  std::vector<Value> sums = x;
  std::vector<Value> differences = x;
  Matrix folded = matrix;
  for (size_t p = 0; p + 1 < x.size(); ++p) {
    bool is_mirrored = true;
    for (size_t i = 0; i < matrix.size(); ++i) {
      is_mirrored = is_mirrored && matrix[i][p + 1] == (i % 2 == 0 ? matrix[i][p] : -matrix[i][p]);
    }
    if (!is_mirrored) continue;
    sums[p] = math_.Add(x[p], x[p + 1]);
    differences[p] = math_.Subtract(x[p], x[p + 1]);
    for (std::vector<double>& row : folded) row[p + 1] = 0;
    ++p;
  }
  std::vector<Value> result;
  for (size_t i = 0; i < matrix.size(); ++i) result.push_back(Combine(folded[i], i % 2 == 0 ? sums : differences));
  return result;
}

/// The sum of factors[k] * x[k]; begins with a term that needs no multiplication, if there is one.
Value MatrixWriter::Combine(const std::vector<double>& factors, const std::vector<Value>& x) {
  size_t first = 0;
  while (first < factors.size() && factors[first] != 1) ++first;
  if (first == factors.size()) {
    first = 0;
    while (factors[first] == 0) ++first;
  }
  Value sum = factors[first] == 1 ? x[first] : math_.Multiply(x[first], math_.Like(factors[first], x[first]));
  for (size_t k = 0; k < factors.size(); ++k) {
    if (k == first || factors[k] == 0) continue;
    const double size = std::abs(factors[k]);
    const Value term = size == 1 ? x[k] : math_.Multiply(x[k], math_.Like(size, x[k]));
    sum = factors[k] > 0 ? math_.Add(sum, term) : math_.Subtract(sum, term);
  }
  return sum;
}

}  // namespace collage::native
