// dynamic.cc: rows of operators whose sizes are values that a run computes.
#include <numeric>
#include <openvino/opsets/opset13.hpp>

#include "backends/openvino/compiler/translate.h"

namespace collage::openvino {
namespace {

namespace ops = ov::opset13;
using Value = ov::Output<ov::Node>;

Value Sizes(const OpArgs& call, size_t index) { return AsType(call[index], ov::element::i64); }

ov::OutputVector DynReshape(const OpArgs& call) {
  const bool copies = !call.attrs.Has("allowzero") || !call.attrs.Bool("allowzero");
  return {std::make_shared<ops::Reshape>(call[0], Sizes(call, 1), copies)};
}

ov::OutputVector DynBroadcastTo(const OpArgs& call) {
  return {std::make_shared<ops::Broadcast>(call[0], Sizes(call, 1))};
}

ov::OutputVector DynStridedSlice(const OpArgs& call) {
  std::vector<int64_t> axes(ov::shape_size(call[1].get_shape()));
  std::iota(axes.begin(), axes.end(), 0);
  if (call.attrs.Has("axes") && !call.attrs.IsNone("axes")) axes = call.attrs.Ints("axes");
  return {std::make_shared<ops::Slice>(call[0], Sizes(call, 1), Sizes(call, 2), Sizes(call, 3), Ints(axes))};
}

ov::OutputVector DynFull(const OpArgs& call) {
  return {std::make_shared<ops::Broadcast>(AsType(call[0], call.result_type()), Sizes(call, 1))};
}

template <int kValue>
ov::OutputVector DynFilled(const OpArgs& call) {
  return {std::make_shared<ops::Broadcast>(Scalar(call.result_type(), kValue), Sizes(call, 0))};
}

ov::OutputVector DynTile(const OpArgs& call) { return {std::make_shared<ops::Tile>(call[0], Sizes(call, 1))}; }

ov::OutputVector Arange(const OpArgs& call) {
  const auto scalar = [&](size_t index) { return Reshaped(call[index], {}); };
  return {std::make_shared<ops::Range>(scalar(0), scalar(1), scalar(2), call.result_type())};
}

}  // namespace

void AddDynamicRows(RowMap& rows) {
  rows["dyn.reshape"] = DynReshape;
  rows["dyn.broadcast_to"] = DynBroadcastTo;
  rows["dyn.strided_slice"] = DynStridedSlice;
  rows["dyn.full"] = DynFull;
  rows["dyn.zeros"] = DynFilled<0>;
  rows["dyn.ones"] = DynFilled<1>;
  rows["dyn.tile"] = DynTile;
  rows["arange"] = Arange;
}

}  // namespace collage::openvino
