// index.cc: operators of ONNX that read, write, find or order elements.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/onnx/builders.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

/// Index tuples along the last axis, as ONNX has them, moved to the first, as Relay has them.
Expr TuplesFirst(NodeContext& node, const Expr& indices) {
  const int rank = node.Rank(indices);
  V axes{rank - 1};
  for (int i = 0; i + 1 < rank; ++i) axes.push_back(i);
  return Transpose(node, indices, axes);
}

/// Indices that may count from the end, counted from the front; `length` is what they index.
Expr FromFront(NodeContext& node, const Expr& indices, const SymbolicSize& length) {
  const DataType dtype = node.TypeOf(indices).dtype();
  if (dtype.code == DataType::Code::kUInt) return indices;
  const Expr is_negative = node.Op("less", {indices, node.ScalarLike(0, indices)});
  const Expr term = length.is_known() ? node.ScalarLike(static_cast<double>(length.known()), indices)
                                      : node.Cast(node.ComputeScalar(length), dtype);
  return node.Op("where", {is_negative, node.Op("add", {indices, term}), indices});
}

/// ONNX's reduction as Relay calls it.
std::string Reduction(NodeContext& node) {
  const std::string how = node.String("reduction", "none");
  for (const char* known : {"add", "mul", "min", "max"}) {
    if (how == known) return how;
  }
  if (how != "none") node.Invalid("there is no reduction '" + how + "'");
  return "update";
}

Results ConvertGather(NodeContext& node) {
  const Expr data = node.Input(0);
  const int64_t axis = NormalAxis(node, node.Int("axis", 0), node.Rank(data));
  return {node.Op("take", {data, node.Input(1)}, {{"axis", axis}})};
}

Results ConvertGatherElements(NodeContext& node) {
  return {node.Op("gather", {node.Input(0), node.Input(1)}, {{"axis", node.Int("axis", 0)}})};
}

Results ConvertGatherNd(NodeContext& node) {
  const int64_t batch_dims = node.Int("batch_dims", 0);
  const Expr indices = node.Input(1);
  return {node.Op("gather_nd", {node.Input(0), TuplesFirst(node, indices)}, {{"batch_dims", batch_dims}})};
}

Results ConvertScatterElements(NodeContext& node) {
  return {node.Op("scatter_elements", {node.Input(0), node.Input(1), node.Input(2)},
                  {{"axis", node.Int("axis", 0)}, {"reduction", Reduction(node)}})};
}

Results ConvertScatterNd(NodeContext& node) {
  return {node.Op("scatter_nd", {node.Input(0), TuplesFirst(node, node.Input(1)), node.Input(2)},
                  {{"mode", Reduction(node)}})};
}

/// Writes a sequence into a cache from an index per batch on.
Results ConvertTensorScatter(NodeContext& node) {
  const Expr cache = node.Input(0);
  const Expr update = node.Input(1);
  const Shape shape = node.ShapeOf(cache);
  const int64_t axis = NormalAxis(node, node.Int("axis", -2), node.Rank(cache));
  if (axis == 0) node.Invalid("the axis of batches cannot be written along");
  if (node.Rank(update) != node.Rank(cache)) {
    node.Invalid(fmt::format("cache and update have ranks {} and {}, equal ones are wanted", node.Rank(cache),
                             node.Rank(update)));
  }
  const int64_t batch = shape[0];
  const int64_t steps = node.ShapeOf(update)[static_cast<size_t>(axis)];
  const int64_t length = shape[static_cast<size_t>(axis)];
  Expr places = node.Reshape(Int64s(CountedUp(node, 0, steps)), {1, steps});
  const Expr start = node.HasInput(2) ? node.Cast(node.Input(2), kInt64) : Filled(0, {batch}, kInt64);
  places = node.Op("add", {node.Reshape(start, {batch, 1}), places});
  if (node.OneOf("mode", "linear", {"linear", "circular"}) == "circular")
    places = node.Op("floor_mod", {places, node.ScalarLike(static_cast<double>(length), places)});
  // One index per element of the update, all equal but for batch and step.
  Shape spread(shape.size(), 1);
  spread[0] = batch;
  spread[static_cast<size_t>(axis)] = steps;
  const Expr indices = node.Op("broadcast_to", {node.Reshape(places, spread)}, {{"shape", node.ShapeOf(update)}});
  return {node.Op("scatter_elements", {cache, indices, update}, {{"axis", axis}})};
}

Results ConvertOneHot(NodeContext& node) {
  const bool is_open = !node.IsConstant(1) && node.KnownInts(1).has_value();
  if (is_open && node.SizeInts(1).size() != 1) node.Invalid("input 1 has several elements, one is wanted");
  const double depth = is_open ? 0 : node.ConstantNumber(1);
  if (!(depth >= 0 && depth < 0x1p53)) node.Invalid(fmt::format("depth is {}, a size is wanted", depth));
  const SymbolicSize size = is_open ? node.SizeInts(1)[0] : SymbolicSize(static_cast<int64_t>(depth));
  const Expr indices = FromFront(node, node.Cast(node.Input(0), kInt64), size);
  // values: [off, on].
  const Expr values = node.Input(2);
  const Expr off = node.Reshape(Slice(node, values, 0, 0, 1), {});
  const Expr on = node.Reshape(Slice(node, values, 0, 1, 2), {});
  const DataType dtype = node.TypeOf(values).dtype();
  if (size.is_known()) {
    return {node.Op("one_hot", {indices, on, off},
                    {{"depth", size.known()}, {"axis", node.Int("axis", -1)}, {"dtype", dtype}})};
  }
  const int64_t axis = NormalAxis(node, node.Int("axis", -1), node.Rank(indices) + 1);
  const Sizes shape = node.SizesOf(indices);
  PartialSizes sizes(shape.begin(), shape.end());
  sizes.insert(sizes.begin() + axis, size);
  return {node.WithSizes(
      node.Op("dyn.one_hot", {indices, on, off, node.ComputeScalar(size)}, {{"axis", axis}, {"dtype", dtype}}), sizes)};
}

/// As many as a run says.
Results TopKByInput(NodeContext& node) {
  const Expr data = node.Input(0);
  const int64_t axis = NormalAxis(node, node.Int("axis", -1), node.Rank(data));
  const Expr given = node.Cast(node.Reshape(node.Input(1), {}), kInt64);
  const Expr k = node.Op("maximum", {given, MakeScalar(0, kInt64)});
  const Expr call =
      node.Op("dyn.topk", {data, k}, {{"axis", axis}, {"is_ascend", node.Int("largest", 1) == 0}, {"dtype", kInt64}});
  const Sizes shape = node.SizesOf(data);
  Results results;
  for (int i = 0; i < 2; ++i) {
    // topk takes 0 for all.
    const Expr field = node.WithSizeAlong(node.Field(call, i), shape, axis, std::nullopt);
    const Expr first =
        node.Op("dyn.strided_slice", {field, Int64s({0}), node.Reshape(k, {1}), Int64s({1})}, {{"axes", V{axis}}});
    results.push_back(node.WithSizeAlong(first, shape, axis, std::nullopt));
  }
  return results;
}

Results ConvertTopK(NodeContext& node) {
  if (node.opset() >= 10 && !node.IsConstant(1) && !node.IsComputedFromSizes(1)) return TopKByInput(node);
  const Sizes given = node.opset() < 10 ? Sizes{SymbolicSize(node.Int("k", 0))} : node.SizeInts(1);
  if (given.size() != 1) node.Invalid(fmt::format("input 1 has {} elements, one is wanted", given.size()));
  const SymbolicSize size = given[0];
  const int64_t axis = NormalAxis(node, node.Int("axis", -1), node.Rank(node.Input(0)));
  const Sizes shape = node.SizesOf(node.Input(0));
  const SymbolicSize& length = shape[static_cast<size_t>(axis)];
  if (!size.is_known()) {
    const Expr call = node.Op("dyn.topk", {node.Input(0), node.ComputeScalar(size)},
                              {{"axis", axis}, {"is_ascend", node.Int("largest", 1) == 0}, {"dtype", kInt64}});
    const bool may_be_all = size.lower_bound() < 1;  // topk takes 0 for all
    Results results;
    for (int i = 0; i < 2; ++i) {
      const auto own = may_be_all ? std::nullopt : std::optional(size);
      const Expr field = node.WithSizeAlong(node.Field(call, i), shape, axis, own);
      results.push_back(may_be_all ? SliceBetween(node, field, axis, 0, size) : field);
    }
    return results;
  }
  const int64_t k = size.known();
  if (k < 0 || (length.is_known() && k > length.known()))
    node.Invalid(fmt::format("cannot take {} of {} elements", k, length.ToString()));
  if (k == 0) {
    Shape empty = node.ShapeOf(node.Input(0));
    empty[static_cast<size_t>(axis)] = 0;
    return {MakeConstant(Tensor::Zeros(empty, node.TypeOf(node.Input(0)).dtype())),
            MakeConstant(Tensor::Zeros(empty, kInt64))};
  }
  const Expr call = node.Op("topk", {node.Input(0)},
                            {{"k", k}, {"axis", axis}, {"is_ascend", node.Int("largest", 1) == 0}, {"dtype", kInt64}});
  return {node.Field(call, 0), node.Field(call, 1)};
}

Results ConvertNonZero(NodeContext& node) {
  Expr x = node.Input(0);
  if (node.Rank(x) == 0) x = node.Reshape(x, {1});
  return {node.Cast(Transpose(node, node.Op("argwhere", {x}), {1, 0}), kInt64)};
}

Results ConvertUnique(NodeContext& node) {
  Attrs attrs{{"sorted", node.Int("sorted", 1) != 0}, {"return_counts", true}};
  if (node.HasAttr("axis")) attrs.Set("axis", node.Int("axis", 0));
  const Expr call = node.Op("unique", {node.Input(0)}, std::move(attrs));
  const auto field = [&](int i) { return node.Cast(node.Field(call, i), kInt64); };
  return {node.Field(call, 0), field(1), field(2), field(4)};
}

/// Slices at which a condition holds.
Results ConvertCompress(NodeContext& node) {
  Expr data = node.Input(0);
  int64_t axis = 0;
  if (node.HasAttr("axis")) {
    axis = NormalAxis(node, node.Int("axis", 0), node.Rank(data));
  } else {
    data = node.Reshape(data, {node.SizesOf(data).Product()});
  }
  // A condition shorter than the axis leaves the rest out.
  const Expr places = node.Op("argwhere", {node.Input(1)});
  const Expr indices = node.Op("squeeze", {places}, {{"axis", V{1}}});
  return {node.Op("take", {data, indices}, {{"axis", axis}})};
}

Results ConvertReverseSequence(NodeContext& node) {
  return {node.Op("reverse_sequence", {node.Input(0), node.Input(1)},
                  {{"seq_axis", node.Int("time_axis", 0)}, {"batch_axis", node.Int("batch_axis", 1)}})};
}

Results ConvertTrilu(NodeContext& node) {
  const Expr k = node.HasInput(1) ? node.Reshape(node.Input(1), {}) : Expr(MakeConstant(Tensor::Zeros({}, kInt64)));
  return {node.Op("trilu", {node.Input(0), k}, {{"upper", node.Int("upper", 1) != 0}})};
}

OnnxConverter Cumulative(const char* op) {
  return [op](NodeContext& node) -> Results {
    const int64_t axis = NormalAxis(node, node.ConstantInt(1), node.Rank(node.Input(0)));
    const bool reverse = node.Int("reverse", 0) != 0;
    const Expr data = reverse ? Reversed(node, node.Input(0), axis) : node.Input(0);
    const Expr result = node.Op(op, {data}, {{"axis", axis}, {"exclusive", node.Int("exclusive", 0) != 0}});
    return {reverse ? Reversed(node, result, axis) : result};
  };
}

}  // namespace

void AddIndexConverters(OnnxConverters& converters) {
  converters.Add("Gather", ConvertGather, "data: [1..], indices: int -> output", NarrowUse::kMoves);
  converters.Add("GatherElements", ConvertGatherElements, "data: [1..], indices: int[1..] -> output",
                 NarrowUse::kMoves);
  converters.Add("GatherND", ConvertGatherNd, "data: [1..], indices: int[1..] -> output", NarrowUse::kMoves);
  converters.Add("Scatter", ConvertScatterElements, "data: [1..], indices: int[1..], updates: same[1..] -> output",
                 NarrowUse::kMoves);
  converters.Add("ScatterElements", ConvertScatterElements,
                 "data: [1..], indices: int[1..], updates: same[1..] -> output", NarrowUse::kMoves);
  converters.Add("ScatterND", ConvertScatterNd, "data: [1..], indices: int[1..], updates: same -> output",
                 NarrowUse::kMoves);
  converters.Add("TensorScatter", ConvertTensorScatter,
                 "past_cache: [2..], update: same[2..], write_indices?: int[1] -> present_cache");
  converters.Add("OneHot", ConvertOneHot, "indices: number, depth: number[0..1], values: [1] -> output");
  converters.Add("TopK", ConvertTopK, "X: number[1..], K@10: int[0..1] -> Values, Indices");
  converters.Add("NonZero", ConvertNonZero, "X -> Y");
  converters.Add("Unique", ConvertUnique, "X -> Y, indices?, inverse_indices?, counts?");
  converters.Add("Compress", ConvertCompress, "input: [1..], condition: bool[1] -> output", NarrowUse::kMoves);
  converters.Add("ReverseSequence", ConvertReverseSequence, "input: [2..], sequence_lens: int[1] -> Y",
                 NarrowUse::kMoves);
  converters.Add("Trilu", ConvertTrilu, "input: [2..], k?: int[0..1] -> output");
  converters.Add("CumSum", Cumulative("cumsum"), "x: number[1..], axis: int[0..1] -> y");
  converters.Add("CumProd", Cumulative("cumprod"), "x: number[1..], axis: int[0..1] -> y");
}

}  // namespace collage
