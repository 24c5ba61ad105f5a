// elements.cc: loops over a result's elements, in vectors along its innermost dimensions.
#include "backends/native/compiler/stages/elements.h"

#include <algorithm>
#include <numeric>

#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "backends/native/compiler/stages/transposing.h"

namespace collage::native {
namespace {

/// Walks a buffer in memory order, in vectors along its innermost dimensions.
class ElementLoop {
 public:
  /// The `merged` innermost dimensions, contiguous in memory, are walked as one.
  ElementLoop(PartitionState& state, const Buffer& buffer, const ElementFn& value, size_t merged,
              const ElementGuard& guard)
      : state_(state), e_(state.emitter), buffer_(buffer), value_(value), guard_(guard), order_(MemoryOrder(buffer)) {
    rows_at_ = order_.size() - std::min(merged, order_.size());
    for (size_t i = 0; i < order_.size(); ++i) {
      const int64_t size = buffer.shape[static_cast<size_t>(order_[i])];
      if (i < rows_at_)
        outer_.push_back(size);
      else
        length_ *= size;
    }
  }

  void Run() {
    const int64_t rows = NumElements(outer_);
    if (rows * length_ == 0) return;
    const bool is_scalar =
        order_.empty() || rows * length_ == 1 || buffer_.strides[static_cast<size_t>(order_.back())] != 1;
    if (is_scalar) e_.SetLanes(1);
    const bool is_row_wise = !is_scalar && rows_at_ + 1 == order_.size();
    if (!is_row_wise || !EmitTransposing(state_, buffer_, value_, order_, guard_)) {
      const int64_t chunk = state_.target.chunk;
      const int64_t chunks = length_ > chunk ? length_ / chunk : 0;
      if (chunks > 0) Emit(rows, chunks, chunk, 0);
      if (chunks * chunk < length_) Emit(rows, 1, length_ - chunks * chunk, chunks * chunk);
    }
    e_.SetLanes(e_.native_lanes());
  }

 private:
  /// A stage over `chunks` pieces of `size` elements, from `first` on, of each row.
  void Emit(int64_t rows, int64_t chunks, int64_t size, int64_t first) {
    std::vector<int64_t> units = outer_;
    units.push_back(chunks);
    const std::string name = state_.NextStageName();
    e_.Function(name, [&](const I64& begin, const I64& end) {
      e_.For(begin, end, 1, [&](const I64& unit) {
        const I64s parts = Delinearise(e_, unit, units);
        const I64 start = e_.Plus(e_.MulInt(parts.back(), size), first);
        const int64_t multiple = std::gcd(std::gcd(size, first), static_cast<int64_t>(e_.lanes()));
        const bool is_whole = chunks == 1 && first == 0;
        const auto at = [&](const I64& lane) {
          return Place(parts, {is_whole ? lane : e_.AddInt(start, lane), 1, {}, is_whole ? e_.lanes() : multiple});
        };
        const auto fill = [&] {
          EachTogether(size, [&](const I64s& lanes) {
            std::vector<Value> values;
            for (const I64& lane : lanes) values.push_back(value_(at(lane)));
            for (size_t i = 0; i < lanes.size(); ++i) e_.Store(buffer_, at(lanes[i]), values[i]);
          });
        };
        if (guard_) {
          e_.If(guard_(Place(parts, e_.Zero())), fill);
        } else {
          fill();
        }
      });
    });
    e_.Call(name, rows * chunks, state_.IsParallel(static_cast<double>(rows * chunks * size) * 4));
  }

  /// Visits all vectors of [0, size), as many at a time as are computed before any of them is stored: neither LLVM nor
  /// the processor knows early that what is read next lies elsewhere. Gathers are slow for their own reasons.
  void EachTogether(int64_t size, const std::function<void(const I64s& lanes)>& visit) {
    constexpr int64_t kTogether = 4;
    const int64_t lanes = e_.lanes();
    const int64_t grouped = lanes > 1 && ReadsFewVectors() ? size / (kTogether * lanes) * (kTogether * lanes) : 0;
    if (grouped > 0) {
      e_.For(e_.Int(0), e_.Int(grouped), kTogether * lanes, [&](const I64& lane) {
        I64s group;
        for (int64_t i = 0; i < kTogether; ++i) group.push_back(e_.Plus(lane, i * lanes));
        visit(group);
      });
    }
    const int64_t whole = size / lanes * lanes;
    if (grouped < whole) {
      e_.For(e_.Int(grouped), e_.Int(whole), lanes, [&](const I64& lane) { visit({lane}); });
    }
    if (whole < size) e_.MaskedRest(size, [&](const I64& lane) { visit({lane}); });
  }

  bool ReadsFewVectors() {
    constexpr size_t kMostReads = 4;
    const std::vector<int64_t> strides = ReadsAlong(e_, buffer_, value_, order_.back()).strides;
    return strides.size() <= kMostReads &&
           std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 0 || stride == 1; });
  }

  Indices Place(const I64s& outer, const Index& lane) {
    Indices at(buffer_.shape.size(), e_.Zero());
    for (size_t i = 0; i < rows_at_; ++i) at[static_cast<size_t>(order_[i])] = {outer[i], 0};
    if (!order_.empty()) at[static_cast<size_t>(order_.back())] = lane;
    return at;
  }

  PartitionState& state_;
  Emitter& e_;
  const Buffer& buffer_;
  const ElementFn& value_;
  const ElementGuard& guard_;
  std::vector<int> order_;
  size_t rows_at_ = 0;
  std::vector<int64_t> outer_;
  int64_t length_ = 1;
};

}  // namespace

void ForDynamicElements(PartitionState& state, const Shape& shape, size_t merged,
                        const std::function<void(const Indices& at)>& body) {
  Emitter& e = state.emitter;
  size_t rows_at = shape.size() - merged;
  // Lanes count along the last dimension that is more than one element.
  size_t lanes_at = shape.size() - 1;
  while (lanes_at > 0 && shape[lanes_at] == 1) --lanes_at;
  rows_at = std::min(rows_at, lanes_at);
  const int64_t length = e.Product({shape.begin() + static_cast<int64_t>(rows_at), shape.end()});
  std::vector<int64_t> units(shape.begin(), shape.begin() + static_cast<int64_t>(rows_at));
  units.push_back(e.CeilDivided(length, state.target.chunk));
  const int64_t count = e.Product(units);
  const std::string name = state.NextStageName();
  e.Function(name, [&](const I64& begin, const I64& end) {
    e.For(begin, end, 1, [&](const I64& unit) {
      const I64s parts = Delinearise(e, unit, units);
      const I64 first = e.MulInt(parts.back(), state.target.chunk);
      const I64 last = e.IntOp("minsi", e.Plus(first, state.target.chunk), e.Int(length));
      e.ForLanesBetween(first, last, [&](const I64& lane) {
        Indices at(shape.size(), e.Zero());
        for (size_t i = 0; i < rows_at; ++i) at[i] = {parts[i], 0};
        at[lanes_at] = {lane, 1, {}, e.lanes()};
        body(at);
      });
    });
  });
  e.Call(name, count, state.IsParallel(NumberOf(shape) * 4));
}

void EmitElements(PartitionState& state, const Buffer& buffer, const ElementFn& value, const ElementGuard& guard) {
  if (HasSymbolic(buffer.shape)) {
    return ForDynamicElements(state, buffer.shape, 1, [&](const Indices& at) {
      const Value element = value(at);
      state.emitter.Store(buffer, at, element);
    });
  }
  ElementLoop(state, buffer, value, 1, guard).Run();
}

void EmitPointwise(PartitionState& state, const Expr& expr, const Buffer& buffer) {
  std::vector<int> order = MemoryOrder(buffer);
  const bool is_symbolic = HasSymbolic(buffer.shape);
  if (is_symbolic) std::iota(order.begin(), order.end(), 0);  // it is plain
  size_t merged = 1;
  for (size_t count = order.size(); count > 1; --count) {
    if (!CanMerge(state, {nullptr, expr, buffer}, {order.end() - static_cast<int64_t>(count), order.end()}, 1))
      continue;
    merged = count;
    break;
  }
  const ElementFn value = [&](const Indices& at) { return state.expressions.At(expr, at); };
  if (is_symbolic) {
    return ForDynamicElements(state, buffer.shape, merged, [&](const Indices& at) {
      const Value element = value(at);
      state.emitter.Store(buffer, at, element);
    });
  }
  ElementLoop(state, buffer, value, merged, {}).Run();
}

}  // namespace collage::native
