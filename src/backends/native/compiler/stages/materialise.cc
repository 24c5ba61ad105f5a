// materialise.cc: fills buffers with expressions that do not lie in memory as they are wanted.
#include "backends/native/compiler/stages/materialise.h"

#include "backends/native/compiler/stages/elements.h"

namespace collage::native {

Buffer Materialise(PartitionState& state, const Expr& expr, Layout layout) {
  if (const Buffer* buffer = state.expressions.FindBuffer(expr)) return *buffer;
  if (const ConstantNode* constant = As<ConstantNode>(expr)) {
    const Buffer buffer = state.AddConstant(constant->value());
    state.expressions.SetBuffer(expr, buffer);
    return buffer;
  }
  const Buffer buffer = state.AddWorkspace(ShapeOf(expr), layout, TensorTypeOf(expr).dtype());
  EmitPointwise(state, expr, buffer);
  state.expressions.SetBuffer(expr, buffer);
  return buffer;
}

DataType KeptType(const PartitionState& state, const Expr& expr) {
  const Buffer* buffer = state.expressions.FindBuffer(expr);
  return buffer == nullptr ? TensorTypeOf(expr).dtype() : buffer->dtype;
}

Buffer MaterialisePlain(PartitionState& state, const Expr& expr) {
  const DataType dtype = TensorTypeOf(expr).dtype();
  const Buffer own = Materialise(state, expr, Layout::kPlain);
  if (own.is_contiguous() && own.dtype == dtype) return own;
  const Buffer plain = state.AddWorkspace(own.shape, Layout::kPlain, dtype);
  EmitElements(state, plain, [&](const Indices& at) { return state.emitter.Load(own, at); });
  return plain;
}

Buffer MaterialiseAs(PartitionState& state, const Expr& expr, Layout layout, DataType dtype) {
  if (KeptType(state, expr) == dtype) return Materialise(state, expr, layout);
  const Buffer buffer = state.AddWorkspace(ShapeOf(expr), layout, dtype);
  EmitElements(state, buffer,
               [&](const Indices& at) { return state.math().Convert(state.expressions.At(expr, at), dtype); });
  return buffer;
}

}  // namespace collage::native
