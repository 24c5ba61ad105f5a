// sort.cc: sort, argsort and topk: rows are merged from runs of 1, 2, 4 … elements with their positions, equal elements
#include "backends/native/compiler/kernels/sort.h"

// in their order. Of the first k, no run keeps more than k.
#include <algorithm>

#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"

namespace collage::native {
namespace {

/// Gets element `at` of the result: its value and its position along the axis of the data.
using StoreOrdered = std::function<void(const Indices& at, const Value& value, const Value& position)>;

class SortEmitter {
 public:
  SortEmitter(PartitionState& state, const CallNode& call, int64_t wanted)
      : state_(state),
        e_(state.emitter),
        call_(call),
        shape_(ShapeOf(call.args()[0])),
        axis_(AxisAttr(call, "axis", shape_.size())),
        length_(shape_[axis_]),
        wanted_(wanted),
        kind_(KindOf(TensorTypeOf(call.args()[0]).dtype())) {}

  void Run(const StoreOrdered& store) {
    std::vector<int64_t> rows = shape_;
    rows.erase(rows.begin() + static_cast<int64_t>(axis_));
    if (NumElements(rows) * wanted_ == 0) return;
    int passes = 0;
    while ((int64_t{1} << passes) < length_) ++passes;
    const double flops = static_cast<double>(NumElements(shape_)) * 10 * (passes + 1);
    const int64_t slots = state_.IsParallel(flops) ? std::min<int64_t>(state_.num_threads, NumElements(rows)) : 1;
    const DataType key = kind_ == ElementKind::kFloat ? kFloat32 : kind_ == ElementKind::kDouble ? kFloat64 : kInt64;
    for (Side& side : sides_) {
      side.keys = state_.AddWorkspace({slots, length_}, Layout::kPlain, key);
      side.positions = state_.AddWorkspace({slots, length_}, Layout::kPlain, kInt64);
    }
    e_.SetLanes(1);
    EmitShares(state_, slots, NumElements(rows), [&](const I64& slot, const I64& row, const I64&) {
      slot_ = slot;
      Indices at;
      for (const I64& part : Delinearise(e_, row, rows)) at.push_back({part, 0});
      at.insert(at.begin() + static_cast<int64_t>(axis_), Index{});
      SortRow(at, passes, store);
    });
    e_.SetLanes(e_.native_lanes());
  }

 private:
  /// The memory that runs are read from, or written to.
  struct Side {
    Buffer keys;
    Buffer positions;
  };

  void SortRow(Indices at, int passes, const StoreOrdered& store) {
    e_.For(e_.Int(0), e_.Int(length_), 1, [&](const I64& i) {
      at[axis_] = {i, 0};
      Put(sides_[0], i, state_.expressions.At(call_.args()[0], at), AsValue(e_.LanesOf({i, 0})));
    });
    for (int pass = 0; pass < passes; ++pass) {
      const int64_t width = int64_t{1} << pass;
      const Side& from = sides_[static_cast<size_t>(pass % 2)];
      const Side& to = sides_[static_cast<size_t>(1 - pass % 2)];
      e_.For(e_.Int(0), e_.Int((length_ + 2 * width - 1) / (2 * width)), 1,
             [&](const I64& pair) { Merge(from, to, e_.MulInt(pair, 2 * width), width); });
    }
    const Side& last = sides_[static_cast<size_t>(passes % 2)];
    e_.For(e_.Int(0), e_.Int(wanted_), 1, [&](const I64& i) {
      at[axis_] = {i, 0};
      store(at, e_.Load(last.keys, Place(i)), e_.Load(last.positions, Place(i)));
    });
  }

  Indices Place(const I64& i) { return {{slot_, 0}, {i, 0}}; }
  void Put(const Side& side, const I64& i, const Value& key, const Value& position) {
    e_.Store(side.keys, Place(i), key);
    e_.Store(side.positions, Place(i), position);
  }

  I64 AtMost(const I64& index, int64_t bound) { return e_.IntOp("minsi", index, e_.Int(bound)); }

  /// The runs of `width` from `first` and behind it become one.
  void Merge(const Side& from, const Side& to, const I64& first, int64_t width) {
    const I64 middle = e_.Plus(first, width);
    const I64 left_end = AtMost(e_.Plus(first, std::min(width, wanted_)), length_);
    const I64 right_end = AtMost(e_.Plus(middle, std::min(width, wanted_)), length_);
    const I64 end = AtMost(e_.Plus(first, std::min(2 * width, wanted_)), length_);
    e_.ForCarrying(first, end, I64s{first, middle}, [&](const I64& out, const I64s& at) {
      const I64 left_at = AtMost(at[0], length_ - 1);
      const I64 right_at = AtMost(at[1], length_ - 1);
      const Value left = e_.Load(from.keys, Place(left_at));
      const Value right = e_.Load(from.keys, Place(right_at));
      const bool ascending = call_.attrs().Bool("is_ascend");
      const Value better = state_.math().Compare(ascending ? "olt" : "ogt", ascending ? "slt" : "sgt", right, left);
      const I1 is_better = e_.FirstTruth(better);
      const I1 left_is_empty = e_.IntCompare("sge", at[0], left_end);
      const I1 wants_right = e_.Or(is_better, left_is_empty);
      const I1 takes_right = e_.And(wants_right, e_.IntCompare("slt", at[1], right_end));
      const std::string type = e_.TypeOf(left.kind);
      const Value key{e_.Def(fmt::format("arith.select {}, {}, {} : {}", takes_right, right.name, left.name, type)),
                      left.kind};
      const I64 place = e_.SelectInt(takes_right, right_at, left_at);
      Put(to, out, key, e_.Load(from.positions, Place(place)));
      const I64 step = e_.ToInt(takes_right);
      return I64s{e_.IntOp("subi", e_.Plus(at[0], 1), step), e_.AddInt(at[1], step)};
    });
  }

  PartitionState& state_;
  Emitter& e_;
  const CallNode& call_;
  Shape shape_;
  size_t axis_;
  int64_t length_;
  int64_t wanted_;  ///< of the first elements in order
  ElementKind kind_;
  Side sides_[2];
  I64 slot_;  ///< the thread, in the function being written
};

/// How many elements along the axis the result has.
int64_t Wanted(const CallNode& call, const Shape& result) { return result[AxisAttr(call, "axis", result.size())]; }

}  // namespace

void EmitSort(PartitionState& state, const CallNode& call, const StageOutput& output) {
  const std::string& name = call.op()->name;
  const bool gives_values = name == "sort" || (name == "topk" && call.attrs().String("ret_type") == "values");
  SortEmitter(state, call, Wanted(call, ShapeOf(output.result)))
      .Run([&](const Indices& at, const Value& value, const Value& position) {
        const DataType dtype = TensorTypeOf(output.result).dtype();
        StoreResult(state, output, at, gives_values ? value : state.math().Convert(position, dtype));
      });
}

void EmitTopK(PartitionState& state, const CallNode& call, const std::vector<Buffer>& outputs) {
  SortEmitter(state, call, Wanted(call, outputs[0].shape))
      .Run([&](const Indices& at, const Value& value, const Value& position) {
        state.emitter.Store(outputs[0], at, value);
        state.emitter.Store(outputs[1], at, state.math().Convert(position, outputs[1].dtype));
      });
}

}  // namespace collage::native
