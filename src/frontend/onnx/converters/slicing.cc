// slicing.cc: operators of ONNX that cut tensors, join them, and extend or repeat them.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "frontend/onnx/builders.h"
#include "frontend/onnx/run_lists.h"
#include "ir/ops/relations.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

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

/// Parts of one size, but for the last, which is shorter where they cannot be; `length` is not known.
Results SplitEvenly(NodeContext& node, const Expr& data, int64_t axis, const SymbolicSize& length) {
  const auto parts = static_cast<int64_t>(node.num_outputs());
  const SymbolicSize size = SymbolicSize::CeilDivide(length, parts);
  Results results;
  for (int64_t i = 0; i < parts; ++i) {
    results.push_back(SliceBetween(node, data, axis, size * SymbolicSize(i), size * SymbolicSize(i + 1)));
  }
  return results;
}

V EvenSizes(int64_t length, int64_t parts) {
  const int64_t size = (length + parts - 1) / parts;
  V sizes;
  for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::max<int64_t>(0, std::min(size, length - i * size)));
  return sizes;
}

/// Throws kInput when `sizes` are not one for each output, and `length` together as far as that is known.
void CheckParts(NodeContext& node, const V& sizes, const SymbolicSize& length) {
  // Beyond the length already, no sum overflows.
  int64_t rest = length.is_known() ? length.known() : std::numeric_limits<int64_t>::max();
  for (int64_t size : sizes) rest = size < 0 || size > rest ? -1 : rest - size;
  const size_t parts = node.num_outputs();
  if (rest < 0 || (length.is_known() && rest != 0) || sizes.size() != parts)
    node.Invalid(fmt::format("cannot split {} into {} parts of {}", length.ToString(), parts, ToString(sizes)));
}

/// Parts of `sizes`, which are several.
Results SplitBySizes(NodeContext& node, const Expr& data, int64_t axis, const V& sizes, const SymbolicSize& length) {
  V cuts;
  int64_t at = 0;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) cuts.push_back(at += sizes[i]);
  Results results;
  if (!node.IsConstant(0) && node.KnownInts(0)) {
    // A list of sizes: each part is one, too.
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
  for (size_t i = 0; i < sizes.size(); ++i) results.push_back(node.Field(call, static_cast<int>(i)));
  if (!length.is_known()) {
    // The last part must be as long as it is said to be.
    results.back() = node.WithSizeAlong(results.back(), node.SizesOf(results.back()), axis, sizes.back());
  }
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
  if (sizes.empty() && !length.is_known()) return SplitEvenly(node, data, axis, length);
  if (sizes.empty()) sizes = EvenSizes(length.known(), parts);
  CheckParts(node, sizes, length);
  if (sizes.size() < 2) return {data};
  return SplitBySizes(node, data, axis, sizes, length);
}

/// A slice whose ends each run computes.
Expr SliceByInputs(NodeContext& node, V axes, V steps) {
  const Expr data = node.Input(0);
  const TensorTypeNode& ends = node.TypeOf(node.Input(1));
  if (ends.rank() != 1 || !ends.is_static()) node.Invalid("expects a list of starts");
  const auto count = static_cast<size_t>(ends.static_shape()[0]);
  const bool has_axes = !axes.empty();
  for (size_t i = 0; !has_axes && i < count; ++i) axes.push_back(static_cast<int64_t>(i));
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
    if (IsOfRun(node, 1) || IsOfRun(node, 2)) return {SliceByInputs(node, std::move(axes), std::move(steps))};
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
  const bool is_open = IsOfRun(node, 1);
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
  if (repeats.size() != shape.size())
    node.Invalid(fmt::format("{} repetitions for {} dimensions", repeats.size(), shape.size()));
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
  if (pads.size() != 2 * axes.size())
    node.Invalid(fmt::format("{} pads for {} axes, two for each are wanted", pads.size(), axes.size()));
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

}  // namespace

void AddSlicingConverters(OnnxConverters& converters) {
  converters.Add("Concat", ConvertConcat, "inputs+: [1..] -> concat_result", NarrowUse::kMoves);
  converters.Add("Split", ConvertSplit, "input: [1..], split?@13: int[1] -> outputs+", NarrowUse::kMoves);
  converters.Add("Slice", ConvertSlice,
                 "data: [1..], starts@10: int[1], ends@10: int[1], axes?@10: int[1], steps?@10: int[1] -> output",
                 NarrowUse::kMoves);
  converters.Add("Expand", ConvertExpand, "input, shape: int[1] -> output", NarrowUse::kMoves);
  converters.Add("Tile", ConvertTile, "input, repeats: int[1] -> output", NarrowUse::kMoves);
  converters.Add("Pad", ConvertPad, "data, pads@11: int[1], constant_value?@11: same[0..1], axes?@18: int[1] -> output",
                 NarrowUse::kMoves);
}

}  // namespace collage
