// lrn.cc: nn.lrn: an element divided by a power of the mean square of its neighbours along an axis.
#include <cstdlib>

#include "backends/native/compiler/inline_ops/inline_ops.h"

namespace collage::native {
namespace {

Value LocalResponse(Expressions& x, const CallNode& call, const Indices& indices) {
  Emitter& e = x.emitter();
  VectorMath& m = x.math();
  const Expr& data = call.args()[0];
  const Shape shape = ShapeOf(data);
  const size_t axis = AxisAttr(call, "axis", shape.size());
  const int64_t size = call.attrs().Int("size");
  const Value own = x.At(data, indices);
  Value squares = m.Multiply(own, own);
  const int64_t before = (size - 1) / 2;
  for (int64_t distance = -before; distance <= size / 2; ++distance) {
    if (distance == 0 || std::abs(distance) >= shape[axis]) continue;
    Indices at = indices;
    at[axis] = e.Shifted(at[axis], distance);
    const Value inside =
        distance < 0 ? e.IndexCompare("sge", at[axis], 0) : e.IndexCompare("slt", at[axis], shape[axis]);
    Value value;
    e.WithMask(AsMask(inside), [&] { value = x.At(data, at); });
    value = m.Select(inside, value, m.Like(0, value));
    squares = m.FusedMultiplyAdd(value, value, squares);
  }
  const double factor = call.attrs().Double("alpha") / static_cast<double>(size);
  const Value base = m.FusedMultiplyAdd(squares, m.Like(factor, squares), m.Like(call.attrs().Double("bias"), squares));
  const double beta = call.attrs().Double("beta");
  // Three quarters is what there is; roots are exact and fast.
  if (beta == 0.75) {
    const Value root = m.Sqrt(base);
    return m.Divide(own, m.Multiply(root, m.Sqrt(root)));
  }
  if (beta == 0.5) return m.Divide(own, m.Sqrt(base));
  if (beta == 1) return m.Divide(own, base);
  return m.Multiply(own, m.Exp(m.Multiply(m.Log(base), m.Like(-beta, base))));
}

}  // namespace

Value inline_ops::LocalResponse(X& x, C call, I indices) { return native::LocalResponse(x, call, indices); }

}  // namespace collage::native
