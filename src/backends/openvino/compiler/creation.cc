// creation.cc: rows of operators that make tensors out of sizes and scalars, and of masks made of positions.
#include <openvino/opsets/opset13.hpp>

#include "backends/openvino/compiler/translate.h"

namespace collage::openvino {
namespace {

namespace ops = ov::opset13;
using Value = ov::Output<ov::Node>;

template <int kValue>
ov::OutputVector Filled(const OpArgs& call) {
  return {ops::Constant::create(call.result_type(), call.result_shape(), std::vector<int>{kValue})};
}

ov::OutputVector Full(const OpArgs& call) {
  const ov::Shape shape = call.result_shape();
  return {std::make_shared<ops::Broadcast>(AsType(call[0], call.result_type()), Ints({shape.begin(), shape.end()}))};
}

ov::OutputVector ShapeOf(const OpArgs& call) {
  if (call.is_dynamic()) {
    return {AsType(std::make_shared<ops::ShapeOf>(call[0], ov::element::i64), call.result_type())};
  }
  const ov::Shape& shape = call[0].get_shape();
  return {ops::Constant::create(call.result_type(), {shape.size()}, std::vector<int64_t>(shape.begin(), shape.end()))};
}

ov::OutputVector NdarraySize(const OpArgs& call) {
  return {Scalar(call.result_type(), static_cast<double>(ov::shape_size(call[0].get_shape())))};
}

/// Identity when a model runs, and its mask.
ov::OutputVector Dropout(const OpArgs& call) {
  return {call[0], ops::Constant::create(call.result_type(1), call.result_shape(1), std::vector<int>{1})};
}

/// Each matrix times a mask: how far right of the diagonal an element is, compared with k. Folded when k is constant.
ov::OutputVector Trilu(const OpArgs& call) {
  const ov::Shape& shape = call[0].get_shape();
  const size_t rows = shape[shape.size() - 2];
  const size_t columns = shape.back();
  std::vector<int64_t> distances;
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) distances.push_back(static_cast<int64_t>(c) - static_cast<int64_t>(r));
  }
  const Value distance = ops::Constant::create(ov::element::i64, {rows, columns}, distances);
  const Value k = AsType(call[1], ov::element::i64);
  const Value kept = call.attrs.Bool("upper") ? Value(std::make_shared<ops::GreaterEqual>(distance, k))
                                              : Value(std::make_shared<ops::LessEqual>(distance, k));
  return {std::make_shared<ops::Select>(kept, call[0], Scalar(call[0].get_element_type(), 0))};
}

}  // namespace

void AddCreationRows(RowMap& rows) {
  rows["zeros"] = Filled<0>;
  rows["ones"] = Filled<1>;
  rows["full"] = Full;
  rows["shape_of"] = ShapeOf;
  rows["ndarray_size"] = NdarraySize;
  rows["nn.dropout"] = Dropout;
  rows["trilu"] = Trilu;
}

}  // namespace collage::openvino
