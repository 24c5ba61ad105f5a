// reduce.cc: rows of operators that combine the elements along axes, and of sorting.
#include <algorithm>
#include <openvino/opsets/opset13.hpp>

#include "backends/openvino/compiler/translate.h"

namespace collage::openvino {
namespace {

namespace ops = ov::opset13;
using Value = ov::Output<ov::Node>;

std::vector<int64_t> Axes(const OpArgs& call) {
  std::vector<int64_t> given;
  if (!call.attrs.IsNone("axis")) {
    for (int64_t axis : call.attrs.Ints("axis")) given.push_back(NormalAxis(axis, call.rank()));
  }
  const bool exclude = call.attrs.Has("exclude") && call.attrs.Bool("exclude");
  if (!exclude && !call.attrs.IsNone("axis")) return given;
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < static_cast<int64_t>(call.rank()); ++axis) {
    if (std::ranges::find(given, axis) == given.end()) axes.push_back(axis);
  }
  return axes;
}

template <typename Node>
ov::OutputVector Reduce(const OpArgs& call) {
  return {std::make_shared<Node>(call[0], Ints(Axes(call)), call.attrs.Bool("keepdims"))};
}

ov::OutputVector Variance(const OpArgs& call) {
  const Value mean = std::make_shared<ops::ReduceMean>(call[0], Ints(Axes(call)), true);
  const Value centred = std::make_shared<ops::Subtract>(call[0], mean);
  const Value squares = std::make_shared<ops::Multiply>(centred, centred);
  return {std::make_shared<ops::ReduceMean>(squares, Ints(Axes(call)), call.attrs.Bool("keepdims"))};
}

using TopK = ov::op::v11::TopK;

/// Values and indices of the `count` first elements in order; equal ones keep theirs.
std::shared_ptr<TopK> First(const Value& data, int64_t count, int64_t axis, bool ascending, ov::element::Type index_type) {
  return std::make_shared<TopK>(data, Scalar(ov::element::i64, static_cast<double>(count)), axis,
                                ascending ? TopK::Mode::MIN : TopK::Mode::MAX, TopK::SortType::SORT_VALUES, index_type,
                                /*stable=*/true);
}

template <bool kIsMax>
ov::OutputVector ArgReduce(const OpArgs& call) {
  const int64_t axis = Axes(call).at(0);
  const auto first = First(call[0], 1, axis, !kIsMax, call.result_type());
  if (call.attrs.Bool("keepdims")) return {first->output(1)};
  return {std::make_shared<ops::Squeeze>(first->output(1), Ints({axis}))};
}

/// Indices come out as i32 or i64; other types (Relay's default is float for argsort) by conversion.
Value AsType(const Value& value, ov::element::Type type) {
  return value.get_element_type() == type ? value : Value(std::make_shared<ops::Convert>(value, type));
}

ov::OutputVector TopKRow(const OpArgs& call) {
  const int64_t axis = NormalAxis(call.attrs.IntOr("axis", -1), call.rank());
  const auto size = static_cast<int64_t>(call[0].get_shape()[static_cast<size_t>(axis)]);
  const int64_t count = call.attrs.Int("k") < 1 ? size : call.attrs.Int("k");
  const bool ascending = call.attrs.Has("is_ascend") && call.attrs.Bool("is_ascend");
  const auto first = First(call[0], count, axis, ascending, ov::element::i64);
  const std::string what = call.attrs.StringOr("ret_type", "both");
  if (what == "values") return {first->output(0)};
  if (what == "indices") return {AsType(first->output(1), call.result_type())};
  return {first->output(0), AsType(first->output(1), call.result_type(1))};
}

ov::OutputVector ArgSort(const OpArgs& call) {
  const int64_t axis = NormalAxis(call.attrs.IntOr("axis", -1), call.rank());
  const auto size = static_cast<int64_t>(call[0].get_shape()[static_cast<size_t>(axis)]);
  const bool ascending = !call.attrs.Has("is_ascend") || call.attrs.Bool("is_ascend");
  return {AsType(First(call[0], size, axis, ascending, ov::element::i64)->output(1), call.result_type())};
}

ov::OutputVector CumSum(const OpArgs& call) {
  const int64_t axis = NormalAxis(call.attrs.Int("axis"), call.rank());
  return {std::make_shared<ops::CumSum>(call[0], Scalar(ov::element::i64, static_cast<double>(axis)),
                                        call.attrs.Bool("exclusive"), false)};
}

}  // namespace

void AddReduceRows(RowMap& rows) {
  rows["sum"] = Reduce<ops::ReduceSum>;
  rows["mean"] = Reduce<ops::ReduceMean>;
  rows["prod"] = Reduce<ops::ReduceProd>;
  rows["max"] = Reduce<ops::ReduceMax>;
  rows["min"] = Reduce<ops::ReduceMin>;
  rows["all"] = Reduce<ops::ReduceLogicalAnd>;
  rows["any"] = Reduce<ops::ReduceLogicalOr>;
  rows["variance"] = Variance;
  rows["argmax"] = ArgReduce<true>;
  rows["argmin"] = ArgReduce<false>;
  rows["topk"] = TopKRow;
  rows["argsort"] = ArgSort;
  rows["cumsum"] = CumSum;
}

}  // namespace collage::openvino
