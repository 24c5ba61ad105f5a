// tensor.cc: operators of ONNX that shape, move, select and make tensors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/onnx/importer.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

int64_t Normal(NodeContext& node, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) node.Invalid(fmt::format("axis {} is out of range for rank {}", axis, rank));
  return axis < 0 ? axis + rank : axis;
}

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

std::string DTypeName(NodeContext& node, int64_t onnx_type) {
  switch (onnx_type) {
    case 1: return "float32";
    case 2: return "uint8";
    case 3: return "int8";
    case 4: return "uint16";
    case 5: return "int16";
    case 6: return "int32";
    case 7: return "int64";
    case 9: return "bool";
    case 10: return "float16";
    case 11: return "float64";
    case 12: return "uint32";
    case 13: return "uint64";
    case 16: return "bfloat16";
    default: node.Unsupported(fmt::format("element type {}", onnx_type));
  }
}

Results ConvertCast(NodeContext& node) {
  const std::string dtype = DTypeName(node, node.Int("to", 1));
  if (node.TypeOf(node.Input(0)).dtype().ToString() == dtype) return {node.Input(0)};
  return {node.Op("cast", {node.Input(0)}, {{"dtype", dtype}})};
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
  for (int64_t axis : axes) drop[static_cast<size_t>(Normal(node, axis, static_cast<int>(shape.size())))] = true;
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
  for (int64_t axis : axes) added[static_cast<size_t>(Normal(node, axis, rank))] = true;
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

Results ConvertConcat(NodeContext& node) {
  std::vector<Expr> fields;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    // Empty tensors add nothing; exporters write them.
    if (node.Rank(node.Input(i)) == 1 && node.ShapeOf(node.Input(i))[0] == 0 && node.num_inputs() > 1) continue;
    fields.push_back(node.Input(i));
  }
  if (fields.size() == 1) return {fields[0]};
  if (fields.empty()) return {node.Input(0)};
  const Expr tuple = MakeTuple(std::move(fields));
  std::vector<Type> types;
  for (const Expr& field : As<TupleNode>(tuple)->fields()) types.push_back(field->checked_type());
  tuple->set_checked_type(TupleType(std::move(types)));
  return {node.Op("concatenate", {tuple}, {{"axis", node.Int("axis", 0)}})};
}

Results ConvertSplit(NodeContext& node) {
  const Expr data = node.Input(0);
  const int64_t axis = Normal(node, node.Int("axis", 0), node.Rank(data));
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

Results ConvertGather(NodeContext& node) {
  return {node.Op("take", {node.Input(0), node.Input(1)}, {{"axis", node.Int("axis", 0)}})};
}

Results ConvertGatherElements(NodeContext& node) {
  return {node.Op("gather", {node.Input(0), node.Input(1)}, {{"axis", node.Int("axis", 0)}})};
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

Results ConvertPad(NodeContext& node) {
  const int rank = node.Rank(node.Input(0));
  const std::string mode = node.String("mode", "constant");
  if (mode == "wrap") node.Unsupported("padding by wrapping around");
  const V pads = node.opset() < 11 ? node.Ints("pads", {}) : node.ConstantInts(1);
  V axes;
  if (node.HasInput(3)) axes = node.ConstantInts(3);
  if (axes.empty()) {
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  }
  if (pads.size() != 2 * axes.size()) node.Invalid("pads do not fit the axes");
  std::vector<V> widths(static_cast<size_t>(rank), V{0, 0});
  for (size_t i = 0; i < axes.size(); ++i) {
    widths[static_cast<size_t>(Normal(node, axes[i], rank))] = {pads[i], pads[i + axes.size()]};
  }
  const DataType dtype = node.TypeOf(node.Input(0)).dtype();
  const double value = node.opset() < 11 ? node.Float("value", 0) : node.HasInput(2) ? node.Constant(2).At(0) : 0;
  return {node.Op("nn.pad", {node.Input(0), node.Scalar(value, dtype)},
                  {{"pad_width", AttrValue::List(widths.begin(), widths.end())}, {"pad_mode", mode}})};
}

Results ConvertConstantOfShape(NodeContext& node) {
  const V shape = node.ConstantInts(0);
  const Tensor value = node.TensorAttr("value").value_or(Tensor::Zeros({1}, kFloat32));
  Tensor result = Tensor::Empty(shape, value.dtype());
  for (int64_t i = 0; i < result.num_elements(); ++i) result.Set(i, value.At(0));
  return {MakeConstant(result)};
}

Results ConvertRange(NodeContext& node) {
  const Tensor start = node.Constant(0);
  const double first = start.At(0);
  const double step = node.Constant(2).At(0);
  const auto count = static_cast<int64_t>(std::max(0.0, std::ceil((node.Constant(1).At(0) - first) / step)));
  Tensor result = Tensor::Empty({count}, start.dtype());
  for (int64_t i = 0; i < count; ++i) result.Set(i, first + static_cast<double>(i) * step);
  return {MakeConstant(result)};
}

Results ConvertWhere(NodeContext& node) { return {node.Op("where", {node.Input(0), node.Input(1), node.Input(2)})}; }

/// Splits dimensions, permutes, merges: what both shuffles between depth and space are.
Expr Shuffle(NodeContext& node, const Shape& split, const V& axes, const Shape& merged) {
  return node.Reshape(node.Op("transpose", {node.Reshape(node.Input(0), split)}, {{"axes", axes}}), merged);
}

Results ConvertDepthToSpace(NodeContext& node) {
  const Shape s = node.ShapeOf(node.Input(0));
  const int64_t b = node.Int("blocksize", 1);
  const Shape merged{s[0], s[1] / (b * b), s[2] * b, s[3] * b};
  if (node.String("mode", "DCR") == "DCR") {
    return {Shuffle(node, {s[0], b, b, s[1] / (b * b), s[2], s[3]}, {0, 3, 4, 1, 5, 2}, merged)};
  }
  return {Shuffle(node, {s[0], s[1] / (b * b), b, b, s[2], s[3]}, {0, 1, 4, 2, 5, 3}, merged)};
}

Results ConvertSpaceToDepth(NodeContext& node) {
  const Shape s = node.ShapeOf(node.Input(0));
  const int64_t b = node.Int("blocksize", 1);
  return {Shuffle(node, {s[0], s[1], s[2] / b, b, s[3] / b, b}, {0, 3, 5, 1, 2, 4},
                  {s[0], s[1] * b * b, s[2] / b, s[3] / b})};
}

}  // namespace

void AddTensorConverters(OnnxConverters& converters) {
  converters["Constant"] = ConvertConstant;
  converters["Identity"] = ConvertIdentity;
  converters["Cast"] = ConvertCast;
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
  converters["Gather"] = ConvertGather;
  converters["GatherElements"] = ConvertGatherElements;
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
