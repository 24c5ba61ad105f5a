// sums.cc: a sum's operand, broadcast to the product's batch, rows and columns, is read with a stride for each.
#include "backends/cublas/sums.h"

#include <algorithm>
#include <span>
#include <utility>

#include "collage/ir/op.h"

namespace collage::cublas {
namespace {

using matches::Operand;
using matches::Refusal;

/// The operand's dimensions, of the rank of `shape`.
Shape Aligned(const Operand& operand, const CallNode& call, const Shape& shape) {
  Shape aligned(shape.size(), 1);
  const auto rank = static_cast<int64_t>(shape.size());
  if (call.op()->name == "nn.bias_add") {
    const int64_t axis = call.attrs().Int("axis");
    aligned.at(static_cast<size_t>(axis < 0 ? axis + rank : axis)) = operand.shape.at(0);
  } else {
    if (operand.shape.size() > shape.size()) throw Refusal{"adds what the product's shape holds only"};
    std::ranges::copy_backward(operand.shape, aligned.end());
  }
  return aligned;
}

/// How an operand lies along some dimensions of a value: it has them all, or is read again in all of them.
enum class Extent : uint8_t { kAll, kNone };

Extent ExtentOf(std::span<const int64_t> operand, std::span<const int64_t> value) {
  if (std::ranges::equal(operand, value)) return Extent::kAll;
  if (std::ranges::all_of(operand, [](int64_t size) { return size == 1; })) return Extent::kNone;
  throw Refusal{"adds a number for each column or row, or a matrix, got " +
                ToString(Shape(operand.begin(), operand.end())) + " for " +
                ToString(Shape(value.begin(), value.end()))};
}

/// How many dimensions of `shape` are the product's batch.
size_t BatchDimensions(const Shape& shape, const Product& product) {
  int64_t size = 1;
  size_t count = 0;
  while (size < product.batch && count + 1 < shape.size()) size *= shape[count++];
  const int64_t rows = NumElements(std::span(shape).subspan(count, shape.size() - 1 - count));
  if (size != product.batch || rows != product.m || shape.back() != product.n) {
    throw Refusal{"adds to whole rows only, reshaped to " + ToString(shape)};
  }
  return count;
}

}  // namespace

Sum ReadSum(Operand operand, const CallNode& call, const Shape& shape, const Product& product) {
  if (shape.empty()) throw Refusal{"adds to whole rows only"};
  const Shape aligned = Aligned(operand, call, shape);
  const size_t count = BatchDimensions(shape, product), last = shape.size() - 1;
  const auto extent = [&](size_t begin, size_t end) {
    return ExtentOf(std::span(aligned).subspan(begin, end - begin), std::span(shape).subspan(begin, end - begin));
  };
  const Extent batch = extent(0, count), rows = extent(count, last), columns = extent(last, last + 1);
  const bool is_constant = operand.input < 0;
  Sum sum{.operand = std::move(operand)};
  if (columns == Extent::kNone) {
    if (rows == Extent::kNone || !is_constant) throw Refusal{"adds a constant number for each row only"};
    sum.along = Along::kRows;
    sum.stride = batch == Extent::kAll && product.batch > 1 ? product.m : 0;
    return sum;
  }
  if (is_constant && (rows == Extent::kNone || product.m == 1)) {
    sum.along = Along::kColumns;
  } else {
    sum.row = rows == Extent::kAll ? product.n : 0;
  }
  sum.stride = batch == Extent::kAll && product.batch > 1 ? (sum.row != 0 ? product.m : 1) * product.n : 0;
  return sum;
}

}  // namespace collage::cublas
