// tensor.cc: operators of ONNX that make tensors, and give them other types, shapes or orders of elements.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/onnx/attention_parts.h"
#include "frontend/onnx/narrow_types.h"
#include "frontend/onnx/run_lists.h"

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
  const NarrowType* narrow = nullptr;
  if (std::optional<Tensor> value = node.TensorAttr("value", &narrow)) {
    node.SetNarrow(0, narrow);
    return {MakeConstant(*value)};
  }
  if (node.HasAttr("value_float")) return {MakeScalar(node.Float("value_float", 0), kFloat32)};
  if (node.HasAttr("value_int")) return {MakeConstant(Tensor::Of<int64_t>({}, kInt64, V{node.Int("value_int", 0)}))};
  if (node.HasAttr("value_ints")) {
    const V values = node.Ints("value_ints", {});
    return {MakeConstant(Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, kInt64, values))};
  }
  if (node.HasAttr("value_floats")) {
    std::vector<float> values;
    for (double value : node.Floats("value_floats")) values.push_back(static_cast<float>(value));
    return {MakeConstant(Tensor::Of<float>({static_cast<int64_t>(values.size())}, kFloat32, values))};
  }
  if (node.HasAttr("value_string") || node.HasAttr("value_strings")) {
    node.SetNarrow(0, TextType());
    if (node.HasAttr("value_strings")) return {MakeConstant(node.StringTensor(node.Strings("value_strings")))};
    return {MakeConstant(node.StringTensor({node.String("value_string", "")}).Reshaped({}))};
  }
  node.Unsupported("sparse constants");
}

Results ConvertIdentity(NodeContext& node) { return {node.Input(0)}; }

/// The attribute `to`, a number of TensorProto.DataType, which has no default.
int64_t Target(NodeContext& node) {
  if (!node.HasAttr("to")) node.Invalid("attribute 'to' is missing");
  return node.Int("to", 0);
}

/// The input as `narrow`, or as `dtype` where that is null.
Results CastTo(NodeContext& node, const NarrowType* narrow, DataType dtype) {
  const NarrowType* from = node.NarrowOf(0);
  if (narrow != nullptr && narrow->is_text) node.Unsupported("numbers written as strings");
  const Expr x = from == nullptr ? node.Input(0) : Widen(node, node.Input(0), *from);
  if (narrow == nullptr) return {node.Cast(x, dtype)};
  node.SetNarrow(0, narrow);
  if (from == narrow) return {node.Input(0)};
  const std::string mode = node.OneOf("round_mode", "up", {"up", "down", "nearest"});
  return {Narrow(node, x, *narrow, {.saturates = node.Int("saturate", 1) != 0, .mode = mode})};
}

Results ConvertCast(NodeContext& node) {
  const int64_t target = Target(node);
  const NarrowType* narrow = FindNarrowType(static_cast<int>(target));
  return CastTo(node, narrow, narrow == nullptr ? node.DTypeOf(target) : narrow->storage());
}

Results ConvertCastLike(NodeContext& node) {
  return CastTo(node, node.NarrowOf(1), node.TypeOf(node.Input(1)).dtype());
}

Results ConvertBitCast(NodeContext& node) {
  const int64_t target = Target(node);
  const NarrowType* to = FindNarrowType(static_cast<int>(target));
  const NarrowType* from = node.NarrowOf(0);
  if (to != nullptr && to->is_text) node.Invalid("strings have no bits");
  const DataType dtype = to == nullptr ? node.DTypeOf(target) : to->storage();
  const int bits = from == nullptr ? static_cast<int>(node.TypeOf(node.Input(0)).dtype().size_bytes()) * 8 : from->bits;
  const int wanted = to == nullptr ? static_cast<int>(dtype.size_bytes()) * 8 : to->bits;
  if (bits != wanted)
    node.Invalid(fmt::format("elements of {} bits have not the bits of elements of {}", bits, wanted));
  node.SetNarrow(0, to);
  if (bits < 8) return {LowBits(node, node.Input(0), *to)};
  return {node.Op("reinterpret", {node.Input(0)}, {{"dtype", dtype}})};
}

Results ConvertShape(NodeContext& node) {
  const Sizes shape = node.SizesOf(node.Input(0));
  const auto rank = static_cast<int64_t>(shape.size());
  const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = clamp(node.Int("start", 0));
  const int64_t end = std::max(start, clamp(node.Int("end", rank)));
  return {node.Compute(Sizes(shape.begin() + start, shape.begin() + end))};
}

Results ConvertSize(NodeContext& node) { return {node.ComputeScalar(node.SizesOf(node.Input(0)).Product())}; }

/// Whether a size that is 0 in some run would copy another than 0 then. Where only one of the sizes may be 0 and none
/// is inferred, the data are as empty as what it copies.
bool MayCopy(const Sizes& from, const Sizes& to) {
  int num_empty = 0;
  bool copies_others = false;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].is_known() && to[i].known() == -1) ++num_empty;
    if (to[i].is_known() || to[i].lower_bound() > 0) continue;
    ++num_empty;
    // A multiple of what it would copy is 0 where that is.
    const auto factor = i < from.size() ? SymbolicSize::DivideExactly(to[i], from[i]) : std::nullopt;
    copies_others = copies_others || !factor || !factor->is_known();
  }
  return copies_others && num_empty > 1;
}

/// A reshape to sizes that each run computes: those that are `known` already become part of the type.
Expr ReshapeByInput(NodeContext& node, const Expr& data, const std::optional<Sizes>& known) {
  const Expr result = node.Op("dyn.reshape", {data, node.Cast(node.Input(1), kInt64)});
  if (!known) return result;
  // Several sizes must be 0 for one to be copied: the tensor is empty then, and all others have the sizes asked for.
  const Sizes shape = node.SizesOf(data);
  PartialSizes sizes;
  for (size_t i = 0; i < known->size(); ++i) {
    const SymbolicSize& size = (*known)[i];
    sizes.emplace_back(size);
    if (size == 0 && i < shape.size()) sizes.back() = shape[i];
    if (size == -1) sizes.back() = std::nullopt;
  }
  return node.WithSizes(result, sizes);
}

/// Returns `wanted` with sizes copied from `shape` in place of 0, unless `allow_zero`, and the dimension that is
/// inferred, -1 for none.
std::pair<Sizes, int> CopiedSizes(NodeContext& node, const Sizes& shape, const Sizes& wanted, bool allow_zero) {
  Sizes result = wanted;
  int inferred = -1;
  for (size_t i = 0; i < result.size(); ++i) {
    if (!result[i].is_known()) continue;
    if (result[i].known() == 0 && !allow_zero) {
      if (i >= shape.size()) node.Invalid("the new shape copies a dimension that does not exist");
      result[i] = shape[i];
    } else if (result[i].known() == -1) {
      if (inferred >= 0) node.Invalid("the new shape infers two dimensions");
      inferred = static_cast<int>(i);
    } else if (result[i].known() < -1) {
      node.Invalid(fmt::format("cannot reshape to {}", wanted.ToString()));
    }
  }
  return {std::move(result), inferred};
}

/// Returns `sizes` with the dimension `inferred`, if it is not -1, for tensors of shape `from`; throws kInput when the
/// numbers of elements differ. `wanted` is for messages.
Shape InferredShape(NodeContext& node, const Shape& from, Shape sizes, int inferred, const Sizes& wanted) {
  if (inferred >= 0) sizes[static_cast<size_t>(inferred)] = 1;
  if (!CheckedBytes(sizes, kInt8))
    node.Invalid(fmt::format("cannot reshape {} to {}", ToString(from), wanted.ToString()));
  if (inferred >= 0) {
    const int64_t others = NumElements(sizes);
    if (others == 0) node.Invalid(fmt::format("cannot infer a size of {} beside one of 0", wanted.ToString()));
    sizes[static_cast<size_t>(inferred)] = NumElements(from) / others;
  }
  if (NumElements(sizes) != NumElements(from)) {
    node.Invalid(fmt::format("cannot reshape {} to {}", ToString(from), ToString(wanted.known())));
  }
  return sizes;
}

constexpr int64_t kMostDimensions = 1000;

Results ConvertReshape(NodeContext& node) {
  const Expr data = node.Input(0);
  const Sizes shape = node.SizesOf(data);
  const bool allow_zero = node.Int("allowzero", 0) != 0;
  const bool is_attribute = node.HasAttr("shape");
  if (!is_attribute) {
    const SymbolicSize rank = node.SizesOf(node.Input(1)).at(0);
    if (node.Known(rank, "the number of dimensions") > kMostDimensions) {
      node.Unsupported(fmt::format("a shape of {} dimensions", rank.ToString()));
    }
  }
  std::optional<Sizes> known = is_attribute ? Sizes(node.Ints("shape", {})) : node.KnownInts(1);
  // A size that may be -1 in some run would be inferred in that.
  const bool may_infer = known && std::ranges::any_of(*known, [](const SymbolicSize& size) {
                           return !size.is_known() && size.lower_bound() < 0;
                         });
  if (may_infer) {
    if (allow_zero) node.NeedsSize("whether a size of " + known->ToString() + " is inferred");
    known = std::nullopt;
  }
  const bool may_copy = known && !allow_zero && MayCopy(shape, *known);
  const bool is_open = !is_attribute && IsOfRun(node, 1) && !allow_zero;
  if ((!known || may_copy) && is_open) return {ReshapeByInput(node, data, known)};
  const Sizes wanted = known ? *known : node.SizeInts(1);
  const auto [result, inferred] = CopiedSizes(node, shape, wanted, allow_zero);
  if (shape.is_known() && result.is_known()) {
    return {node.Reshape(data, InferredShape(node, shape.known(), result.known(), inferred, wanted))};
  }
  return {node.Reshape(data, result, inferred)};
}

Results ConvertFlatten(NodeContext& node) {
  const Sizes shape = node.SizesOf(node.Input(0));
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = node.IntWithin("axis", 1, -rank, std::max<int64_t>(rank, 1));
  if (axis < 0) axis += rank;
  Sizes flat(2, 1);
  for (size_t i = 0; i < shape.size(); ++i) flat[static_cast<int64_t>(i) < axis ? 0 : 1] *= shape[i];
  return {node.Reshape(node.Input(0), flat)};
}

Results ConvertSqueeze(NodeContext& node) {
  const Sizes shape = node.SizesOf(node.Input(0));
  const V axes = AxesOf(node, 1);
  std::vector<bool> drop(shape.size());
  if (axes.empty() && !shape.is_known()) node.NeedsSize("which dimensions of " + shape.ToString() + " are 1");
  for (size_t i = 0; i < shape.size(); ++i) drop[i] = axes.empty() && shape[i] == 1;
  for (int64_t axis : axes) drop[static_cast<size_t>(NormalAxis(node, axis, static_cast<int>(shape.size())))] = true;
  Sizes result;
  V dropped;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!drop[i]) result.push_back(shape[i]);
    if (drop[i]) dropped.push_back(static_cast<int64_t>(i));
    if (drop[i] && shape[i].is_known() && shape[i].known() != 1)
      node.Invalid(fmt::format("squeezes dimension {} of {}, which is not 1", i, shape.ToString()));
  }
  if (!shape.is_known()) return {node.Op("squeeze", {node.Input(0)}, {{"axis", dropped}})};
  return {node.Reshape(node.Input(0), result)};
}

Results ConvertUnsqueeze(NodeContext& node) {
  const Sizes shape = node.SizesOf(node.Input(0));
  V axes = AxesOf(node, 1);
  const int rank = static_cast<int>(shape.size() + axes.size());
  std::vector<bool> added(static_cast<size_t>(rank));
  for (int64_t axis : axes) {
    const auto at = static_cast<size_t>(NormalAxis(node, axis, rank));
    if (added[at]) node.Invalid(fmt::format("axis {} is inserted twice", axis));
    added[at] = true;
  }
  if (!shape.is_known()) {
    Expr x = node.Input(0);
    for (int i = 0; i < rank; ++i) {
      if (added[static_cast<size_t>(i)]) x = node.Op("expand_dims", {x}, {{"axis", i}});
    }
    return {x};
  }
  Sizes result;
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

Results ConvertConstantOfShape(NodeContext& node) {
  const NarrowType* narrow = nullptr;
  const Tensor value = node.TensorAttr("value", &narrow).value_or(Tensor::Zeros({1}, kFloat32));
  node.SetNarrow(0, narrow);
  if (value.num_elements() != 1)
    node.Invalid(fmt::format("the value has {} elements, one is wanted", value.num_elements()));
  const Expr scalar = MakeConstant(value.Reshaped({}));
  if (!node.IsConstant(0) && node.IsComputedFromSizes(0) && !node.KnownInts(0)) {
    return {node.Op("dyn.full", {scalar, node.Cast(node.Input(0), kInt64)})};
  }
  return {node.Full(scalar, node.SizeInts(0))};
}

Results ConvertEyeLike(NodeContext& node) {
  const DataType dtype =
      node.HasAttr("dtype") ? node.DTypeOf(node.Int("dtype", 1)) : node.TypeOf(node.Input(0)).dtype();
  if (!node.IsStatic(node.Input(0))) {
    const Sizes sizes = node.SizesOf(node.Input(0));
    const Expr row = Positions(node, sizes[0], 0, 2), column = Positions(node, sizes[1], 1, 2);
    const Expr k = MakeConstant(Tensor::Of<int64_t>({}, kInt64, V{node.Int("k", 0)}));
    return {node.Cast(node.Op("equal", {node.Op("add", {row, k}), column}), dtype)};
  }
  const Shape shape = node.ShapeOf(node.Input(0));
  const Tensor eye = ZerosOf(node, shape, dtype);
  const int64_t k = std::clamp(node.Int("k", 0), -shape[0], shape[1]);
  for (int64_t row = std::max<int64_t>(0, -k); row < shape[0] && row + k < shape[1]; ++row)
    eye.Set(row * shape[1] + row + k, 1);
  return {MakeConstant(eye)};
}

/// Throws kUnsupported when the elements of a range, which are known, are too many for a constant.
void CheckRangeCount(NodeContext& node) {
  if (!node.IsConstant(0) || !node.IsConstant(1) || !node.IsConstant(2)) return;
  const double count = std::ceil((node.ConstantNumber(1) - node.ConstantNumber(0)) / node.ConstantNumber(2));
  if (count > static_cast<double>(kLargestFoldedBytes) / static_cast<double>(sizeof(double)))
    node.Unsupported(fmt::format("a range of {} elements", count));
}

Results ConvertRange(NodeContext& node) {
  CheckRangeCount(node);
  const Expr range = node.Op(
      "arange", {node.Reshape(node.Input(0), {}), node.Reshape(node.Input(1), {}), node.Reshape(node.Input(2), {})});
  if (node.IsStatic(range)) return {range};
  const std::optional<Sizes> start = node.KnownInts(0), stop = node.KnownInts(1), step = node.KnownInts(2);
  if (!start || !stop || !step || !(*step)[0].is_known() || (*step)[0].known() == 0) return {range};
  const SymbolicSize span = (*step)[0].known() > 0 ? (*stop)[0] - (*start)[0] : (*start)[0] - (*stop)[0];
  const int64_t distance = std::abs((*step)[0].known());
  return {node.WithSizes(range, {SymbolicSize::CeilDivide(SymbolicSize::Maximum(span, 0), distance)})};
}

Results ConvertWhere(NodeContext& node) {
  if (node.NarrowOf(1) != node.NarrowOf(2)) node.Invalid("X and Y have different element types");
  node.SetNarrow(0, node.NarrowOf(1));
  return {node.Op("where", {node.Input(0), node.Input(1), node.Input(2)})};
}

/// Splits dimensions, permutes, merges: what both shuffles between depth and space are.
Expr Shuffle(NodeContext& node, const Sizes& split, const V& axes, const Sizes& merged) {
  return node.Reshape(node.Op("transpose", {node.Reshape(node.Input(0), split)}, {{"axes", axes}}), merged);
}

constexpr int64_t kLargestBlock = 1 << 15;  // squares of larger ones may not fit

int64_t BlockSize(NodeContext& node) { return node.IntWithin("blocksize", 0, 1, kLargestBlock); }

Results ConvertDepthToSpace(NodeContext& node) {
  const int64_t b = BlockSize(node);
  const Sizes s = node.SizesOf(node.Input(0));
  if (s[1].is_known() && s[1].known() % (b * b) != 0)
    node.Invalid(fmt::format("{} channels are no blocks of {} by {}", s[1].known(), b, b));
  const SymbolicSize channels = SymbolicSize::FloorDivide(s[1], b * b);
  const Sizes merged{s[0], channels, s[2] * b, s[3] * b};
  if (node.OneOf("mode", "DCR", {"DCR", "CRD"}) == "DCR") {
    return {Shuffle(node, {s[0], b, b, channels, s[2], s[3]}, {0, 3, 4, 1, 5, 2}, merged)};
  }
  return {Shuffle(node, {s[0], channels, b, b, s[2], s[3]}, {0, 1, 4, 2, 5, 3}, merged)};
}

Results ConvertSpaceToDepth(NodeContext& node) {
  const int64_t b = BlockSize(node);
  const Sizes s = node.SizesOf(node.Input(0));
  for (size_t d : {2, 3}) {
    if (!s[d].is_known() || s[d].known() % b == 0) continue;
    node.Invalid(fmt::format("{} by {} pixels are no blocks of {}", s[2].ToString(), s[3].ToString(), b));
  }
  const SymbolicSize rows = SymbolicSize::FloorDivide(s[2], b), columns = SymbolicSize::FloorDivide(s[3], b);
  const bool crd = node.OneOf("mode", "DCR", {"DCR", "CRD"}) == "CRD";
  return {Shuffle(node, {s[0], s[1], rows, b, columns, b}, crd ? V{0, 1, 3, 5, 2, 4} : V{0, 3, 5, 1, 2, 4},
                  {s[0], s[1] * (b * b), rows, columns})};
}

}  // namespace

void AddTensorConverters(OnnxConverters& converters) {
  converters.Add("Constant", ConvertConstant, "-> output", NarrowUse::kItsOwn);
  converters.Add("Identity", ConvertIdentity, "input: value -> output", NarrowUse::kMoves);
  converters.Add("Cast", ConvertCast, "input -> output", NarrowUse::kItsOwn);
  converters.Add("CastLike", ConvertCastLike, "input, target_type -> output", NarrowUse::kItsOwn);
  converters.Add("BitCast", ConvertBitCast, "input -> output", NarrowUse::kItsOwn);
  converters.Add("EyeLike", ConvertEyeLike, "input: [2] -> output");
  converters.Add("Shape", ConvertShape, "data -> shape", NarrowUse::kReads);
  converters.Add("Size", ConvertSize, "data -> size", NarrowUse::kReads);
  converters.Add("Reshape", ConvertReshape, "data, shape: int[1] -> reshaped", NarrowUse::kMoves);
  converters.Add("Flatten", ConvertFlatten, "input -> output", NarrowUse::kMoves);
  converters.Add("Squeeze", ConvertSqueeze, "data, axes?@13: int[0..1] -> squeezed", NarrowUse::kMoves);
  converters.Add("Unsqueeze", ConvertUnsqueeze, "data, axes@13: int[0..1] -> expanded", NarrowUse::kMoves);
  converters.Add("Transpose", ConvertTranspose, "data -> transposed", NarrowUse::kMoves);
  converters.Add("ConstantOfShape", ConvertConstantOfShape, "input: int[1] -> output", NarrowUse::kItsOwn);
  converters.Add("Range", ConvertRange, "start: number[0..1], limit: same[0..1], delta: same[0..1] -> output");
  converters.Add("Where", ConvertWhere, "condition: bool, X, Y -> output", NarrowUse::kReads);
  converters.Add("DepthToSpace", ConvertDepthToSpace, "input: [4] -> output");
  converters.Add("SpaceToDepth", ConvertSpaceToDepth, "input: [4] -> output");
}

}  // namespace collage
