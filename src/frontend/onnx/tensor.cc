// tensor.cc: operators of ONNX that shape, move, select and make tensors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/onnx/builders.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

/// Axes from an attribute (older opsets) or an input.
V AxesOf(NodeContext& node, size_t input) {
  if (node.HasAttr("axes")) return node.Ints("axes", {});
  return node.HasInput(input) ? node.ConstantInts(input) : V{};
}

Results ConvertConstant(NodeContext& node) {
  if (std::optional<Tensor> value = node.TensorAttr("value")) return {MakeConstant(*value)};
  if (node.HasAttr("value_float")) return {MakeScalar(node.Float("value_float", 0), kFloat32)};
  if (node.HasAttr("value_int")) return {MakeScalar(static_cast<double>(node.Int("value_int", 0)), kInt64)};
  if (node.HasAttr("value_ints")) {
    const V values = node.Ints("value_ints", {});
    return {MakeConstant(Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, kInt64, values))};
  }
  if (node.HasAttr("value_floats")) {
    std::vector<float> values;
    for (double value : node.Floats("value_floats")) values.push_back(static_cast<float>(value));
    return {MakeConstant(Tensor::Of<float>({static_cast<int64_t>(values.size())}, kFloat32, values))};
  }
  node.Unsupported("a constant of this kind");
}

Results ConvertIdentity(NodeContext& node) { return {node.Input(0)}; }

Results ConvertCast(NodeContext& node) { return {node.Cast(node.Input(0), node.DTypeOf(node.Int("to", 1)))}; }

Results ConvertCastLike(NodeContext& node) { return {node.Cast(node.Input(0), node.TypeOf(node.Input(1)).dtype())}; }

Results ConvertBitCast(NodeContext& node) {
  return {node.Op("reinterpret", {node.Input(0)}, {{"dtype", node.DTypeOf(node.Int("to", 1))}})};
}

Results ConvertConcat(NodeContext& node) {
  const int64_t axis = node.Int("axis", 0);
  std::vector<Expr> parts;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    // Empty tensors add nothing; exporters write them.
    const TensorTypeNode& type = node.TypeOf(node.Input(i));
    if (type.rank() == 1 && type.shape()[0] == Dim(0) && node.num_inputs() > 1) continue;
    parts.push_back(node.Input(i));
  }
  return {parts.empty() ? node.Input(0) : Concatenate(node, std::move(parts), axis)};
}

Results ConvertShape(NodeContext& node) {
  const Shape shape = node.ShapeOf(node.Input(0));
  const auto rank = static_cast<int64_t>(shape.size());
  const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = clamp(node.Int("start", 0));
  const int64_t end = std::max(start, clamp(node.Int("end", rank)));
  const V part(shape.begin() + start, shape.begin() + end);
  return {MakeConstant(Tensor::Of<int64_t>({end - start}, kInt64, part))};
}

Results ConvertSize(NodeContext& node) {
  return {MakeScalar(static_cast<double>(NumElements(node.ShapeOf(node.Input(0)))), kInt64)};
}

Results ConvertReshape(NodeContext& node) {
  const V wanted = node.HasAttr("shape") ? node.Ints("shape", {}) : node.ConstantInts(1);
  const Shape shape = node.ShapeOf(node.Input(0));
  const bool allow_zero = node.Int("allowzero", 0) != 0;
  Shape result = wanted;
  int64_t known = 1;
  int inferred = -1;
  for (size_t i = 0; i < result.size(); ++i) {
    if (result[i] == 0 && !allow_zero) {
      if (i >= shape.size()) node.Invalid("the new shape copies a dimension that does not exist");
      result[i] = shape[i];
    }
    if (result[i] == -1) {
      inferred = static_cast<int>(i);
    } else {
      known *= result[i];
    }
  }
  if (inferred >= 0) result[static_cast<size_t>(inferred)] = known == 0 ? 0 : NumElements(shape) / known;
  if (NumElements(result) != NumElements(shape)) {
    node.Invalid(fmt::format("cannot reshape {} to {}", ToString(shape), ToString(wanted)));
  }
  return {node.Reshape(node.Input(0), result)};
}

Results ConvertFlatten(NodeContext& node) {
  const Shape shape = node.ShapeOf(node.Input(0));
  int64_t axis = node.Int("axis", 1);
  if (axis < 0) axis += static_cast<int64_t>(shape.size());
  Shape flat(2, 1);
  for (size_t i = 0; i < shape.size(); ++i) flat[static_cast<int64_t>(i) < axis ? 0 : 1] *= shape[i];
  return {node.Reshape(node.Input(0), flat)};
}

Results ConvertSqueeze(NodeContext& node) {
  const Shape shape = node.ShapeOf(node.Input(0));
  const V axes = AxesOf(node, 1);
  std::vector<bool> drop(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) drop[i] = axes.empty() && shape[i] == 1;
  for (int64_t axis : axes) drop[static_cast<size_t>(NormalAxis(node, axis, static_cast<int>(shape.size())))] = true;
  Shape result;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!drop[i]) result.push_back(shape[i]);
  }
  if (NumElements(result) != NumElements(shape)) node.Invalid("squeezes a dimension that is not 1");
  return {node.Reshape(node.Input(0), result)};
}

Results ConvertUnsqueeze(NodeContext& node) {
  const Shape shape = node.ShapeOf(node.Input(0));
  V axes = AxesOf(node, 1);
  const int rank = static_cast<int>(shape.size() + axes.size());
  std::vector<bool> added(static_cast<size_t>(rank));
  for (int64_t axis : axes) added[static_cast<size_t>(NormalAxis(node, axis, rank))] = true;
  Shape result;
  size_t next = 0;
  for (int i = 0; i < rank; ++i)
    result.push_back(added[static_cast<size_t>(i)] || next >= shape.size() ? 1 : shape[next++]);
  return {node.Reshape(node.Input(0), result)};
}

Results ConvertTranspose(NodeContext& node) {
  V axes = node.Ints("perm", {});
  if (axes.empty()) {
    for (int i = node.Rank(node.Input(0)); i-- > 0;) axes.push_back(i);
  }
  return {node.Op("transpose", {node.Input(0)}, {{"axes", axes}})};
}

Results ConvertSplit(NodeContext& node) {
  const Expr data = node.Input(0);
  const int64_t axis = NormalAxis(node, node.Int("axis", 0), node.Rank(data));
  const int64_t length = node.ShapeOf(data)[static_cast<size_t>(axis)];
  V sizes = node.HasAttr("split") ? node.Ints("split", {}) : node.HasInput(1) ? node.ConstantInts(1) : V{};
  const auto parts = static_cast<int64_t>(node.HasAttr("num_outputs") ? node.Int("num_outputs", 1)
                                                                      : static_cast<int64_t>(node.num_outputs()));
  if (sizes.empty()) {
    const int64_t size = (length + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::max<int64_t>(0, std::min(size, length - i * size)));
  }
  V cuts;
  int64_t at = 0;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) cuts.push_back(at += sizes[i]);
  if (cuts.empty()) return {data};
  const bool equal = std::all_of(sizes.begin(), sizes.end(), [&](int64_t size) { return size == sizes[0]; });
  const AttrValue how = equal ? AttrValue(static_cast<int64_t>(sizes.size())) : AttrValue(cuts);
  const Expr call = node.Op("split", {data}, {{"indices_or_sections", how}, {"axis", axis}});
  Results results;
  for (size_t i = 0; i < sizes.size(); ++i) results.push_back(node.Field(call, static_cast<int>(i)));
  return results;
}

Results ConvertSlice(NodeContext& node) {
  V begin;
  V end;
  V axes;
  V steps;
  if (node.opset() < 10) {
    begin = node.Ints("starts", {});
    end = node.Ints("ends", {});
    axes = node.Ints("axes", {});
  } else {
    begin = node.ConstantInts(1);
    end = node.ConstantInts(2);
    if (node.HasInput(3)) axes = node.ConstantInts(3);
    if (node.HasInput(4)) steps = node.ConstantInts(4);
  }
  if (axes.empty()) {
    for (size_t i = 0; i < begin.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (steps.empty()) steps.assign(begin.size(), 1);
  return {
      node.Op("strided_slice", {node.Input(0)}, {{"begin", begin}, {"end", end}, {"strides", steps}, {"axes", axes}})};
}

Results ConvertExpand(NodeContext& node) {
  const Shape shape = node.ShapeOf(node.Input(0));
  Shape wanted = node.ConstantInts(1);
  const size_t rank = std::max(shape.size(), wanted.size());
  Shape result(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i + shape.size() < rank ? 1 : shape[i + shape.size() - rank];
    const int64_t y = i + wanted.size() < rank ? 1 : wanted[i + wanted.size() - rank];
    result[i] = x == 1 ? y : x;
  }
  if (result == shape) return {node.Input(0)};
  return {node.Op("broadcast_to", {node.Input(0)}, {{"shape", result}})};
}

Results ConvertTile(NodeContext& node) { return {node.Op("tile", {node.Input(0)}, {{"reps", node.ConstantInts(1)}})}; }

/// The data repeated on all sides: slices at indices that wrap around.
Expr WrappedAround(NodeContext& node, Expr x, const std::vector<V>& widths) {
  for (size_t d = 0; d < widths.size(); ++d) {
    const int64_t length = node.ShapeOf(x)[d];
    if (widths[d] == V{0, 0}) continue;
    if (length == 0) node.Invalid("there is nothing to wrap around");
    V indices;
    for (int64_t i = -widths[d][0]; i < length + widths[d][1]; ++i) indices.push_back(((i % length) + length) % length);
    x = node.Op("take", {x, Int64s(indices)}, {{"axis", static_cast<int64_t>(d)}});
  }
  return x;
}

Results ConvertPad(NodeContext& node) {
  const int rank = node.Rank(node.Input(0));
  const std::string mode = node.String("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    node.Invalid("there is no mode '" + mode + "'");
  const V pads = node.opset() < 11 ? node.Ints("pads", {}) : node.ConstantInts(1);
  V axes;
  if (node.HasInput(3)) axes = node.ConstantInts(3);
  if (axes.empty()) {
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  }
  if (pads.size() != 2 * axes.size()) node.Invalid("pads do not fit the axes");
  std::vector<V> widths(static_cast<size_t>(rank), V{0, 0});
  for (size_t i = 0; i < axes.size(); ++i) {
    widths[static_cast<size_t>(NormalAxis(node, axes[i], rank))] = {pads[i], pads[i + axes.size()]};
  }
  if (mode == "wrap") return {WrappedAround(node, node.Input(0), widths)};
  const DataType dtype = node.TypeOf(node.Input(0)).dtype();
  const double value = node.opset() < 11 ? node.Float("value", 0) : node.HasInput(2) ? node.Constant(2).At(0) : 0;
  return {node.Op("nn.pad", {node.Input(0), node.Scalar(value, dtype)},
                  {{"pad_width", AttrValue::List(widths.begin(), widths.end())}, {"pad_mode", mode}})};
}

Results ConvertConstantOfShape(NodeContext& node) {
  const V shape = node.ConstantInts(0);
  const Tensor value = node.TensorAttr("value").value_or(Tensor::Zeros({1}, kFloat32));
  if (value.num_elements() != 1) node.Invalid("the value must have one element");
  return {node.Op("full", {MakeConstant(value.Reshaped({}))}, {{"shape", shape}})};
}

Results ConvertEyeLike(NodeContext& node) {
  const Shape shape = node.ShapeOf(node.Input(0));
  if (shape.size() != 2) node.Invalid("expects a matrix");
  const DataType dtype =
      node.HasAttr("dtype") ? node.DTypeOf(node.Int("dtype", 1)) : node.TypeOf(node.Input(0)).dtype();
  Tensor eye = Tensor::Zeros(shape, dtype);
  const int64_t k = node.Int("k", 0);
  for (int64_t row = std::max<int64_t>(0, -k); row < shape[0] && row + k < shape[1]; ++row)
    eye.Set(row * shape[1] + row + k, 1);
  return {MakeConstant(eye)};
}

Results ConvertRange(NodeContext& node) {
  return {node.Op("arange",
                  {node.Reshape(node.Input(0), {}), node.Reshape(node.Input(1), {}), node.Reshape(node.Input(2), {})})};
}

Results ConvertWhere(NodeContext& node) { return {node.Op("where", {node.Input(0), node.Input(1), node.Input(2)})}; }

/// Splits dimensions, permutes, merges: what both shuffles between depth and space are.
Expr Shuffle(NodeContext& node, const Shape& split, const V& axes, const Shape& merged) {
  return node.Reshape(node.Op("transpose", {node.Reshape(node.Input(0), split)}, {{"axes", axes}}), merged);
}

int64_t BlockSize(NodeContext& node) {
  const int64_t size = node.Int("blocksize", 0);
  if (size < 1) node.Invalid(fmt::format("blocksize must be positive, got {}", size));
  if (node.Rank(node.Input(0)) != 4) node.Invalid("expects data of rank 4");
  return size;
}

Results ConvertDepthToSpace(NodeContext& node) {
  const int64_t b = BlockSize(node);
  const Shape s = node.ShapeOf(node.Input(0));
  if (s[1] % (b * b) != 0) node.Invalid(fmt::format("{} channels are no blocks of {} by {}", s[1], b, b));
  const Shape merged{s[0], s[1] / (b * b), s[2] * b, s[3] * b};
  if (node.String("mode", "DCR") == "DCR") {
    return {Shuffle(node, {s[0], b, b, s[1] / (b * b), s[2], s[3]}, {0, 3, 4, 1, 5, 2}, merged)};
  }
  return {Shuffle(node, {s[0], s[1] / (b * b), b, b, s[2], s[3]}, {0, 1, 4, 2, 5, 3}, merged)};
}

Results ConvertSpaceToDepth(NodeContext& node) {
  const Shape s = node.ShapeOf(node.Input(0));
  const int64_t b = BlockSize(node);
  if (s[2] % b != 0 || s[3] % b != 0) node.Invalid(fmt::format("{} by {} pixels are no blocks of {}", s[2], s[3], b));
  const bool crd = node.String("mode", "DCR") == "CRD";
  return {Shuffle(node, {s[0], s[1], s[2] / b, b, s[3] / b, b}, crd ? V{0, 1, 3, 5, 2, 4} : V{0, 3, 5, 1, 2, 4},
                  {s[0], s[1] * b * b, s[2] / b, s[3] / b})};
}

}  // namespace

void AddTensorConverters(OnnxConverters& converters) {
  converters["Constant"] = ConvertConstant;
  converters["Identity"] = ConvertIdentity;
  converters["Cast"] = ConvertCast;
  converters["CastLike"] = ConvertCastLike;
  converters["BitCast"] = ConvertBitCast;
  converters["EyeLike"] = ConvertEyeLike;
  converters["Shape"] = ConvertShape;
  converters["Size"] = ConvertSize;
  converters["Reshape"] = ConvertReshape;
  converters["Flatten"] = ConvertFlatten;
  converters["Squeeze"] = ConvertSqueeze;
  converters["Unsqueeze"] = ConvertUnsqueeze;
  converters["Transpose"] = ConvertTranspose;
  converters["Concat"] = ConvertConcat;
  converters["Split"] = ConvertSplit;
  converters["Slice"] = ConvertSlice;
  converters["Expand"] = ConvertExpand;
  converters["Tile"] = ConvertTile;
  converters["Pad"] = ConvertPad;
  converters["ConstantOfShape"] = ConvertConstantOfShape;
  converters["Range"] = ConvertRange;
  converters["Where"] = ConvertWhere;
  converters["DepthToSpace"] = ConvertDepthToSpace;
  converters["SpaceToDepth"] = ConvertSpaceToDepth;
}

}  // namespace collage
