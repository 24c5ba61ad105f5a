// indexing.cc: operators that read an element, or a few, at computed positions. Positions that are even
// progressions along the lanes stay such, so that reading them is one vector load; others become gathers.
#include <algorithm>
#include <numeric>

#include "backends/native/compiler/emit/buffer_views.h"
#include "backends/native/compiler/inline_ops/inline_ops.h"
#include "collage/support/error.h"

namespace collage::native {
namespace inline_ops {

static Shape DataShape(C call) { return ShapeOf(call.args()[0]); }

Index IndexAt(X& x, const Expr& expr, I indices) {
  Emitter& e = x.emitter();
  const Value value = x.At(expr, indices);
  const bool is_scalar = std::all_of(indices.begin(), indices.end(), [](const Index& i) { return i.is_scalar(); });
  if (!is_scalar) return e.FromLanes(AsLanes(value));
  if (e.is_guarded()) {
    // Lanes that are not read have nothing to say: the largest of the others, which are equal.
    const Value least = x.math().Integer(INT64_MIN);
    const Value read = x.math().Select(AsValue(e.mask()), value, least);
    return {e.LargestLane(read), 0};
  }
  return {e.FirstLane(value), 0};
}

/// Negative ones count from the end; what is beyond is clipped, or wrapped around.
static Index InRange(Emitter& e, const Index& index, int64_t length, bool wraps) {
  if (wraps) {
    const Index remainder = e.IndexOp("remsi", index, length);
    return e.IndexOp("remsi", e.Shifted(remainder, length), length);
  }
  // index < 0: the sign's bits select the length to be added.
  const Index sign = e.IndexOp("shrsi", index, 63);
  const Index moved = e.IndexOp("addi", index, e.IndexOp("andi", sign, length));
  return e.IndexOp("minsi", e.IndexOp("maxsi", moved, 0), e.Added(length, -1));
}

Index IndexInto(X& x, const Expr& expr, I indices, int64_t length, bool wraps) {
  return InRange(x.emitter(), IndexAt(x, expr, indices), length, wraps);
}

Value Transpose(X& x, C call, I indices) {
  const size_t rank = indices.size();
  Indices source(rank);
  const std::vector<size_t> axes = TransposedAxes(call, rank);
  for (size_t i = 0; i < rank; ++i) source[axes[i]] = indices[i];
  return x.At(call.args()[0], source);
}

Value LayoutTransform(X& x, C call, I indices) {
  const std::string& from = call.attrs().String("src_layout");
  const std::string& to = call.attrs().String("dst_layout");
  Indices source(indices.size());
  for (size_t i = 0; i < to.size(); ++i) source[from.find(to[i])] = indices[i];
  return x.At(call.args()[0], source);
}

Value Reshape(X& x, C call, I indices) {
  const Shape from = DataShape(call);
  const Shape to = AsTensorType(call.checked_type())->static_shape();
  const Buffer* buffer = x.FindBuffer(call.args()[0]);
  if (buffer != nullptr && buffer->is_contiguous()) {
    // A view of the memory in the other shape.
    Buffer view = *buffer;
    view.shape = to;
    view.strides = LayoutStrides(to, Layout::kPlain);
    return x.emitter().Load(view, indices);
  }
  return x.At(call.args()[0], ReshapedIndices(x.emitter(), from, to, indices));
}

Value StridedSlice(X& x, C call, I indices) {
  Emitter& e = x.emitter();
  const Shape shape = DataShape(call);
  Indices source = indices;
  const std::vector<int64_t> begin = call.attrs().Ints("begin");
  std::vector<int64_t> strides = call.attrs().IsNone("strides") ? std::vector<int64_t>{} : call.attrs().Ints("strides");
  strides.resize(begin.size(), 1);
  for (size_t i = 0; i < begin.size(); ++i) {
    const int64_t axis = call.attrs().IsNone("axes") ? static_cast<int64_t>(i) : call.attrs().Ints("axes")[i];
    const auto a = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
    const int64_t length = shape[a], least = strides[i] > 0 ? 0 : -1;
    const Index scaled = e.Scaled(indices[a], strides[i]);
    if (IsSymbolic(length) && (begin[i] != 0 || strides[i] < 0)) {
      const Index first{begin[i] < 0 ? e.Plus(e.Int(length), begin[i]) : e.Int(begin[i]), 0};
      const Index most{e.Plus(e.Int(length), least), 0};
      source[a] = e.Sum(scaled, e.IndexOp("maxsi", e.IndexOp("minsi", first, most), least));
      continue;
    }
    const int64_t first = begin[i] < 0 ? begin[i] + length : begin[i];
    source[a] = e.Shifted(scaled, IsSymbolic(length) ? 0 : std::clamp<int64_t>(first, least, length + least));
  }
  return x.At(call.args()[0], source);
}

/// `index` less a multiple of `period`, from 0 on.
static Index WithinPeriod(Emitter& e, const Index& index, const Index& period) {
  return e.IndexOp("remsi", e.IndexOp("addi", e.IndexOp("remsi", index, period), period), period);
}

Index PadSourceOfAny(Emitter& e, const std::string& mode, const Index& at, int64_t length) {
  const Index size{e.Int(length), 0};
  if (mode == "wrap") return WithinPeriod(e, at, size);
  if (mode != "reflect") throw Error(ErrorCategory::kUnsupported, "pad_mode " + mode);
  const Index period = e.IndexOp("maxsi", e.Scaled(e.Shifted(size, -1), 2), 1);
  const Index position = WithinPeriod(e, at, period);
  return e.IndexOp("minsi", position, e.IndexOp("subi", period, position));
}

/// One dimension's source position; nothing where the constant is read, which `inside` then says.
static Index PadSource(Emitter& e, const std::string& mode, const Index& index, int64_t before, int64_t length) {
  const Index at = e.Shifted(index, -before);
  if (mode == "constant") return at;
  if (mode == "edge") return e.IndexOp("minsi", e.IndexOp("maxsi", at, 0), e.Added(length, -1));
  if (IsSymbolic(length)) return PadSourceOfAny(e, mode, at, length);
  if (mode == "wrap") {
    const int64_t turns = (before + length - 1) / length;
    return e.IndexOp("remui", e.Shifted(at, turns * length), length);
  }
  if (mode != "reflect") throw Error(ErrorCategory::kUnsupported, "pad_mode " + mode);
  if (length == 1) return e.Zero();
  const int64_t period = 2 * (length - 1);
  const int64_t turns = (before + period - 1) / period;
  const Index position = e.IndexOp("remui", e.Shifted(at, turns * period), period);
  return e.IndexOp("minsi", position, e.IndexOp("subi", Index{e.Int(period), 0}, position));
}

Value Pad(X& x, C call, I indices) {
  Emitter& e = x.emitter();
  const Shape shape = DataShape(call);
  const std::string& mode = call.attrs().String("pad_mode");
  const AttrValue::List& widths = *call.attrs().Get("pad_width").as_list();
  Indices source = indices;
  std::optional<Value> inside;
  const auto require = [&](const char* predicate, const Index& index, int64_t bound) {
    const Value holds = e.IndexCompare(predicate, index, bound);
    inside = inside ? x.math().And(*inside, holds) : holds;
  };
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t before = *(*widths[d].as_list())[0].as_int();
    const int64_t after = *(*widths[d].as_list())[1].as_int();
    if (before == 0 && after == 0) continue;
    source[d] = PadSource(e, mode, indices[d], before, shape[d]);
    if (mode != "constant") continue;
    if (before > 0) require("sge", source[d], 0);
    if (after > 0) require("slt", source[d], shape[d]);
  }
  if (!inside) return x.At(call.args()[0], source);
  const Value outside = x.At(call.args()[1], Indices(ShapeOf(call.args()[1]).size(), e.Zero()));
  if (!HasSymbolic(shape) && NumElements(shape) == 0) return outside;
  Value value;
  e.WithMask(AsMask(*inside), [&] { value = x.At(call.args()[0], source); });
  return x.math().Select(*inside, value, outside);
}

Value Take(X& x, C call, I indices) {
  const Shape data = DataShape(call);
  const size_t axis = AxisAttr(call, "axis", data.size());
  const size_t shared = call.op()->FindAttr("batch_dims") != nullptr ? AxisAttr(call, "batch_dims", data.size()) : 0;
  const size_t index_rank = ShapeOf(call.args()[1]).size() - shared;
  const auto at = [&](size_t i) { return indices.begin() + static_cast<int64_t>(i); };
  Indices place(at(0), at(shared));
  place.insert(place.end(), at(axis), at(axis + index_rank));
  Indices source(at(0), at(axis));
  source.push_back(IndexInto(x, call.args()[1], place, data[axis], call.attrs().String("mode") == "wrap"));
  source.insert(source.end(), at(axis + index_rank), indices.end());
  return x.At(call.args()[0], source);
}

Value Gather(X& x, C call, I indices) {
  const Shape data = DataShape(call);
  const size_t axis = AxisAttr(call, "axis", data.size());
  Indices source = indices;
  source[axis] = IndexInto(x, call.args()[1], indices, data[axis]);
  return x.At(call.args()[0], source);
}

Value GatherNd(X& x, C call, I indices) {
  Emitter& e = x.emitter();
  const Shape data = DataShape(call);
  const Shape index_shape = ShapeOf(call.args()[1]);
  const auto shared = static_cast<size_t>(call.attrs().Int("batch_dims"));
  const auto length = static_cast<size_t>(index_shape[0]);
  const auto places = static_cast<int64_t>(index_shape.size()) - 1;
  Indices source(indices.begin(), indices.begin() + static_cast<int64_t>(shared));
  for (size_t m = 0; m < length; ++m) {
    Indices place{{e.Int(static_cast<int64_t>(m)), 0}};
    place.insert(place.end(), indices.begin(), indices.begin() + places);
    source.push_back(IndexInto(x, call.args()[1], place, data[shared + m]));
  }
  source.insert(source.end(), indices.begin() + places, indices.end());
  return x.At(call.args()[0], source);
}

/// PiecewisePolynomial along an axis: each is read where the position is its own.
static Value Join(X& x, C call, I indices, bool is_stack) {
  Emitter& e = x.emitter();
  const TupleNode* tuple = As<TupleNode>(call.args()[0]);
  if (tuple == nullptr) throw Error(ErrorCategory::kUnsupported, "joins tuples that are written out only");
  const size_t axis = AxisAttr(call, "axis", indices.size());
  std::optional<Value> result;
  int64_t begin = 0;
  for (const Expr& field : tuple->fields()) {
    const int64_t size = is_stack ? 1 : ShapeOf(field)[axis];
    Indices source = indices;
    source[axis] = e.Shifted(indices[axis], -begin);
    const Value from = e.IndexCompare("sge", source[axis], 0);
    const Value own = x.math().And(from, e.IndexCompare("slt", source[axis], size));
    if (is_stack) source.erase(source.begin() + static_cast<int64_t>(axis));
    Value value;
    if (size > 0) e.WithMask(AsMask(own), [&] { value = x.At(field, source); });
    if (size > 0) result = result ? x.math().Select(own, value, *result) : value;
    begin += size;
  }
  return *result;
}

Value OneHot(X& x, C call, I indices) {
  Emitter& e = x.emitter();
  const size_t axis = AxisAttr(call, "axis", indices.size());
  Indices place = indices;
  place.erase(place.begin() + static_cast<int64_t>(axis));
  const Value index = x.At(call.args()[0], place);
  const Value position = AsValue(e.LanesOf(indices[axis]));
  const Value is_hot = x.math().Compare("oeq", "eq", index, position);
  const DataType dtype = AsTensorType(call.checked_type())->dtype();
  const Value on = x.math().Convert(x.At(call.args()[1], {}), dtype);
  return x.math().Select(is_hot, on, x.math().Convert(x.At(call.args()[2], {}), dtype));
}

Value Trilu(X& x, C call, I indices) {
  Emitter& e = x.emitter();
  const size_t rank = indices.size();
  const Value distance = AsValue(e.LanesOf(e.IndexOp("subi", indices[rank - 1], indices[rank - 2])));
  const Value k = x.At(call.args()[1], {});
  const bool upper = call.attrs().Bool("upper");
  const Value kept = x.math().Compare(upper ? "oge" : "ole", upper ? "sge" : "sle", distance, k);
  const Value value = x.At(call.args()[0], indices);
  return x.math().Select(kept, value, x.math().Like(0, value));
}

Value DepthToSpace(X& x, C call, I i) {
  Emitter& e = x.emitter();
  const int64_t b = call.attrs().Int("block_size");
  const int64_t channels = AsTensorType(call.checked_type())->static_shape()[1];
  const auto [h, block_h] = e.Divided(i[2], b);
  const auto [w, block_w] = e.Divided(i[3], b);
  const Index block = e.Sum(e.Scaled(block_h, b), block_w);
  const bool crd = call.attrs().String("mode") == "CRD";
  const Index channel = crd ? e.Sum(e.Scaled(i[1], b * b), block) : e.Sum(e.Scaled(block, channels), i[1]);
  return x.At(call.args()[0], {i[0], channel, h, w});
}

Value SpaceToDepth(X& x, C call, I i) {
  Emitter& e = x.emitter();
  const int64_t b = call.attrs().Int("block_size");
  const auto [block, channel] = e.Divided(i[1], DataShape(call)[1]);
  const auto [block_h, block_w] = e.Divided(block, b);
  return x.At(call.args()[0], {i[0], channel, e.Sum(e.Scaled(i[2], b), block_h), e.Sum(e.Scaled(i[3], b), block_w)});
}

Value ReverseSequence(X& x, C call, I indices) {
  Emitter& e = x.emitter();
  const size_t rank = indices.size();
  const size_t sequence = AxisAttr(call, "seq_axis", rank);
  const int64_t size = DataShape(call)[sequence];
  const Index length =
      e.IndexOp("minsi", IndexAt(x, call.args()[1], {indices[AxisAttr(call, "batch_axis", rank)]}), size);
  // length - 1 - position where that is not negative.
  const Index mirrored = e.IndexOp("subi", e.Shifted(length, -1), indices[sequence]);
  const Value is_mirrored = e.IndexCompare("sge", mirrored, 0);
  const Value position =
      x.math().Select(is_mirrored, AsValue(e.LanesOf(mirrored)), AsValue(e.LanesOf(indices[sequence])));
  Indices source = indices;
  source[sequence] = e.FromLanes(AsLanes(position));
  return x.At(call.args()[0], source);
}

Value Reinterpret(X& x, C call, I indices) {
  Emitter& e = x.emitter();
  const DataType from = TensorTypeOf(call.args()[0]).dtype();
  const DataType to = call.attrs().Type("dtype");
  const Value value = x.At(call.args()[0], indices);
  if (!from.is_floating() && !to.is_floating()) return x.math().Wrap(value, to);
  if (from == to) return value;
  if (from.bits < 32) throw Error(ErrorCategory::kUnsupported, "reinterpreting " + from.ToString());
  const std::string ints = fmt::format("vector<{}xi{}>", e.lanes(), from.bits);
  const std::string wide = e.TypeOf(ElementKind::kInt);
  if (from.is_floating()) {
    const std::string bits = e.Def(fmt::format("arith.bitcast {} : {} to {}", value.name, e.TypeOf(value.kind), ints));
    if (from.bits == 64) return {bits, ElementKind::kInt};
    return x.math().Wrap({e.Def(fmt::format("arith.extsi {} : {} to {}", bits, ints, wide)), ElementKind::kInt}, to);
  }
  const std::string bits =
      from.bits == 64 ? value.name : e.Def(fmt::format("arith.trunci {} : {} to {}", value.name, wide, ints));
  return {e.Def(fmt::format("arith.bitcast {} : {} to {}", bits, ints, e.TypeOf(KindOf(to)))), KindOf(to)};
}

Value Resize(X& x, C call, I indices) {
  Emitter& e = x.emitter();
  VectorMath& m = x.math();
  const std::vector<ResizeTaps>& taps = x.TapsOf(call);
  const DataType dtype = TensorTypeOf(call.args()[0]).dtype();
  const ElementKind kind = dtype.is_floating() ? KindOf(dtype) : ElementKind::kDouble;
  std::optional<Value> sum;
  // Recursion over the dimensions, one tap of each.
  const std::function<void(size_t, const Indices&, const std::optional<Value>&)> add =
      [&](size_t d, const Indices& source, const std::optional<Value>& factor) {
        if (d == taps.size()) {
          Value value = x.At(call.args()[0], source);
          if (!IsFloat(value)) value = m.Convert(value, kFloat64);
          if (!factor) {
            sum = sum ? m.Add(*sum, value) : value;
          } else {
            sum = sum ? m.FusedMultiplyAdd(value, *factor, *sum) : m.Multiply(value, *factor);
          }
          return;
        }
        const Index& at = indices[d + 2];
        if (taps[d].is_identity) return add(d + 1, source, factor);
        const auto slot = static_cast<int>(2 * d);
        const Buffer positions = x.Table(call, slot, [&] { return taps[d].positions; });
        const Buffer weights = x.Table(call, slot + 1, [&] { return taps[d].weights; });
        for (int64_t tap = 0; tap < taps[d].count; ++tap) {
          const Index row{e.Int(tap), 0};
          Indices next = source;
          next[d + 2] = at.is_scalar() ? Index{e.LoadInt(positions, {row.base, at.base}), 0}
                                       : e.FromLanes(AsLanes(e.Load(positions, {row, at})));
          std::optional<Value> product = factor;
          if (taps[d].count > 1) {
            Value weight = e.Load(weights, {row, at});
            if (kind == ElementKind::kDouble) weight = m.Convert(weight, kFloat64);
            product = factor ? m.Multiply(*factor, weight) : weight;
          }
          add(d + 1, next, product);
        }
      };
  add(0, indices, std::nullopt);
  return dtype.is_floating() ? *sum : m.Convert(*sum, dtype);
}

Value Concatenate(X& x, C call, I indices) { return Join(x, call, indices, /*is_stack=*/false); }
Value Stack(X& x, C call, I indices) { return Join(x, call, indices, /*is_stack=*/true); }

Value BroadcastTo(X& x, C call, I indices) {
  Emitter& e = x.emitter();
  const Shape shape = DataShape(call);
  if (!HasSymbolic(shape)) return x.Operand(call, 0, indices);
  // A dimension of symbolic size is repeated where that is 1.
  Indices source(indices.end() - static_cast<int64_t>(shape.size()), indices.end());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) source[d] = e.Zero();
    if (IsSymbolic(shape[d])) source[d] = e.IndexOp("minsi", source[d], e.Added(shape[d], -1));
  }
  return x.At(call.args()[0], source);
}

Value Tile(X& x, C call, I indices) {
  const Shape shape = DataShape(call);
  Indices source = indices;
  for (size_t d = 0; d < shape.size(); ++d) {
    // Without attribute, the repetitions are an argument.
    if (call.op()->FindAttr("reps") == nullptr || call.attrs().Ints("reps")[d] != 1)
      source[d] = x.emitter().Divided(indices[d], shape[d]).second;
  }
  return x.At(call.args()[0], source);
}

Value Repeat(X& x, C call, I indices) {
  Indices source = indices;
  Index& index = source[AxisAttr(call, "axis", indices.size())];
  index = x.emitter().Divided(index, call.attrs().Int("repeats")).first;
  return x.At(call.args()[0], source);
}

Value Reverse(X& x, C call, I indices) {
  const size_t axis = AxisAttr(call, "axis", indices.size());
  Indices source = indices;
  Emitter& e = x.emitter();
  source[axis] = e.Shifted(e.Shifted(e.Scaled(indices[axis], -1), DataShape(call)[axis]), -1);
  return x.At(call.args()[0], source);
}

Value ShapeOfData(X& x, C call, I indices) {
  const Shape shape = DataShape(call);
  Tensor sizes = Tensor::Empty({static_cast<int64_t>(shape.size())}, kInt64);
  std::copy(shape.begin(), shape.end(), sizes.data<int64_t>());
  return x.emitter().Load(x.Table(call, 0, [&] { return sizes; }), indices);
}

Value Full(X& x, C call, I) { return x.math().Convert(x.At(call.args()[0], {}), ResultType(call)); }

InPlaceFn Filled(double number) {
  return [number](X& x, C call, I) { return x.math().Number(number, KindOf(ResultType(call))); };
}

Value NdarraySize(X& x, C call, I) { return x.math().Integer(NumElements(DataShape(call))); }

}  // namespace inline_ops

Indices ReshapedIndices(Emitter& e, const Shape& from, const Shape& to, const Indices& indices) {
  Indices source(from.size(), e.Zero());
  size_t i = 0;
  size_t j = 0;
  // Groups of dimensions of equal product, from the outside: joined in one coordinate, then taken apart.
  while (i < from.size() || j < to.size()) {
    const size_t first_from = i;
    const size_t first_to = j;
    int64_t a = i < from.size() ? from[i++] : 1;
    int64_t b = j < to.size() ? to[j++] : 1;
    while (a != b) {
      if (a < b && i < from.size())
        a *= from[i++];
      else if (j < to.size())
        b *= to[j++];
      else
        break;
    }
    Index joined = e.Zero();
    for (size_t d = first_to; d < j; ++d) {
      if (to[d] == 1) continue;
      joined = joined.multiple == 0 && joined.is_scalar() ? indices[d] : e.Sum(e.Scaled(joined, to[d]), indices[d]);
    }
    for (size_t d = i; d-- > first_from;) {
      if (from[d] == 1) continue;
      const bool is_outermost = std::all_of(from.begin() + static_cast<int64_t>(first_from),
                                            from.begin() + static_cast<int64_t>(d), [](int64_t s) { return s == 1; });
      if (is_outermost) {
        source[d] = joined;
        break;
      }
      std::tie(joined, source[d]) = e.Divided(joined, from[d]);
    }
  }
  return source;
}

}  // namespace collage::native
