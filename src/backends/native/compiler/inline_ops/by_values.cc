// by_values.cc: movement by ends and widths that are arguments, read wherever an element is.
#include <algorithm>

#include "backends/native/compiler/inline_ops/inline_ops.h"

namespace collage::native::inline_ops {

Value SliceByValues(X& x, C call, I indices) {
  Emitter& e = x.emitter();
  const Shape shape = ShapeOf(call.args()[0]);
  const std::vector<int64_t> strides = As<ConstantNode>(call.args()[3])->value().ToInts();
  Indices source = indices;
  for (size_t i = 0; i < strides.size(); ++i) {
    const int64_t axis = call.attrs().IsNone("axes") ? static_cast<int64_t>(i) : call.attrs().Ints("axes")[i];
    const auto a = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
    const int64_t length = shape[a], least = strides[i] > 0 ? 0 : -1;
    const Index given = IndexAt(x, call.args()[1], {{e.Int(static_cast<int64_t>(i)), 0}});
    // Below 0 it counts from the end: the sign's bits select the length to be added.
    const Index first = e.IndexOp("addi", given, e.IndexOp("andi", e.IndexOp("shrsi", given, 63), length));
    const Index most{e.Plus(e.Int(length), least), 0};
    const Index begin = e.IndexOp("maxsi", e.IndexOp("minsi", first, most), least);
    source[a] = e.Sum(e.Scaled(indices[a], strides[i]), begin);
  }
  return x.At(call.args()[0], source);
}

Value PadByValues(X& x, C call, I indices) {
  Emitter& e = x.emitter();
  VectorMath& m = x.math();
  const Shape shape = ShapeOf(call.args()[0]);
  const std::string& mode = call.attrs().String("pad_mode");
  Indices source = indices;
  std::optional<Value> inside;
  for (size_t d = 0; d < shape.size(); ++d) {
    const Index before = IndexAt(x, call.args()[1], {{e.Int(static_cast<int64_t>(d)), 0}, e.Zero()});
    source[d] = e.Sum(indices[d], e.Scaled(before, -1));
    if (mode == "edge") source[d] = e.IndexOp("minsi", e.IndexOp("maxsi", source[d], 0), e.Added(shape[d], -1));
    if (mode == "reflect" || mode == "wrap") source[d] = PadSourceOfAny(e, mode, source[d], shape[d]);
    if (mode != "constant") continue;
    const Value holds = m.And(e.IndexCompare("sge", source[d], 0), e.IndexCompare("slt", source[d], shape[d]));
    inside = inside ? m.And(*inside, holds) : holds;
  }
  if (!inside) return x.At(call.args()[0], source);
  const Value outside = x.At(call.args()[2], Indices(ShapeOf(call.args()[2]).size(), e.Zero()));
  Value value;
  e.WithMask(AsMask(*inside), [&] { value = x.At(call.args()[0], source); });
  return m.Select(*inside, value, outside);
}

Value Arange(X& x, C call, I indices) {
  VectorMath& m = x.math();
  const bool is_whole =
      std::ranges::none_of(call.args(), [](const Expr& arg) { return TensorTypeOf(arg).dtype().is_floating(); });
  const auto number = [&](const Value& value) { return is_whole ? value : m.Convert(value, kFloat64); };
  const Value place = number(AsValue(x.emitter().LanesOf(indices[0])));
  const Value start = number(x.At(call.args()[0], {})), step = number(x.At(call.args()[2], {}));
  return m.Convert(m.Add(start, m.Multiply(place, step)), ResultType(call));
}

}  // namespace collage::native::inline_ops
