// scatter.cc: the data with updates written, or combined with it, at computed places. Updates are taken in order by one
// thread, since several may go to one place.
#include "backends/native/compiler/kernels/scatter.h"

#include <algorithm>

#include "backends/native/compiler/stages/elements.h"
#include "backends/native/compiler/stages/loop_nest.h"

namespace collage::native {
namespace {

Value Combine(VectorMath& m, const std::string& how, const Value& old, const Value& update) {
  if (how == "add") return m.Add(old, update);
  if (how == "mul") return m.Multiply(old, update);
  if (how == "min") return m.Smaller(old, update);
  if (how == "max") return m.Larger(old, update);
  return update;
}

/// Whether a tensor of `shape` has no elements, whatever its symbolic sizes are.
bool IsEmpty(const Shape& shape) { return std::ranges::find(shape, 0) != shape.end(); }

/// A scalar index; negative ones count from the end, what is beyond is clipped.
I64 ScalarIndex(PartitionState& state, const Expr& indices, const Indices& at, int64_t length) {
  Emitter& e = state.emitter;
  const Value value = state.expressions.At(indices, at);
  const I64 one = e.FirstLane(value);
  const I64 zero = e.Int(0);
  const I1 is_negative = e.IntCompare("slt", one, zero);
  const I64 moved = e.SelectInt(is_negative, e.Plus(one, length), one);
  return e.IntOp("minsi", e.IntOp("maxsi", moved, zero), e.Int(e.Added(length, -1)));
}

/// Fills `output` with the data. If they are a parameter whose memory the output `may_replace`, and nothing else reads
/// it, nothing is moved where the output is there.
void EmitData(PartitionState& state, const Expr& data, const Buffer& output, bool may_replace) {
  Emitter& e = state.emitter;
  const Buffer* from = state.expressions.FindBuffer(data);
  may_replace = may_replace && !HasSymbolic(output.shape) && state.read_once.contains(data.get()) &&
                from->ref.role == BufferRole::kInput && output.ref.role == BufferRole::kOutput &&
                output.offset_bytes == 0 && from->is_contiguous() && output.is_contiguous() &&
                from->dtype == output.dtype && from->shape == output.shape && !state.options.is_for_gpu();
  if (!may_replace || NumElements(output.shape) == 0) return EmitPointwise(state, data, output);
  state.in_place.push_back({from->ref.index, output.ref.index});
  const auto in_a_row = [&](Buffer buffer) {
    buffer.shape = {NumElements(output.shape)};
    buffer.strides = {1};
    return buffer;
  };
  const Buffer source = in_a_row(*from), target = in_a_row(output);
  const auto is_apart = [&](const Indices&) {
    const Indices first{e.Zero()};
    return I1{
        e.Def(fmt::format("llvm.icmp \"ne\" {}, {} : !llvm.ptr", e.Address(source, first), e.Address(target, first)))};
  };
  EmitElements(
      state, target, [&](const Indices& at) { return e.Load(source, at); }, is_apart);
}

}  // namespace

void EmitScatter(PartitionState& state, const CallNode& call, const StageOutput& output) {
  Emitter& e = state.emitter;
  const bool is_nd = call.op()->name == "scatter_nd";
  const std::string& how = call.attrs().String(is_nd ? "mode" : "reduction");
  EmitData(state, call.args()[0], output.buffer, /*may_replace=*/how == "update");
  const Shape data = output.buffer.shape;
  const Shape indices = ShapeOf(call.args()[1]);
  const Shape updates = ShapeOf(call.args()[2]);
  if (IsEmpty(updates) || IsEmpty(data)) return;
  // scatter_nd has slices behind the index tuple; their last dimension goes in vectors.
  const size_t places = is_nd ? indices.size() - 1 : updates.size();
  const bool has_slices = places < updates.size() && output.buffer.strides.back() == 1;
  if (!has_slices) e.SetLanes(1);
  Shape units = updates;
  if (has_slices) units.pop_back();
  const std::string name = state.NextStageName();
  e.Function(name, [&](const I64& begin, const I64& end) {
    e.For(begin, end, 1, [&](const I64& unit) {
      Indices place;
      for (const I64& part : Delinearise(e, unit, units)) place.push_back({part, 0});
      Indices target;
      if (is_nd) {
        for (int64_t m = 0; m < indices[0]; ++m) {
          Indices at{{e.Int(m), 0}};
          at.insert(at.end(), place.begin(), place.begin() + static_cast<int64_t>(places));
          target.push_back({ScalarIndex(state, call.args()[1], at, data[static_cast<size_t>(m)]), 0});
        }
        target.insert(target.end(), place.begin() + static_cast<int64_t>(places), place.end());
      } else {
        const size_t axis = AxisAttr(call, "axis", data.size());
        target = place;
        target[axis] = {ScalarIndex(state, call.args()[1], place, data[axis]), 0};
      }
      const auto update = [&](const Indices& from, const Indices& to) {
        const Value value = state.expressions.At(call.args()[2], from);
        const Value result = how == "update" ? value : Combine(state.math(), how, e.Load(output.buffer, to), value);
        e.Store(output.buffer, to, result);
      };
      if (!has_slices) return update(place, target);
      place.push_back({});
      target.push_back({});
      e.ForLanes(updates.back(), [&](const I64& first) {
        place.back() = target.back() = {first, 1, {}, e.lanes()};
        update(place, target);
      });
    });
  });
  e.Call(name, e.Product(units), false);
  e.SetLanes(e.native_lanes());
}

}  // namespace collage::native
