// fields.cc: fields of operators' results that are computed in place.
#include "backends/native/compiler/inline_ops/inline_ops.h"

namespace collage::native::inline_ops {

Value SplitField(X& x, C call, int field, I indices) {
  const size_t axis = AxisAttr(call, "axis", indices.size());
  int64_t before = 0;
  for (int i = 0; i < field; ++i) {
    before += AsTensorType(AsTupleType(call.checked_type())->fields()[static_cast<size_t>(i)])->static_shape()[axis];
  }
  Indices source = indices;
  source[axis] = x.emitter().Shifted(indices[axis], before);
  return x.At(call.args()[0], source);
}

Value DropoutField(X& x, C call, int field, I indices) {
  if (field == 0) return x.At(call.args()[0], indices);
  return x.math().Number(1, KindOf(TensorTypeOf(call.args()[0]).dtype()));
}

Value BatchNormField(X& x, C call, int field, I indices) {
  M& m = x.math();
  if (field > 0) return x.At(call.args()[static_cast<size_t>(field) + 2], indices);
  const Indices channel{indices[AxisAttr(call, "axis", indices.size())]};
  const Value data = x.At(call.args()[0], indices);
  const Value variance = x.At(call.args()[4], channel);
  const Value epsilon = m.Like(call.attrs().Double("epsilon"), data);
  Value factor = m.Divide(m.Like(1, data), m.Sqrt(m.Add(variance, epsilon)));
  if (call.attrs().Bool("scale")) factor = m.Multiply(factor, x.At(call.args()[1], channel));
  const Value scaled = m.Multiply(m.Subtract(data, x.At(call.args()[3], channel)), factor);
  return call.attrs().Bool("center") ? m.Add(scaled, x.At(call.args()[2], channel)) : scaled;
}

}  // namespace collage::native::inline_ops
