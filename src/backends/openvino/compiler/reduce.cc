// reduce.cc: rows of operators that combine the elements along axes.
#include <algorithm>
#include <openvino/opsets/opset13.hpp>

#include "backends/openvino/compiler/translate.h"

namespace collage::openvino {
namespace {

namespace ops = ov::opset13;
using Value = ov::Output<ov::Node>;

template <typename Node>
ov::OutputVector Reduce(const OpArgs& call) {
  return {std::make_shared<Node>(call[0], Ints(ReducedAxes(call)), call.attrs.Bool("keepdims"))};
}

ov::OutputVector Variance(const OpArgs& call) {
  const Value mean = std::make_shared<ops::ReduceMean>(call[0], Ints(ReducedAxes(call)), true);
  const Value centred = std::make_shared<ops::Subtract>(call[0], mean);
  const Value squares = std::make_shared<ops::Multiply>(centred, centred);
  const bool keep = call.attrs.Bool("keepdims");
  if (!call.attrs.Bool("unbiased")) return {std::make_shared<ops::ReduceMean>(squares, Ints(ReducedAxes(call)), keep)};
  const auto count = static_cast<double>(ov::shape_size(call[0].get_shape()) / ov::shape_size(call.result_shape()));
  const Value sum = std::make_shared<ops::ReduceSum>(squares, Ints(ReducedAxes(call)), keep);
  return {std::make_shared<ops::Divide>(sum, Scalar(call[0].get_element_type(), count - 1))};
}

ov::OutputVector CumSum(const OpArgs& call) {
  const int64_t axis = NormalAxis(call.attrs.Int("axis"), call.rank());
  return {std::make_shared<ops::CumSum>(AsType(call[0], call.result_type()),
                                        Scalar(ov::element::i64, static_cast<double>(axis)),
                                        call.attrs.Bool("exclusive"), false)};
}

}  // namespace

std::vector<int64_t> ReducedAxes(const OpArgs& call) {
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

void AddReduceRows(RowMap& rows) {
  rows["sum"] = Reduce<ops::ReduceSum>;
  rows["mean"] = Reduce<ops::ReduceMean>;
  rows["prod"] = Reduce<ops::ReduceProd>;
  rows["max"] = Reduce<ops::ReduceMax>;
  rows["min"] = Reduce<ops::ReduceMin>;
  rows["all"] = Reduce<ops::ReduceLogicalAnd>;
  rows["any"] = Reduce<ops::ReduceLogicalOr>;
  rows["variance"] = Variance;
  rows["cumsum"] = CumSum;
}

}  // namespace collage::openvino
