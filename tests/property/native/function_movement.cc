// function_movement.cc: random steps that move elements.
#include <algorithm>
#include <numeric>

#include "property/native/function_generator.h"

namespace collage {

FunctionGenerator::Made FunctionGenerator::Transpose() {
  const Value x = Any();
  if (x.rank() < 2) return std::nullopt;
  Ints axes(x.shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  for (size_t i = axes.size() - 1; i > 0; --i)
    std::swap(axes[i], axes[static_cast<size_t>(Below(static_cast<int>(i) + 1))]);
  if (OneIn(5)) return Call("transpose", {x.expr}, {}, x.low, x.high, x.is_exact);
  return Call("transpose", {x.expr}, {{"axes", axes}}, x.low, x.high, x.is_exact);
}

FunctionGenerator::Made FunctionGenerator::Reshape() {
  const Value x = Any();
  // Factors of the number of elements, in any order.
  int64_t left = NumElements(x.shape);
  if (left == 0) return std::nullopt;
  Ints shape;
  const int rank = Below(5) + (left > 1 ? 1 : 0);
  for (int d = 0; d + 1 < rank; ++d) {
    std::vector<int64_t> factors;
    for (int64_t factor = 1; factor <= std::min<int64_t>(left, 40); ++factor) {
      if (left % factor == 0) factors.push_back(factor);
    }
    shape.push_back(random_.Pick(factors));
    left /= shape.back();
  }
  if (rank > 0) shape.push_back(left);
  for (size_t i = shape.size(); i-- > 1;)
    std::swap(shape[i], shape[static_cast<size_t>(Below(static_cast<int>(i) + 1))]);
  return Call("reshape", {x.expr}, {{"newshape", shape}}, x.low, x.high, x.is_exact);
}

FunctionGenerator::Made FunctionGenerator::Axes() {
  const Value x = Any();
  if (OneIn(3) && x.rank() >= 1) return Call("nn.batch_flatten", {x.expr}, {}, x.low, x.high, x.is_exact);
  if (OneIn(2)) {
    Ints ones;
    for (int d = 0; d < x.rank(); ++d) {
      if (x.size(d) == 1) ones.push_back(d);
    }
    if (ones.empty()) return std::nullopt;
    return Call("squeeze", {x.expr}, {{"axis", Ints{random_.Pick(ones)}}}, x.low, x.high, x.is_exact);
  }
  if (x.rank() > 4) return std::nullopt;
  return Call("expand_dims", {x.expr}, {{"axis", Below(x.rank() + 1)}, {"num_newaxis", 1}}, x.low, x.high, x.is_exact);
}

FunctionGenerator::Made FunctionGenerator::Repetition() {
  const Value x = Any();
  switch (Below(4)) {
    case 0: {
      if (x.rank() == 0) return std::nullopt;
      Ints reps;
      for (int d = 0; d < x.rank(); ++d) reps.push_back(Between(1, 3));
      return Call("tile", {x.expr}, {{"reps", reps}}, x.low, x.high, x.is_exact);
    }
    case 1:
      if (x.rank() == 0) return std::nullopt;
      return Call("repeat", {x.expr}, {{"repeats", Between(1, 3)}, {"axis", Axis(x)}}, x.low, x.high, x.is_exact);
    case 2:
      if (x.rank() == 0) return std::nullopt;
      return Call("reverse", {x.expr}, {{"axis", Axis(x)}}, x.low, x.high, x.is_exact);
    default: {
      Ints shape = x.shape;
      for (int64_t& size : shape) size = size == 1 && OneIn(2) ? Between(1, 5) : size;
      if (OneIn(3)) shape.insert(shape.begin(), Between(1, 3));
      return Call("broadcast_to", {x.expr}, {{"shape", shape}}, x.low, x.high, x.is_exact);
    }
  }
}

FunctionGenerator::Made FunctionGenerator::Slice() {
  const Value x = Any();
  if (x.rank() == 0) return std::nullopt;
  Ints begin, end, strides, axes;
  for (int d = 0; d < x.rank(); ++d) {
    if (x.size(d) == 0 || !OneIn(2)) continue;
    const bool is_backwards = OneIn(4);
    const int64_t from = Between(0, x.size(d) - 1);
    axes.push_back(d);
    if (is_backwards) {
      begin.push_back(from);
      end.push_back(OneIn(2) ? -100 : Between(-x.size(d) - 1, from - x.size(d)));
      strides.push_back(-Between(1, 3));
    } else {
      begin.push_back(OneIn(4) ? from - x.size(d) : from);
      end.push_back(OneIn(3) ? 1000 : Between(from + (OneIn(20) ? 0 : 1), x.size(d)));
      strides.push_back(Between(1, 3));
    }
  }
  if (axes.empty()) return std::nullopt;
  return Call("strided_slice", {x.expr}, {{"begin", begin}, {"end", end}, {"strides", strides}, {"axes", axes}}, x.low,
              x.high, x.is_exact);
}

FunctionGenerator::Made FunctionGenerator::Pad() {
  const Value x = Any();
  if (x.rank() == 0) return std::nullopt;
  const std::string mode = random_.Pick<std::string>({"constant", "constant", "edge", "reflect"});
  if (mode != "constant" && NumElements(x.shape) == 0) return std::nullopt;
  AttrValue::List widths;
  for (int d = 0; d < x.rank(); ++d) {
    const int64_t most = OneIn(2) ? 0 : mode == "reflect" ? std::min<int64_t>(x.size(d) - 1, 3) : 3;
    widths.push_back(AttrValue(Ints{Between(0, most), Between(0, most)}));
  }
  const double filling = x.dtype.is_bool() ? 0 : random_.Pick<double>({0, 0, 1});
  const Expr value = MakeScalar(filling, x.dtype);
  return Call("nn.pad", {x.expr, value}, {{"pad_width", widths}, {"pad_mode", mode}}, std::min(x.low, filling),
              std::max(x.high, filling), x.is_exact);
}

FunctionGenerator::Made FunctionGenerator::Split() {
  const Value x = Any();
  if (x.rank() == 0) return std::nullopt;
  const int axis = Axis(x);
  const int64_t size = x.size(axis);
  if (size < 2) return std::nullopt;
  if (size % 2 == 0 && OneIn(2)) {
    return Fields("split", {x.expr}, {{"indices_or_sections", 2}, {"axis", axis}}, {x, x});
  }
  Ints cuts{Between(1, size - 1)};
  if (cuts[0] + 1 < size && OneIn(2)) cuts.push_back(Between(cuts[0] + 1, size - 1));
  return Fields("split", {x.expr}, {{"indices_or_sections", cuts}, {"axis", axis}},
                std::vector<Value>(cuts.size() + 1, x));
}

/// Concatenations and stacks, often of values that were just made.
FunctionGenerator::Made FunctionGenerator::Join() {
  const Value x = Any();
  const bool is_stack = OneIn(3);
  if (x.rank() == 0 && !is_stack) return std::nullopt;
  const int axis = is_stack ? Below(x.rank() + 1) : Axis(x);
  std::vector<Expr> parts{x.expr};
  Value all = x;
  const int others = 1 + Below(3);
  for (int i = 0; i < others; ++i) {
    Value other = Partner(x, x.low, x.high);
    if (other.shape != x.shape) {
      Shape shape = x.shape;
      if (!is_stack) shape[static_cast<size_t>(axis)] = Size();
      other = Fresh(shape, x.dtype, x.low, x.high);
    }
    all.low = std::min(all.low, other.low);
    all.high = std::max(all.high, other.high);
    all.is_exact = all.is_exact && other.is_exact;
    parts.insert(OneIn(2) ? parts.begin() : parts.end(), other.expr);
  }
  return Call(is_stack ? "stack" : "concatenate", {MakeTuple(parts)}, {{"axis", axis}}, all.low, all.high,
              all.is_exact);
}

FunctionGenerator::Made FunctionGenerator::Blocks() {
  const Value x = Any(4);
  if (x.size(1) % 4 == 0 && x.size(1) > 0 && OneIn(2)) {
    return Call("nn.depth_to_space", {x.expr}, {{"block_size", 2}, {"mode", OneIn(2) ? "DCR" : "CRD"}}, x.low, x.high,
                x.is_exact);
  }
  if (x.size(2) % 2 == 0 && x.size(3) % 2 == 0 && OneIn(2)) {
    return Call("nn.space_to_depth", {x.expr}, {{"block_size", 2}}, x.low, x.high, x.is_exact);
  }
  return Call("trilu", {x.expr, MakeScalar(static_cast<double>(Between(-2, 2)), kInt64)}, {{"upper", OneIn(2)}},
              std::min(x.low, 0.0), std::max(x.high, 0.0), x.is_exact);
}

FunctionGenerator::Made FunctionGenerator::Take() {
  const Value x = Any();
  if (x.rank() == 0) return std::nullopt;
  const int axis = Axis(x);
  const auto size = static_cast<double>(x.size(axis));
  if (size == 0) return std::nullopt;
  const bool shares = axis > 0 && OneIn(4);
  Shape shape = RandomShape(Below(3));
  if (NumElements(shape) > 20) shape = {3};
  if (shares) shape.insert(shape.begin(), x.size(0));
  const Value indices = Fresh(shape, OneIn(2) ? kInt64 : kInt32, OneIn(3) ? -size : 0, size - 1);
  return Call("take", {x.expr, indices.expr}, {{"axis", axis}, {"batch_dims", shares ? 1 : 0}}, x.low, x.high,
              x.is_exact);
}

FunctionGenerator::Made FunctionGenerator::Gather() {
  const Value x = Any();
  if (x.rank() == 0 || NumElements(x.shape) == 0) return std::nullopt;
  const DataType dtype = OneIn(2) ? kInt64 : kInt32;
  if (OneIn(2)) {
    const int axis = Axis(x);
    Shape shape = x.shape;
    shape[static_cast<size_t>(axis)] = Between(1, 5);
    const auto size = static_cast<double>(x.size(axis));
    const Value indices = Fresh(shape, dtype, OneIn(3) ? -size : 0, size - 1);
    return Call("gather", {x.expr, indices.expr}, {{"axis", axis}}, x.low, x.high, x.is_exact);
  }
  // Tuples of indices of the leading axes, all within the smallest.
  const int64_t length = Between(1, x.rank());
  const auto smallest = static_cast<double>(*std::min_element(x.shape.begin(), x.shape.begin() + length));
  const Value indices = Fresh({length, Between(1, 5)}, dtype, 0, smallest - 1);
  return Call("gather_nd", {x.expr, indices.expr}, {}, x.low, x.high, x.is_exact);
}

FunctionGenerator::Made FunctionGenerator::Scatter() {
  const Value x = Any();
  if (x.rank() == 0 || NumElements(x.shape) == 0 || x.dtype.is_bool()) return std::nullopt;
  const int axis = Axis(x);
  const std::string reduction = random_.Pick<std::string>({"add", "add", "min", "max", "update"});
  Shape shape = x.shape;
  const auto size = static_cast<double>(x.size(axis));
  const bool is_update = reduction == "update";  // of two for one element, either may be the last
  shape[static_cast<size_t>(axis)] = is_update ? 1 : Between(1, 4);
  const Value indices = Fresh(shape, OneIn(2) ? kInt64 : kInt32, OneIn(3) ? -size : 0, size - 1);
  const Value updates = Fresh(shape, x.dtype, x.dtype.is_floating() ? -1 : 0, 1);
  const double more = reduction == "add" ? 4 : 1;
  return Call("scatter_elements", {x.expr, indices.expr, updates.expr}, {{"axis", axis}, {"reduction", reduction}},
              x.low - more, x.high + more, x.is_exact && (reduction != "add" || !x.dtype.is_floating()));
}

FunctionGenerator::Made FunctionGenerator::OneHot() {
  const Value indices = Fresh(RandomShape(Below(3)), OneIn(2) ? kInt64 : kInt32, 0, 4);
  const Value on = Fresh({}, main_, 1, 2), off = Fresh({}, main_, 0, 1);
  return Call("one_hot", {indices.expr, on.expr, off.expr}, {{"depth", Between(1, 6)}, {"axis", -1}, {"dtype", main_}},
              0, 2, true);
}

}  // namespace collage
