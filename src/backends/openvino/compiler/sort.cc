// sort.cc: rows of operators that order elements or say where the first of an order are.
#include <algorithm>
#include <numeric>
#include <openvino/opsets/opset13.hpp>

#include "backends/openvino/compiler/translate.h"

namespace collage::openvino {
namespace {

namespace ops = ov::opset13;
using Value = ov::Output<ov::Node>;
using TopK = ov::op::v11::TopK;

int64_t SizeOf(const Value& value, int64_t axis) {
  return static_cast<int64_t>(value.get_shape()[static_cast<size_t>(axis)]);
}

/// Values and positions of the `count` first elements in order; equal ones keep theirs.
std::shared_ptr<TopK> First(const Value& data, int64_t count, int64_t axis, bool ascending) {
  return std::make_shared<TopK>(data, Scalar(ov::element::i64, static_cast<double>(count)), axis,
                                ascending ? TopK::Mode::MIN : TopK::Mode::MAX, TopK::SortType::SORT_VALUES,
                                ov::element::i64, /*stable=*/true);
}

/// The reduced axes as one: `value` with them at its end, merged.
Value Merged(const Value& value, const std::vector<int64_t>& axes) {
  std::vector<int64_t> order;
  ov::Shape shape;
  for (int64_t axis = 0; axis < static_cast<int64_t>(value.get_shape().size()); ++axis) {
    if (std::ranges::find(axes, axis) != axes.end()) continue;
    order.push_back(axis);
    shape.push_back(value.get_shape()[static_cast<size_t>(axis)]);
  }
  order.insert(order.end(), axes.begin(), axes.end());
  shape.push_back(ov::shape_size(value.get_shape()) / ov::shape_size(shape));
  return Reshaped(std::ranges::is_sorted(order) ? value : Transposed(value, order), shape);
}

template <bool kIsMax>
ov::OutputVector ArgReduce(const OpArgs& call) {
  std::vector<int64_t> axes = ReducedAxes(call);
  std::ranges::sort(axes);
  const Value data = axes.size() == 1 ? call[0] : Merged(call[0], axes);
  const int64_t axis = axes.size() == 1 ? axes[0] : static_cast<int64_t>(data.get_shape().size()) - 1;
  Value position;
  if (call.attrs.Bool("select_last_index")) {
    // The last of equal elements is the first of them backwards.
    const int64_t size = SizeOf(data, axis);
    const Value backwards = std::make_shared<ops::Slice>(data, Ints({-1}), Ints({-size - 1}), Ints({-1}), Ints({axis}));
    position = std::make_shared<ops::Subtract>(Scalar(ov::element::i64, static_cast<double>(size - 1)),
                                               First(backwards, 1, axis, !kIsMax)->output(1));
  } else {
    position = First(data, 1, axis, !kIsMax)->output(1);
  }
  return {Reshaped(AsType(position, call.result_type()), call.result_shape())};
}

ov::OutputVector TopKRow(const OpArgs& call) {
  const int64_t axis = NormalAxis(call.attrs.IntOr("axis", -1), call.rank());
  const int64_t count = call.attrs.Int("k") < 1 ? SizeOf(call[0], axis) : call.attrs.Int("k");
  const auto first = First(call[0], count, axis, call.attrs.Bool("is_ascend"));
  const std::string& what = call.attrs.String("ret_type");
  if (what == "values") return {first->output(0)};
  if (what == "indices") return {AsType(first->output(1), call.result_type())};
  return {first->output(0), AsType(first->output(1), call.result_type(1))};
}

/// All elements in order: 0 their values, 1 their positions.
template <size_t kOutput>
ov::OutputVector Sort(const OpArgs& call) {
  const int64_t axis = NormalAxis(call.attrs.IntOr("axis", -1), call.rank());
  const auto all = First(call[0], SizeOf(call[0], axis), axis, call.attrs.Bool("is_ascend"));
  return {AsType(all->output(kOutput), call.result_type())};
}

}  // namespace

void AddSortRows(RowMap& rows) {
  rows["argmax"] = ArgReduce<true>;
  rows["argmin"] = ArgReduce<false>;
  rows["topk"] = TopKRow;
  rows["sort"] = Sort<0>;
  rows["argsort"] = Sort<1>;
}

}  // namespace collage::openvino
