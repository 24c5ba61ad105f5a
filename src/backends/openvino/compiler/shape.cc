// shape.cc: rows of operators that move elements without indices.
#include <openvino/opsets/opset13.hpp>

#include "backends/openvino/compiler/translate.h"

namespace collage::openvino {
namespace {

namespace ops = ov::opset13;
using Value = ov::Output<ov::Node>;

ov::OutputVector Reshape(const OpArgs& call) {
  const bool is_literal = call.attrs.Has("allowzero") && call.attrs.Bool("allowzero");
  return {ReshapedAs(call, is_literal ? std::vector<int64_t>{} : call.attrs.Ints("newshape"))};
}

ov::OutputVector ExpandDims(const OpArgs& call) {
  if (!call.is_dynamic()) return {ReshapedAs(call)};
  const int64_t first = NormalAxis(call.attrs.Int("axis"), call.rank() + 1);
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < call.attrs.IntOr("num_newaxis", 1); ++i) axes.push_back(first + i);
  return {std::make_shared<ops::Unsqueeze>(call[0], Ints(axes))};
}

ov::OutputVector Squeeze(const OpArgs& call) {
  if (!call.is_dynamic() || call.attrs.IsNone("axis")) return {ReshapedAs(call)};
  std::vector<int64_t> axes;
  for (const int64_t axis : call.attrs.Ints("axis")) axes.push_back(NormalAxis(axis, call.rank()));
  return {std::make_shared<ops::Squeeze>(call[0], Ints(axes))};
}

ov::OutputVector BatchFlatten(const OpArgs& call) { return {ReshapedAs(call, {0, -1})}; }

ov::OutputVector Transpose(const OpArgs& call) {
  std::vector<int64_t> axes;
  if (call.attrs.IsNone("axes")) {
    for (size_t i = call.rank(); i-- > 0;) axes.push_back(static_cast<int64_t>(i));
  } else {
    for (int64_t axis : call.attrs.Ints("axes")) axes.push_back(NormalAxis(axis, call.rank()));
  }
  return {Transposed(call[0], axes)};
}

ov::OutputVector LayoutTransform(const OpArgs& call) {
  const std::string& from = call.attrs.String("src_layout");
  std::vector<int64_t> axes;
  for (char letter : call.attrs.String("dst_layout")) axes.push_back(static_cast<int64_t>(from.find(letter)));
  return {Transposed(call[0], axes)};
}

ov::OutputVector ReverseSequence(const OpArgs& call) {
  return {std::make_shared<ops::ReverseSequence>(call[0], call[1],
                                                 NormalAxis(call.attrs.Int("batch_axis"), call.rank()),
                                                 NormalAxis(call.attrs.Int("seq_axis"), call.rank()))};
}

ov::OutputVector Concatenate(const OpArgs& call) {
  if (call.inputs.size() == 1) return {call[0]};
  return {std::make_shared<ops::Concat>(call.inputs, call.attrs.Int("axis"))};
}

ov::OutputVector Stack(const OpArgs& call) {
  const int64_t axis = NormalAxis(call.attrs.Int("axis"), call.rank() + 1);
  ov::OutputVector parts;
  for (const Value& input : call.inputs) parts.push_back(std::make_shared<ops::Unsqueeze>(input, Ints({axis})));
  if (parts.size() == 1) return parts;
  return {std::make_shared<ops::Concat>(parts, axis)};
}

ov::OutputVector Split(const OpArgs& call) {
  const int64_t axis = NormalAxis(call.attrs.Int("axis"), call.rank());
  const size_t count = FlattenTensorTypes(call.result).size();
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < count; ++i) {
    lengths.push_back(call.result_dim(i, static_cast<size_t>(axis)));
  }
  return std::make_shared<ops::VariadicSplit>(call[0], Scalar(ov::element::i64, static_cast<double>(axis)),
                                              Ints(lengths))
      ->outputs();
}

ov::OutputVector StridedSlice(const OpArgs& call) {
  const std::vector<int64_t> begin = call.attrs.Ints("begin");
  const std::vector<int64_t> end = call.attrs.Ints("end");
  std::vector<int64_t> strides = call.attrs.IsNone("strides") ? std::vector<int64_t>{} : call.attrs.Ints("strides");
  strides.resize(begin.size(), strides.size() == 1 ? strides[0] : 1);
  std::vector<int64_t> axes;
  for (size_t i = 0; i < begin.size(); ++i) {
    axes.push_back(call.attrs.IsNone("axes") ? static_cast<int64_t>(i)
                                             : NormalAxis(call.attrs.Ints("axes")[i], call.rank()));
  }
  return {std::make_shared<ops::Slice>(call[0], Ints(begin), Ints(end), Ints(strides), Ints(axes))};
}

ov::OutputVector BroadcastTo(const OpArgs& call) {
  const ov::Shape shape = call.result_shape();
  if (call[0].get_shape() == shape) return {call[0]};
  return {std::make_shared<ops::Broadcast>(call[0], Ints({shape.begin(), shape.end()}))};
}

ov::OutputVector Tile(const OpArgs& call) {
  return {std::make_shared<ops::Tile>(call[0], Ints(call.attrs.Ints("reps")))};
}

/// Each slice `repeats` times in a row: a new dimension behind the axis, broadcast, merged.
ov::OutputVector Repeat(const OpArgs& call) {
  const auto axis = static_cast<size_t>(NormalAxis(call.attrs.Int("axis"), call.rank()));
  ov::Shape shape = call[0].get_shape();
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis) + 1, 1);
  std::vector<int64_t> repeats(shape.size(), 1);
  repeats[axis + 1] = call.attrs.Int("repeats");
  return {Reshaped(std::make_shared<ops::Tile>(Reshaped(call[0], shape), Ints(repeats)), call.result_shape())};
}

ov::OutputVector Reverse(const OpArgs& call) {
  const int64_t axis = NormalAxis(call.attrs.Int("axis"), call.rank());
  const auto size = static_cast<int64_t>(call[0].get_shape()[static_cast<size_t>(axis)]);
  return {std::make_shared<ops::Slice>(call[0], Ints({-1}), Ints({-size - 1}), Ints({-1}), Ints({axis}))};
}

ov::op::PadMode PadMode(const std::string& mode) {
  if (mode == "constant") return ov::op::PadMode::CONSTANT;
  if (mode == "edge") return ov::op::PadMode::EDGE;
  if (mode == "reflect") return ov::op::PadMode::REFLECT;
  throw Untranslatable{"has no pad mode '" + mode + "'"};
}

ov::OutputVector Pad(const OpArgs& call) {
  std::vector<int64_t> before;
  std::vector<int64_t> after;
  for (const AttrValue& pair : *call.attrs.Get("pad_width").as_list()) {
    before.push_back(*pair.as_list()->at(0).as_int());
    after.push_back(*pair.as_list()->at(1).as_int());
  }
  const ov::op::PadMode mode = PadMode(call.attrs.String("pad_mode"));
  if (mode != ov::op::PadMode::CONSTANT) return {std::make_shared<ops::Pad>(call[0], Ints(before), Ints(after), mode)};
  return {std::make_shared<ops::Pad>(call[0], Ints(before), Ints(after), Reshaped(call[1], {}), mode)};
}

ov::OutputVector DepthToSpace(const OpArgs& call) {
  using Node = ops::DepthToSpace;
  const bool crd = call.attrs.StringOr("mode", "DCR") == "CRD";
  const auto mode = crd ? Node::DepthToSpaceMode::DEPTH_FIRST : Node::DepthToSpaceMode::BLOCKS_FIRST;
  return {std::make_shared<Node>(call[0], mode, static_cast<size_t>(call.attrs.Int("block_size")))};
}

ov::OutputVector SpaceToDepth(const OpArgs& call) {
  using Node = ops::SpaceToDepth;
  return {std::make_shared<Node>(call[0], Node::SpaceToDepthMode::BLOCKS_FIRST,
                                 static_cast<size_t>(call.attrs.Int("block_size")))};
}

}  // namespace

void AddShapeRows(RowMap& rows) {
  rows["reshape"] = Reshape;
  rows["expand_dims"] = ExpandDims;
  rows["squeeze"] = Squeeze;
  rows["nn.batch_flatten"] = BatchFlatten;
  rows["transpose"] = Transpose;
  rows["layout_transform"] = LayoutTransform;
  rows["reverse_sequence"] = ReverseSequence;
  rows["concatenate"] = Concatenate;
  rows["stack"] = Stack;
  rows["split"] = Split;
  rows["strided_slice"] = StridedSlice;
  rows["broadcast_to"] = BroadcastTo;
  rows["tile"] = Tile;
  rows["repeat"] = Repeat;
  rows["reverse"] = Reverse;
  rows["nn.pad"] = Pad;
  rows["nn.depth_to_space"] = DepthToSpace;
  rows["nn.space_to_depth"] = SpaceToDepth;
}

}  // namespace collage::openvino
