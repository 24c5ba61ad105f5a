// pool.cc: the largest or mean element of windows. What windows cover is known when the kernel is compiled, so it is
// looked up: per dimension and output position, where the window starts, which of its taps lie inside the data, how
// many count.
#include <algorithm>
#include <cmath>

#include "backends/native/compiler/reduction_loops.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

/// Windows along one dimension; tables by output position.
struct Windows {
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad = 0;
  int64_t most_taps = 1;
  Tensor start, low, high;  ///< int64: position of tap 0, taps [low, high) lie inside
  Tensor share;             ///< float32: 1 / how many taps count
};

std::vector<int64_t> PerDimension(const CallNode& call, const char* name, size_t count) {
  std::vector<int64_t> values = call.attrs().Ints(name);
  while (values.size() < count) values.push_back(values[0]);
  return values;
}

Windows MakeWindows(int64_t out, const std::function<std::array<int64_t, 4>(int64_t)>& window) {
  Windows w;
  w.start = Tensor::Empty({out}, kInt64);
  w.low = Tensor::Empty({out}, kInt64);
  w.high = Tensor::Empty({out}, kInt64);
  w.share = Tensor::Empty({out}, kFloat32);
  for (int64_t o = 0; o < out; ++o) {
    const auto [start, low, high, count] = window(o);
    w.start.data<int64_t>()[o] = start;
    w.low.data<int64_t>()[o] = low;
    w.high.data<int64_t>()[o] = std::max(low, high);
    w.share.data<float>()[o] = 1.0F / static_cast<float>(std::max<int64_t>(count, 1));
  }
  return w;
}

std::vector<Windows> FixedWindows(const CallNode& call, const Shape& in, const Shape& out) {
  const size_t rank = in.size() - 2;
  const auto size = PerDimension(call, "pool_size", rank);
  const auto stride = PerDimension(call, "strides", rank);
  const auto dilation = PerDimension(call, "dilation", rank);
  std::vector<int64_t> pad = call.attrs().Ints("padding");
  if (pad.size() == 1) pad.assign(2 * rank, pad[0]);
  if (pad.size() == rank) pad.insert(pad.end(), pad.begin(), pad.end());
  const bool counts_padding =
      call.op()->FindAttr("count_include_pad") != nullptr && call.attrs().Bool("count_include_pad");
  std::vector<Windows> all;
  for (size_t d = 0; d < rank; ++d) {
    all.push_back(MakeWindows(out[d + 2], [&](int64_t o) -> std::array<int64_t, 4> {
      const int64_t start = o * stride[d] - pad[d];
      // Taps t with start + t * dilation in [from, to).
      const auto before = [&](int64_t bound) {
        return std::clamp<int64_t>((bound - start + dilation[d] - 1) / dilation[d], 0, size[d]);
      };
      const int64_t low = start >= 0 ? 0 : before(0);
      const int64_t high = before(in[d + 2]);
      return {start, low, high, counts_padding ? before(in[d + 2] + pad[d + rank]) : high - low};
    }));
    all.back().stride = stride[d];
    all.back().dilation = dilation[d];
    all.back().pad = pad[d];
    all.back().most_taps = size[d];
  }
  return all;
}

/// Windows that share the data out evenly.
std::vector<Windows> AdaptiveWindows(const Shape& in, const Shape& out) {
  std::vector<Windows> all;
  for (size_t d = 2; d < in.size(); ++d) {
    all.push_back(MakeWindows(out[d], [&](int64_t o) -> std::array<int64_t, 4> {
      const int64_t start = o * in[d] / out[d];
      const int64_t size = ((o + 1) * in[d] + out[d] - 1) / out[d] - start;
      return {start, 0, size, size};
    }));
  }
  return all;
}

class Pool {
 public:
  Pool(PartitionState& state, const CallNode& call, const StageOutput& output)
      : state_(state),
        e_(state.emitter),
        m_(state.math()),
        call_(call),
        output_(output),
        in_(ShapeOf(call.args()[0])),
        out_(ShapeOf(output.result)),
        is_adaptive_(call.op()->name.find("adaptive") != std::string::npos),
        is_max_(call.op()->name.find("max") != std::string::npos),
        combiner_(is_max_ ? MaxCombiner() : SumCombiner()) {}

  void Run() {
    const size_t rank = out_.size();
    const std::vector<int> order = MemoryOrder(output_.buffer);
    lane_axis_ = static_cast<size_t>(order.back());
    const bool channels_last = output_.buffer.strides[1] == 1 && out_[1] > 1;
    if (channels_last) lane_axis_ = 1;
    const DataType dtype = TensorTypeOf(call_.args()[0]).dtype();
    kind_ = dtype.is_floating() || is_max_ ? KindOf(dtype) : ElementKind::kDouble;
    data_ = Materialise(state_, call_.args()[0], channels_last ? Layout::kChannelsLast : Layout::kPlain);
    const std::vector<Windows> windows = is_adaptive_ ? AdaptiveWindows(in_, out_) : FixedWindows(call_, in_, out_);
    if (NumElements(out_) == 0) return;
    const bool is_scalar = lane_axis_ != 1 && (is_adaptive_ || lane_axis_ < 2);
    if (is_scalar) e_.SetLanes(1);
    for (const Windows& w : windows) {
      tables_.push_back({state_.AddConstant(w.start), state_.AddConstant(w.low), state_.AddConstant(w.high),
                         state_.AddConstant(w.share)});
    }
    ReductionSpace space{out_, std::vector<bool>(rank, false), lane_axis_};
    double flops = static_cast<double>(NumElements(out_));
    for (const Windows& w : windows) flops *= static_cast<double>(w.most_taps);
    ForEachUnit(state_, space, flops * 2, [&](ReductionUnit& unit) {
      const Indices& at = unit.place();
      Value result = Dimension(windows, 0, at, at, NeutralOf(m_, combiner_, kind_));
      if (!is_max_) result = m_.Multiply(result, Share(windows, at));
      result = m_.Convert(result, dtype);
      StoreResult(state_, output_, at, result);
    });
    e_.SetLanes(e_.native_lanes());
  }

 private:
  struct Tables {
    Buffer start, low, high, share;
  };

  /// Combines over dimension `d` and those behind it.
  Value Dimension(const std::vector<Windows>& windows, size_t d, const Indices& at, const Indices& from,
                  const Value& sum) {
    if (d == windows.size()) {
      Value value = e_.Load(data_, from);
      if (value.kind != kind_) value = m_.Convert(value, kFloat64);
      return combiner_.combine(m_, sum, value);
    }
    const size_t axis = d + 2;
    if (axis == lane_axis_ && !at[axis].is_scalar() && e_.lanes() > 1) return AlongLanes(windows, d, at, from, sum);
    const std::string start = e_.LoadInt(tables_[d].start, {at[axis].base});
    const std::string low = e_.LoadInt(tables_[d].low, {at[axis].base});
    const std::string high = e_.LoadInt(tables_[d].high, {at[axis].base});
    return e_.ForValues(low, high, {sum}, [&](const std::string& tap, const std::vector<Value>& carried) {
      Indices next = from;
      next[axis] = {e_.AddInt(start, e_.MulInt(tap, windows[d].dilation)), 0};
      return std::vector<Value>{Dimension(windows, d + 1, at, next, carried[0])};
    })[0];
  }

  /// The dimension of the lanes, tap by tap; lanes whose tap lies outside take nothing.
  Value AlongLanes(const std::vector<Windows>& windows, size_t d, const Indices& at, const Indices& from, Value sum) {
    const size_t axis = d + 2;
    const Windows& w = windows[d];
    for (int64_t tap = 0; tap < w.most_taps; ++tap) {
      Indices next = from;
      next[axis] = e_.Shifted(e_.Scaled(at[axis], w.stride), tap * w.dilation - w.pad);
      const bool may_precede = tap * w.dilation < w.pad;
      const bool may_exceed = (out_[axis] - 1) * w.stride + tap * w.dilation - w.pad >= in_[axis];
      if (!may_precede && !may_exceed) {
        sum = Dimension(windows, d + 1, at, next, sum);
        continue;
      }
      const Value above{e_.IndexCompare("sge", next[axis], 0), ElementKind::kBool};
      const Value inside = m_.And(above, {e_.IndexCompare("slt", next[axis], in_[axis]), ElementKind::kBool});
      Value with;
      e_.WithMask(inside.name, [&] { with = Dimension(windows, d + 1, at, next, sum); });
      sum = m_.Select(inside, with, sum);
    }
    return sum;
  }

  Value Share(const std::vector<Windows>& windows, const Indices& at) {
    Value share = m_.Number(1, ElementKind::kFloat);
    for (size_t d = 0; d < windows.size(); ++d) share = m_.Multiply(share, e_.Load(tables_[d].share, {at[d + 2]}));
    return kind_ == ElementKind::kDouble ? m_.Convert(share, kFloat64) : share;
  }

  PartitionState& state_;
  Emitter& e_;
  VectorMath& m_;
  const CallNode& call_;
  const StageOutput& output_;
  Shape in_, out_;
  bool is_adaptive_;
  bool is_max_;
  const Combiner& combiner_;
  size_t lane_axis_ = 1;
  ElementKind kind_ = ElementKind::kFloat;
  Buffer data_;
  std::vector<Tables> tables_;
};

}  // namespace

void EmitPool(PartitionState& state, const CallNode& call, const StageOutput& output) {
  Pool(state, call, output).Run();
}

}  // namespace collage::native
