// tensor.cc: operators of ONNX that shape, move, select and make tensors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "frontend/onnx/builders.h"
#include "ir/ops/relations.h"

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
  node.Unsupported("a constant of this kind");
}

Results ConvertIdentity(NodeContext& node) { return {node.Input(0)}; }

/// The dtype of the attribute `to`, which has no default.
DataType Target(NodeContext& node) {
  if (!node.HasAttr("to")) node.Invalid("attribute 'to' is missing");
  return node.DTypeOf(node.Int("to", 0));
}

Results ConvertCast(NodeContext& node) { return {node.Cast(node.Input(0), Target(node))}; }

Results ConvertCastLike(NodeContext& node) { return {node.Cast(node.Input(0), node.TypeOf(node.Input(1)).dtype())}; }

Results ConvertBitCast(NodeContext& node) {
  return {node.Op("reinterpret", {node.Input(0)}, {{"dtype", Target(node)}})};
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

Results ConvertReshape(NodeContext& node) {
  const Expr data = node.Input(0);
  const Sizes shape = node.SizesOf(data);
  const bool allow_zero = node.Int("allowzero", 0) != 0;
  const bool is_attribute = node.HasAttr("shape");
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
  const bool is_open = !is_attribute && !node.IsConstant(1) && node.IsComputedFromSizes(1) && !allow_zero;
  if ((!known || may_copy) && is_open) {
    const Expr result = node.Op("dyn.reshape", {data, node.Cast(node.Input(1), kInt64)});
    if (!known) return {result};
    // Several sizes must be 0 for one to be copied: the tensor is empty then, and all others have the sizes asked for.
    PartialSizes sizes;
    for (size_t i = 0; i < known->size(); ++i) {
      const SymbolicSize& size = (*known)[i];
      sizes.emplace_back(size);
      if (size == 0 && i < shape.size()) sizes.back() = shape[i];
      if (size == -1) sizes.back() = std::nullopt;
    }
    return {node.WithSizes(result, sizes)};
  }
  const Sizes wanted = known ? *known : node.SizeInts(1);
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
  if (shape.is_known() && result.is_known()) {
    Shape sizes = result.known();
    if (inferred >= 0) sizes[static_cast<size_t>(inferred)] = 1;
    if (!CheckedBytes(sizes, kInt8))
      node.Invalid(fmt::format("cannot reshape {} to {}", ToString(shape.known()), wanted.ToString()));
    if (inferred >= 0) {
      const int64_t others = NumElements(sizes);
      if (others == 0) node.Invalid(fmt::format("cannot infer a size of {} beside one of 0", wanted.ToString()));
      sizes[static_cast<size_t>(inferred)] = NumElements(shape.known()) / others;
    }
    if (NumElements(sizes) != NumElements(shape.known())) {
      node.Invalid(fmt::format("cannot reshape {} to {}", ToString(shape.known()), ToString(wanted.known())));
    }
    return {node.Reshape(data, sizes)};
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

/// Parts whose sizes are computed of sizes; they must be the data's together, in every run.
Results SplitByInput(NodeContext& node, const Expr& data, int64_t axis, const SymbolicSize& length) {
  const Sizes parts = node.SizeInts(1);
  if (parts.size() != node.num_outputs()) {
    node.Invalid(
        fmt::format("cannot split {} into {} parts of {}", length.ToString(), node.num_outputs(), parts.ToString()));
  }
  Results results;
  SymbolicSize at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    // The last is what is left.
    const bool may_be_negative = i + 1 < parts.size() && parts[i].lower_bound() < 0;
    if (may_be_negative) node.NeedsSize("whether parts of " + parts.ToString() + " have sizes below 0");
    const SymbolicSize end = at + parts[i];
    const Expr part = SliceBetween(node, data, axis, at, end);
    results.push_back(node.WithSizeAlong(part, node.SizesOf(part), axis, parts[i]));
    at = end;
  }
  if (!(at == length)) node.NeedsSize("whether " + parts.ToString() + " are " + length.ToString() + " together");
  return results;
}

Results ConvertSplit(NodeContext& node) {
  const Expr data = node.Input(0);
  const int64_t axis = NormalAxis(node, node.Int("axis", 0), node.Rank(data));
  const SymbolicSize length = node.SizesOf(data)[static_cast<size_t>(axis)];
  const bool is_computed = !node.HasAttr("split") && node.HasInput(1) && !node.IsConstant(1);
  if (is_computed && node.IsComputedFromSizes(1)) return SplitByInput(node, data, axis, length);
  V sizes = node.HasAttr("split") ? node.Ints("split", {}) : node.HasInput(1) ? node.ConstantInts(1) : V{};
  const auto parts = static_cast<int64_t>(node.num_outputs());
  node.IntWithin("num_outputs", parts, parts, parts);
  if (sizes.empty() && !length.is_known()) {
    // All of one size, but for the last, which is shorter where they cannot be.
    const SymbolicSize size = SymbolicSize::CeilDivide(length, parts);
    Results results;
    for (int64_t i = 0; i < parts; ++i) {
      results.push_back(SliceBetween(node, data, axis, size * SymbolicSize(i), size * SymbolicSize(i + 1)));
    }
    return results;
  }
  if (sizes.empty()) {
    const int64_t whole = length.known();
    const int64_t size = (whole + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::max<int64_t>(0, std::min(size, whole - i * size)));
  }
  // Beyond the length already, no sum overflows.
  int64_t rest = length.is_known() ? length.known() : std::numeric_limits<int64_t>::max();
  for (int64_t size : sizes) rest = size < 0 || size > rest ? -1 : rest - size;
  if (rest < 0 || (length.is_known() && rest != 0) || static_cast<int64_t>(sizes.size()) != parts)
    node.Invalid(fmt::format("cannot split {} into {} parts of {}", length.ToString(), parts, ToString(sizes)));
  V cuts;
  int64_t at = 0;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) cuts.push_back(at += sizes[i]);
  if (cuts.empty()) return {data};
  if (!node.IsConstant(0) && node.KnownInts(0)) {
    // A list of sizes: each part is one, too.
    Results results;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const int64_t begin = i == 0 ? 0 : cuts[i - 1];
      results.push_back(Slice(node, data, axis, begin, begin + sizes[i]));
    }
    return results;
  }
  const bool equal =
      length.is_known() && std::all_of(sizes.begin(), sizes.end(), [&](int64_t size) { return size == sizes[0]; });
  const AttrValue how = equal ? AttrValue(static_cast<int64_t>(sizes.size())) : AttrValue(cuts);
  const Expr call = node.Op("split", {data}, {{"indices_or_sections", how}, {"axis", axis}});
  Results results;
  for (size_t i = 0; i < sizes.size(); ++i) results.push_back(node.Field(call, static_cast<int>(i)));
  if (!length.is_known()) {
    // The last part must be as long as it is said to be.
    results.back() = node.WithSizeAlong(results.back(), node.SizesOf(results.back()), axis, sizes.back());
  }
  return results;
}

/// A slice whose ends are computed of sizes.
Expr SliceByInputs(NodeContext& node, V axes, V steps) {
  const Expr data = node.Input(0);
  const TensorTypeNode& ends = node.TypeOf(node.Input(1));
  if (ends.rank() != 1 || !ends.is_static()) node.Invalid("expects a list of starts");
  const auto count = static_cast<size_t>(ends.static_shape()[0]);
  for (size_t i = 0; axes.size() < count; ++i) axes.push_back(static_cast<int64_t>(i));
  if (steps.empty()) steps.assign(count, 1);
  if (axes.size() != count || steps.size() != count || node.TypeOf(node.Input(2)).shape() != ends.shape()) {
    node.Invalid("starts, ends, axes and steps differ in length");
  }
  const Expr sliced = node.Op("dyn.strided_slice",
                              {data, node.Cast(node.Input(1), kInt64), node.Cast(node.Input(2), kInt64), Int64s(steps)},
                              {{"axes", axes}});
  const Sizes shape = node.SizesOf(data);
  PartialSizes sizes(shape.begin(), shape.end());
  const std::optional<Sizes> begin = node.KnownInts(1), end = node.KnownInts(2);
  for (size_t i = 0; i < count; ++i) {
    const auto axis = static_cast<size_t>(NormalAxis(node, axes[i], static_cast<int>(shape.size())));
    if (steps[i] == 0) node.Invalid("a step of 0");
    sizes[axis] = begin && end ? SlicedSize((*begin)[i], (*end)[i], steps[i], shape[axis]) : std::nullopt;
  }
  return node.WithSizes(sliced, sizes);
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
    if (node.HasInput(3)) axes = node.ConstantInts(3);
    if (node.HasInput(4)) steps = node.ConstantInts(4);
    const auto is_open = [&](size_t i) { return !node.IsConstant(i) && node.IsComputedFromSizes(i); };
    if (is_open(1) || is_open(2)) return {SliceByInputs(node, std::move(axes), std::move(steps))};
    begin = node.ConstantInts(1);
    end = node.ConstantInts(2);
  }
  if (axes.empty()) {
    for (size_t i = 0; i < begin.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (steps.empty()) steps.assign(begin.size(), 1);
  if (steps.size() != begin.size()) node.Invalid(fmt::format("{} steps for {} starts", steps.size(), begin.size()));
  return {
      node.Op("strided_slice", {node.Input(0)}, {{"begin", begin}, {"end", end}, {"strides", steps}, {"axes", axes}})};
}

Results ConvertExpand(NodeContext& node) {
  const Expr data = node.Input(0);
  const Sizes shape = node.SizesOf(data);
  const bool is_open = !node.IsConstant(1) && node.IsComputedFromSizes(1);
  // Both shapes are stretched to fit each other, as operands of an element-wise operator are.
  const auto beside_ones = [&](const Expr& ones) {
    const bool is_bool = node.TypeOf(data).dtype().is_bool();
    return node.Op(is_bool ? "logical_and" : "multiply", {data, ones});
  };
  const Expr one = MakeScalar(1, node.TypeOf(data).dtype());
  if (is_open && !node.KnownInts(1)) {
    return {beside_ones(node.Op("dyn.full", {one, node.Cast(node.Input(1), kInt64)}))};
  }
  const Sizes wanted = node.SizeInts(1);
  const size_t rank = std::max(shape.size(), wanted.size());
  Sizes result(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const SymbolicSize x = i + shape.size() < rank ? 1 : shape[i + shape.size() - rank];
    const SymbolicSize y = i + wanted.size() < rank ? 1 : wanted[i + wanted.size() - rank];
    const bool differs = x.is_known() && y.is_known() && !(x == y) && x.known() != 1 && y.known() != 1;
    if (differs || (y.is_known() && y.known() < 0)) {
      node.Invalid(fmt::format("cannot expand {} to {}", shape.ToString(), wanted.ToString()));
    }
    const std::optional<SymbolicSize> both =
        x.is_known() && y.is_known() ? (x == 1 ? y : x) : NodeContext::Broadcast(x, y);
    if (!both) return {beside_ones(node.Full(one, wanted))};
    result[i] = *both;
  }
  return {node.BroadcastTo(data, result)};
}

Results ConvertTile(NodeContext& node) {
  const Sizes repeats = node.SizeInts(1);
  const Expr data = node.Input(0);
  if (repeats.is_known()) return {node.Op("tile", {data}, {{"reps", repeats.known()}})};
  const Sizes shape = node.SizesOf(data);
  if (repeats.size() != shape.size()) node.Invalid("expects one repetition per dimension");
  PartialSizes sizes;
  for (size_t i = 0; i < shape.size(); ++i) sizes.emplace_back(shape[i] * repeats[i]);
  return {node.WithSizes(node.Op("dyn.tile", {data, node.Compute(repeats)}), sizes)};
}

/// The data repeated on all sides: slices at indices that wrap around.
Expr WrappedAround(NodeContext& node, Expr x, const std::vector<V>& widths) {
  for (size_t d = 0; d < widths.size(); ++d) {
    if (widths[d] == V{0, 0}) continue;
    const int64_t length = node.Known(node.SizesOf(x)[d], "the size that is wrapped around");
    if (length == 0) node.Invalid("there is nothing to wrap around");
    constexpr int64_t kMost = int64_t{1} << 40;
    if (std::max(length, std::max(widths[d][0], widths[d][1])) > kMost || std::min(widths[d][0], widths[d][1]) < -kMost)
      node.Unsupported(fmt::format("wrapping {} around by {}", length, ToString(widths[d])));
    V indices = CountedUp(node, -widths[d][0], length + widths[d][1]);
    for (int64_t& i : indices) i = ((i % length) + length) % length;
    x = node.Op("take", {x, Int64s(indices)}, {{"axis", static_cast<int64_t>(d)}});
  }
  return x;
}

Results ConvertPad(NodeContext& node) {
  const int rank = node.Rank(node.Input(0));
  const std::string mode = node.String("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    node.Invalid("there is no mode '" + mode + "'");
  const Sizes pads = node.opset() < 11 ? Sizes(node.Ints("pads", {})) : node.SizeInts(1);
  V axes;
  if (node.HasInput(3)) axes = node.ConstantInts(3);
  if (axes.empty()) {
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  }
  if (pads.size() != 2 * axes.size()) node.Invalid("pads do not fit the axes");
  const DataType dtype = node.TypeOf(node.Input(0)).dtype();
  const double value = node.opset() < 11 ? node.Float("value", 0) : node.HasInput(2) ? node.ConstantNumber(2) : 0;
  if (!pads.is_known()) {
    if (mode == "wrap") node.NeedsSize("how far to wrap around: " + pads.ToString());
    Sizes before(static_cast<size_t>(rank), 0), after(static_cast<size_t>(rank), 0);
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto axis = static_cast<size_t>(NormalAxis(node, axes[i], rank));
      before[axis] = pads[i];
      after[axis] = pads[i + axes.size()];
    }
    return {PadBy(node, node.Input(0), before, after, node.Scalar(value, dtype), mode)};
  }
  std::vector<V> widths(static_cast<size_t>(rank), V{0, 0});
  for (size_t i = 0; i < axes.size(); ++i) {
    widths[static_cast<size_t>(NormalAxis(node, axes[i], rank))] = {pads[i].known(), pads[i + axes.size()].known()};
  }
  if (mode == "wrap") return {WrappedAround(node, node.Input(0), widths)};
  return {node.Op("nn.pad", {node.Input(0), node.Scalar(value, dtype)},
                  {{"pad_width", AttrValue::List(widths.begin(), widths.end())}, {"pad_mode", mode}})};
}

Results ConvertConstantOfShape(NodeContext& node) {
  const Tensor value = node.TensorAttr("value").value_or(Tensor::Zeros({1}, kFloat32));
  if (value.num_elements() != 1) node.Invalid("the value must have one element");
  const Expr scalar = MakeConstant(value.Reshaped({}));
  if (!node.IsConstant(0) && node.IsComputedFromSizes(0) && !node.KnownInts(0)) {
    return {node.Op("dyn.full", {scalar, node.Cast(node.Input(0), kInt64)})};
  }
  return {node.Full(scalar, node.SizeInts(0))};
}

Results ConvertEyeLike(NodeContext& node) {
  const Shape shape = node.ShapeOf(node.Input(0));
  const DataType dtype =
      node.HasAttr("dtype") ? node.DTypeOf(node.Int("dtype", 1)) : node.TypeOf(node.Input(0)).dtype();
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

Results ConvertWhere(NodeContext& node) { return {node.Op("where", {node.Input(0), node.Input(1), node.Input(2)})}; }

/// Splits dimensions, permutes, merges: what both shuffles between depth and space are.
Expr Shuffle(NodeContext& node, const Sizes& split, const V& axes, const Sizes& merged) {
  return node.Reshape(node.Op("transpose", {node.Reshape(node.Input(0), split)}, {{"axes", axes}}), merged);
}

constexpr int64_t kLargestBlock = 1 << 15;  // squares of larger ones may not fit

int64_t BlockSize(NodeContext& node) { return node.IntWithin("blocksize", 0, 1, kLargestBlock); }

Results ConvertDepthToSpace(NodeContext& node) {
  const int64_t b = BlockSize(node);
  const Sizes s = node.SizesOf(node.Input(0));
  const int64_t depth = node.Known(s[1], "the number of channels");
  if (depth % (b * b) != 0) node.Invalid(fmt::format("{} channels are no blocks of {} by {}", depth, b, b));
  const int64_t channels = depth / (b * b);
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
  converters.Add("Constant", ConvertConstant, "-> output");
  converters.Add("Identity", ConvertIdentity, "input -> output");
  converters.Add("Cast", ConvertCast, "input -> output");
  converters.Add("CastLike", ConvertCastLike, "input, target_type -> output");
  converters.Add("BitCast", ConvertBitCast, "input -> output");
  converters.Add("EyeLike", ConvertEyeLike, "input: [2] -> output");
  converters.Add("Shape", ConvertShape, "data -> shape");
  converters.Add("Size", ConvertSize, "data -> size");
  converters.Add("Reshape", ConvertReshape, "data, shape: int[1] -> reshaped");
  converters.Add("Flatten", ConvertFlatten, "input -> output");
  converters.Add("Squeeze", ConvertSqueeze, "data, axes?@13: int[0..1] -> squeezed");
  converters.Add("Unsqueeze", ConvertUnsqueeze, "data, axes@13: int[0..1] -> expanded");
  converters.Add("Transpose", ConvertTranspose, "data -> transposed");
  converters.Add("Concat", ConvertConcat, "inputs+: [1..] -> concat_result");
  converters.Add("Split", ConvertSplit, "input: [1..], split?@13: int[1] -> outputs+");
  converters.Add("Slice", ConvertSlice,
                 "data: [1..], starts@10: int[1], ends@10: int[1], axes?@10: int[1], steps?@10: int[1] -> output");
  converters.Add("Expand", ConvertExpand, "input, shape: int[1] -> output");
  converters.Add("Tile", ConvertTile, "input, repeats: int[1] -> output");
  converters.Add("Pad", ConvertPad,
                 "data, pads@11: int[1], constant_value?@11: same[0..1], axes?@18: int[1] -> output");
  converters.Add("ConstantOfShape", ConvertConstantOfShape, "input: int[1] -> output");
  converters.Add("Range", ConvertRange, "start: number[0..1], limit: same[0..1], delta: same[0..1] -> output");
  converters.Add("Where", ConvertWhere, "condition: bool, X, Y -> output");
  converters.Add("DepthToSpace", ConvertDepthToSpace, "input: [4] -> output");
  converters.Add("SpaceToDepth", ConvertSpaceToDepth, "input: [4] -> output");
}

}  // namespace collage
