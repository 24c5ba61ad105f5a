// pool_form.cc: what all ways to compute a pool have in common.
#include "backends/native/compiler/reduction/pool_form.h"

namespace collage::native {

PoolForm::PoolForm(PartitionState& of, const CallNode& of_call, const StageOutput& to)
    : state(of),
      call(of_call),
      output(to),
      in(ShapeOf(of_call.args()[0])),
      out(ShapeOf(to.result)),
      is_adaptive(of_call.op()->name.find("adaptive") != std::string::npos),
      is_max(of_call.op()->name.find("max") != std::string::npos),
      combiner(is_max ? MaxCombiner() : SumCombiner()) {}

double PoolForm::Flops() const {
  double flops = 2 * static_cast<double>(NumElements(out));
  for (const Windows& w : windows) flops *= static_cast<double>(w.most_taps);
  return flops;
}

Value PoolForm::Load(const Indices& from) {
  const Value value = !data.exists() ? state.expressions.At(call.args()[0], from) : state.emitter.Load(data, from);
  return value.kind == kind ? value : state.math().Convert(value, kFloat64);
}

Value PoolForm::Finish(Value sum, const Value& share) {
  VectorMath& m = state.math();
  if (!is_max) sum = m.Multiply(sum, kind == ElementKind::kDouble ? m.Convert(share, kFloat64) : share);
  return m.Convert(sum, TensorTypeOf(call.args()[0]).dtype());
}

}  // namespace collage::native
