// dynamic_pool.cc: pools of images whose sizes a run knows: each vector of results looks up where its windows lie.
#include "backends/native/compiler/reduction/pool.h"
#include "backends/native/compiler/reduction/sliding_pool.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/materialise.h"

namespace collage::native {
namespace {

class DynamicPool {
 public:
  DynamicPool(PartitionState& state, const CallNode& call, const StageOutput& output)
      : form_(state, call, output),
        e_(state.emitter),
        m_(state.math()),
        geometry_(call, static_cast<int>(form_.in.size()) - 2) {}

  void Run() {
    form_.kind = KindOf(TensorTypeOf(form_.call.args()[0]).dtype());
    form_.lane_axis = form_.out.size() - 1;
    form_.data = Materialise(form_.state, form_.call.args()[0], Layout::kPlain);
    const ReductionSpace space{form_.out, std::vector<bool>(form_.out.size(), false), form_.lane_axis};
    ForEachUnit(form_.state, space, NumberOf(form_.out) * 10, [&](ReductionUnit& unit) {
      const Indices& at = unit.place();
      Value result = Dimension(0, at, at, NeutralOf(m_, form_.combiner, form_.kind));
      if (!form_.is_max) {
        const Value count{e_.LanesOf(CountAt(at)).name(), ElementKind::kInt};
        result = m_.Divide(result, m_.Convert(count, form_.kind == ElementKind::kDouble ? kFloat64 : kFloat32));
      }
      StoreResult(form_.state, form_.output, at, m_.Convert(result, TensorTypeOf(form_.call.args()[0]).dtype()));
    });
  }

 private:
  /// The input position of tap 0 in dimension `d`.
  Index Start(size_t d, const Indices& at) {
    return e_.Shifted(e_.Scaled(at[d + 2], geometry_.stride[d]), -geometry_.pad_before[d]);
  }
  /// How many of dimension `d`'s taps, the first of which lies at `start`, come before `bound`.
  Index TapsBefore(size_t d, const Index& start, const Index& bound) {
    const Index above = e_.IndexOp("maxsi", e_.Shifted(e_.IndexOp("subi", bound, start), geometry_.dilation[d] - 1), 0);
    return e_.IndexOp("minsi", e_.IndexOp("divui", above, geometry_.dilation[d]), geometry_.size[d]);
  }

  /// How many taps the mean at a place is of; at least 1.
  Index CountAt(const Indices& at) {
    Index count{e_.Int(1)};
    for (size_t d = 0; d < geometry_.size.size(); ++d) {
      const Index start = Start(d, at);
      const I64 end = e_.Int(form_.in[d + 2]);
      const Index before =
          TapsBefore(d, start, {geometry_.counts_padding ? e_.Plus(end, geometry_.pad_after[d]) : end});
      const Index own = geometry_.counts_padding ? before : e_.IndexOp("subi", before, TapsBefore(d, start, e_.Zero()));
      count = e_.IndexOp("muli", count, own);
    }
    return e_.IndexOp("maxsi", count, 1);
  }

  /// Combines over dimension `d` and those behind it.
  Value Dimension(size_t d, const Indices& at, const Indices& from, const Value& sum) {
    if (d == geometry_.size.size()) return form_.combiner.combine(m_, sum, form_.Load(from));
    const size_t axis = d + 2;
    const Index start = Start(d, at);
    const bool has_lanes = axis == form_.lane_axis && e_.lanes() > 1;
    const I64 first = has_lanes ? e_.Int(0) : TapsBefore(d, start, e_.Zero()).base;
    const I64 last = has_lanes ? e_.Int(geometry_.size[d]) : TapsBefore(d, start, {e_.Int(form_.in[axis])}).base;
    return e_.ForValues(first, last, {sum}, [&](const I64& tap, const std::vector<Value>& carried) {
      Indices next = from;
      next[axis] = e_.Sum(start, {e_.MulInt(tap, geometry_.dilation[d])});
      if (!has_lanes) return std::vector<Value>{Dimension(d + 1, at, next, carried[0])};
      const Value above = e_.IndexCompare("sge", next[axis], 0);
      const Value inside = m_.And(above, e_.IndexCompare("slt", next[axis], form_.in[axis]));
      Value with;
      e_.WithMask(AsMask(inside), [&] { with = Dimension(d + 1, at, next, carried[0]); });
      return std::vector<Value>{m_.Select(inside, with, carried[0])};
    })[0];
  }

  PoolForm form_;
  Emitter& e_;
  VectorMath& m_;
  PoolGeometry geometry_;
};

}  // namespace

void EmitDynamicPool(PartitionState& state, const CallNode& call, const StageOutput& output) {
  DynamicPool(state, call, output).Run();
}

}  // namespace collage::native
