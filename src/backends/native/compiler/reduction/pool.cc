// pool.cc: the largest or mean element of windows. What windows cover is known when the kernel is compiled: see
// pool_windows.h. Where they are no walk (sliding_pool.h), it is looked up window by window: where one starts, which of
// its taps lie inside the data, how many count.
#include "backends/native/compiler/reduction/pool.h"

#include <algorithm>

#include "backends/native/compiler/reduction/sliding_pool.h"
#include "backends/native/compiler/stages/elements.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "backends/native/compiler/stages/materialise.h"

namespace collage::native {
namespace {

/// The taps of `data`, if it is an image that is not in memory, resized so that each element is one of the image's.
const std::vector<ResizeTaps>* RepeatedTaps(PartitionState& state, const Expr& data) {
  const CallNode* call = As<CallNode>(data);
  if (call == nullptr || call->op() == nullptr || !call->op()->name.starts_with("image.resize")) return nullptr;
  if (state.expressions.FindBuffer(data) != nullptr) return nullptr;
  const std::vector<ResizeTaps>& taps = state.expressions.TapsOf(*call);
  const bool is_one = std::all_of(taps.begin(), taps.end(), [](const ResizeTaps& each) { return each.count == 1; });
  return is_one ? &taps : nullptr;
}

class Pool {
 public:
  Pool(PartitionState& state, const CallNode& call, const StageOutput& output)
      : form_(state, call, output), state_(state), e_(state.emitter), m_(state.math()) {}

  void Run() {
    const Buffer& result = form_.output.buffer;
    const std::vector<int> order = MemoryOrder(result);
    form_.lane_axis = static_cast<size_t>(order.back());
    if (result.strides[1] == 1 && form_.out[1] > 1) form_.lane_axis = 1;
    const DataType dtype = TensorTypeOf(form_.call.args()[0]).dtype();
    form_.kind = dtype.is_floating() || form_.is_max ? KindOf(dtype) : ElementKind::kDouble;
    form_.windows =
        form_.is_adaptive ? AdaptiveWindows(form_.in, form_.out) : FixedWindows(form_.call, form_.in, form_.out);
    FindData();
    for (const Windows& w : form_.windows) {
      form_.tables.push_back({state_.AddConstant(w.start), state_.AddConstant(w.low), state_.AddConstant(w.high),
                              state_.AddConstant(w.share)});
    }
    const size_t last = form_.out.size() - 1;
    const bool is_planar = form_.lane_axis == last && last > 2 && result.strides[last] == 1;
    SetLanes();
    if (form_.is_adaptive || !(form_.lane_axis == 1 || is_planar) || !EmitSlidingPool(form_)) EmitEach();
    e_.SetLanes(e_.native_lanes());
  }

 private:
  /// One element at a time where windows differ along the lanes; half a vector where more is longer than a row.
  void SetLanes() {
    constexpr int kHalf = 8;
    if (form_.lane_axis != 1 && (form_.is_adaptive || form_.lane_axis < 2)) {
      e_.SetLanes(1);
    } else if (form_.lane_axis != 1 && e_.lanes() > kHalf && form_.out[form_.lane_axis] <= kHalf) {
      e_.SetLanes(kHalf);
    }
  }

  /// Finds the data: repeated elements are read in place, others are stored in the result's layout first.
  void FindData() {
    const Expr& data = form_.call.args()[0];
    const Layout layout = form_.lane_axis == 1 ? Layout::kChannelsLast : Layout::kPlain;
    if (TakeRepeated()) {
      form_.data = Materialise(state_, As<CallNode>(data)->args()[0], layout);
    } else if (IsRepeated(data)) {
      return;
    } else {
      form_.data = Materialise(state_, data, layout);
    }
    const Buffer own = form_.data;
    const size_t axis = form_.lane_axis;
    if (own.strides[axis] == 1 || own.shape[axis] < e_.lanes() / 2) return;
    form_.data = state_.AddWorkspace(own.shape, layout, own.dtype);
    EmitElements(state_, form_.data, [&](const Indices& at) { return e_.Load(own, at); });
  }

  /// Whether `data` repeats elements that lie in memory, whole vectors of channels: they are read from there.
  bool IsRepeated(const Expr& data) const {
    if (form_.lane_axis != 1 || RepeatedTaps(state_, data) == nullptr) return false;
    return state_.expressions.FindBuffer(As<CallNode>(data)->args()[0]) != nullptr;
  }

  /// Makes windows over repeated elements windows over those that they repeat. False, with nothing changed, where there
  /// are none, or such windows are uneven.
  bool TakeRepeated() {
    const Expr& data = form_.call.args()[0];
    const std::vector<ResizeTaps>* taps = form_.is_adaptive ? nullptr : RepeatedTaps(state_, data);
    if (taps == nullptr) return false;
    const Shape in = ShapeOf(As<CallNode>(data)->args()[0]);
    std::vector<Windows> own;
    for (size_t d = 0; d < form_.windows.size(); ++d) {
      std::optional<Windows> windows = OverRepeated(form_.windows[d], (*taps)[d].positions, in[d + 2], form_.is_max);
      if (!windows) return false;
      own.push_back(*std::move(windows));
    }
    form_.windows = std::move(own);
    form_.in = in;
    return true;
  }

  // ---- window by window ----

  void EmitEach() {
    ReductionSpace space{form_.out, std::vector<bool>(form_.out.size(), false), form_.lane_axis};
    ForEachUnit(state_, space, form_.Flops(), [&](ReductionUnit& unit) {
      const Indices& at = unit.place();
      const Value sum = Dimension(0, at, at, NeutralOf(m_, form_.combiner, form_.kind));
      Value share = m_.Number(1, ElementKind::kFloat);
      for (size_t d = 0; !form_.is_max && d < form_.windows.size(); ++d) {
        share = m_.Multiply(share, e_.Load(form_.tables[d].share, {at[d + 2]}));
      }
      StoreResult(state_, form_.output, at, form_.Finish(sum, share));
    });
  }

  /// Combines over dimension `d` and those behind it.
  Value Dimension(size_t d, const Indices& at, const Indices& from, const Value& sum) {
    if (d == form_.windows.size()) return form_.combiner.combine(m_, sum, form_.Load(from));
    const size_t axis = d + 2;
    if (axis == form_.lane_axis && !at[axis].is_scalar() && e_.lanes() > 1) return AlongLanes(d, at, from, sum);
    const PoolForm::Tables& tables = form_.tables[d];
    const I64 start = e_.LoadInt(tables.start, {at[axis].base});
    const I64 low = e_.LoadInt(tables.low, {at[axis].base});
    const I64 high = e_.LoadInt(tables.high, {at[axis].base});
    return e_.ForValues(low, high, {sum}, [&](const I64& tap, const std::vector<Value>& carried) {
      Indices next = from;
      next[axis] = {e_.AddInt(start, e_.MulInt(tap, form_.windows[d].dilation)), 0};
      return std::vector<Value>{Dimension(d + 1, at, next, carried[0])};
    })[0];
  }

  /// The dimension of the lanes, tap by tap; lanes whose tap lies outside take nothing.
  Value AlongLanes(size_t d, const Indices& at, const Indices& from, Value sum) {
    const size_t axis = d + 2;
    const Windows& w = form_.windows[d];
    for (int64_t tap = 0; tap < w.most_taps; ++tap) {
      Indices next = from;
      next[axis] = e_.Shifted(e_.Scaled(at[axis], w.stride), tap * w.dilation - w.pad);
      const bool may_precede = tap * w.dilation < w.pad;
      const bool may_exceed = (form_.out[axis] - 1) * w.stride + tap * w.dilation - w.pad >= form_.in[axis];
      if (!may_precede && !may_exceed) {
        sum = Dimension(d + 1, at, next, sum);
        continue;
      }
      const Value above = e_.IndexCompare("sge", next[axis], 0);
      const Value inside = m_.And(above, e_.IndexCompare("slt", next[axis], form_.in[axis]));
      Value with;
      e_.WithMask(AsMask(inside), [&] { with = Dimension(d + 1, at, next, sum); });
      sum = m_.Select(inside, with, sum);
    }
    return sum;
  }

  PoolForm form_;
  PartitionState& state_;
  Emitter& e_;
  VectorMath& m_;
};

}  // namespace

void EmitPool(PartitionState& state, const CallNode& call, const StageOutput& output) {
  Pool(state, call, output).Run();
}

}  // namespace collage::native
