// reduction.cc: operators that combine the elements along axes into one.
#include "backends/native/compiler/reduction/reduction.h"

#include <cmath>

#include "backends/native/compiler/reduction/row_loops.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

const Combiner& CombinerOf(const std::string& name) {
  if (name == "max" || name.starts_with("nn.global_max")) return MaxCombiner();
  if (name == "min") return MinCombiner();
  if (name == "prod") return ProductCombiner();
  if (name == "all") return AllCombiner();
  if (name == "any") return AnyCombiner();
  return SumCombiner();
}

std::vector<bool> ReducedAxes(const CallNode& call, size_t rank) {
  std::vector<bool> reduced(rank);
  if (call.op()->name.starts_with("nn.global")) {
    for (size_t i = 2; i < rank; ++i) reduced[i] = true;
    return reduced;
  }
  if (call.attrs().IsNone("axis")) return std::vector<bool>(rank, true);
  for (int64_t axis : call.attrs().Ints("axis")) {
    reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis)] = true;
  }
  if (call.attrs().Bool("exclude")) reduced.flip();
  return reduced;
}

/// The space of a reduction of argument 0; a scalar is seen as one row of one element.
ReductionSpace SpaceOf(PartitionState& state, const CallNode& call) {
  ReductionSpace space;
  space.shape = ShapeOf(call.args()[0]);
  space.reduced = ReducedAxes(call, space.shape.size());
  space.lane_axis = LaneAxisOf(state, call.args()[0]);
  if (space.shape.empty()) {
    space.shape = {1};
    space.reduced = {true};
  }
  return space;
}

/// Dimensions in which lanes and rows of them are reduced, and that lie in memory one after the other without gaps, as
/// one: rows of an image rarely fill their last vector.
void MergeLanes(PartitionState& state, const CallNode& call, ReductionSpace& space) {
  const Expr& data = call.args()[0];
  const Shape shape = ShapeOf(data);
  if (HasSymbolic(shape)) return;
  const Buffer plain{{}, 0, TensorTypeOf(data).dtype(), shape, LayoutStrides(shape, Layout::kPlain)};
  if (shape.empty() || space.lane_axis + 1 != shape.size() || !space.lane_reduced()) return;
  if (shape[space.lane_axis] == 1) return;  // where there is one element, nobody looks at its coordinate
  std::vector<int> axes{static_cast<int>(space.lane_axis)};
  while (axes[0] > 0 && space.reduced[static_cast<size_t>(axes[0]) - 1]) axes.insert(axes.begin(), axes[0] - 1);
  while (axes.size() > 1 && !CanMerge(state, {nullptr, data, plain}, axes, 1)) axes.erase(axes.begin());
  for (size_t i = static_cast<size_t>(axes[0]); i < space.lane_axis; ++i) {
    space.shape[space.lane_axis] *= space.shape[i];
    space.shape[i] = 1;
  }
}

/// Lanes run along a dimension of the result: it must lie innermost there, else elements are made one by one.
void ChooseLanes(PartitionState& state, const CallNode& call, const StageOutput& output, const ReductionSpace& space) {
  if (space.lane_reduced()) return;
  const bool keeps = call.op()->name.starts_with("nn.global") || call.attrs().Bool("keepdims");
  size_t axis = 0;
  for (size_t i = 0; i < space.lane_axis; ++i) axis += !space.reduced[i] || keeps ? 1 : 0;
  if (output.buffer.strides[axis] != 1) state.emitter.SetLanes(1);
}

/// Indices in the argument of a place in the space.
Indices ArgumentIndices(const CallNode& call, const Indices& at) {
  return ShapeOf(call.args()[0]).empty() ? Indices{} : at;
}

/// Stores a unit's result; lanes that were combined hold it all, one of them is stored.
void StoreUnit(PartitionState& state, const CallNode& call, const StageOutput& output, const ReductionSpace& space,
               const ReductionUnit& unit, Value value) {
  Emitter& e = state.emitter;
  const bool keeps = call.op()->name.starts_with("nn.global") || call.attrs().Bool("keepdims");
  Indices at;
  for (size_t i = 0; i < unit.place().size() && !ShapeOf(call.args()[0]).empty(); ++i) {
    if (!space.reduced[i] || keeps) at.push_back(unit.place()[i]);
  }
  if (!space.lane_reduced()) return StoreResult(state, output, at, value);
  const std::string type = e.TypeOf(value.kind);
  const std::string element = type.substr(type.find('x') + 1, type.size() - type.find('x') - 2);
  const std::string one = e.Def(fmt::format("vector.extract {}[0] : {} from {}", value.name, element, type));
  e.SetLanes(1);
  value.name = e.Def(fmt::format("vector.broadcast {} : {} to {}", one, element, e.TypeOf(value.kind)));
  StoreResult(state, output, at, value);
  e.SetLanes(e.native_lanes());
}

bool IsMean(const std::string& name) {
  return name == "mean" || name == "variance" || name.starts_with("nn.global_avg");
}

}  // namespace

void EmitReduction(PartitionState& state, const CallNode& call, const StageOutput& output) {
  VectorMath& m = state.math();
  const std::string& name = call.op()->name;
  ReductionSpace space = SpaceOf(state, call);
  MergeLanes(state, call, space);
  const DataType dtype = TensorTypeOf(call.args()[0]).dtype();
  const ElementKind kind = KindOf(dtype);
  const auto read = [&](const Indices& at) { return state.expressions.At(call.args()[0], ArgumentIndices(call, at)); };
  ChooseLanes(state, call, output, space);
  ForEachUnit(state, space, NumberOf(space.shape) * 2, [&](ReductionUnit& unit) {
    Value result = unit.Fold(CombinerOf(name), kind, read);
    if (IsMean(name)) result = space.Mean(m, result);
    if (name == "variance") {
      const Value squares = unit.Fold(SumCombiner(), kind, [&](const Indices& at) {
        const Value centred = m.Subtract(read(at), result);
        return m.Multiply(centred, centred);
      });
      const bool unbiased = call.op()->FindAttr("unbiased") != nullptr && call.attrs().Bool("unbiased");
      result = space.Mean(m, squares, unbiased ? 1 : 0);
    }
    StoreUnit(state, call, output, space, unit, m.Wrap(result, dtype));
  });
  state.emitter.SetLanes(state.emitter.native_lanes());
}

bool EmitOverRows(PartitionState& state, const CallNode& reduction, const StageOutput& output) {
  Emitter& e = state.emitter;
  VectorMath& m = state.math();
  const Expr& data = reduction.args()[0];
  const ReductionSpace space = SpaceOf(state, reduction);
  const DataType dtype = TensorTypeOf(data).dtype();
  if (!dtype.is_floating() || !IsOfRows(e, space) || output.buffer.strides[space.lane_axis] != 1) return false;
  if (space.lane_axis + 1 != space.shape.size()) return false;
  using Values = RowGroup::Values;
  const double flops = NumberOf(space.shape) * 6;
  ForEachRows(state, space, kMostRows, flops, [&](RowGroup& rows) {
    const std::string& name = reduction.op()->name;
    Value packed = rows.Fold(CombinerOf(name), KindOf(dtype), [&](const std::vector<Indices>& at) {
      Values values;
      for (const Indices& row : at) values.push_back(state.expressions.At(data, row));
      return values;
    });
    if (IsMean(name)) packed = space.Mean(m, packed);
    const Values results = rows.Spread(m.Convert(packed, dtype));
    rows.Each([&](const std::vector<Indices>& at) {
      Values values;
      for (size_t row = 0; row < at.size(); ++row) {
        state.expressions.SetRegister(output.result, results[row]);
        values.push_back(state.expressions.At(output.epilogue, at[row]));
        state.expressions.ClearRegisters();
      }
      for (size_t row = 0; row < at.size(); ++row) e.Store(output.buffer, at[row], values[row]);
    });
  });
  return true;
}

// Each lane keeps the best value and where it was; then the lanes are compared.
void EmitArgReduction(PartitionState& state, const CallNode& call, const StageOutput& output) {
  Emitter& e = state.emitter;
  VectorMath& m = state.math();
  const ReductionSpace space = SpaceOf(state, call);
  const ElementKind kind = KindOf(TensorTypeOf(call.args()[0]).dtype());
  const bool is_max = call.op()->name == "argmax";
  const bool takes_last = call.attrs().Bool("select_last_index");
  const Combiner& extreme = is_max ? MaxCombiner() : MinCombiner();
  const Combiner& position = takes_last ? MaxCombiner() : MinCombiner();
  if (kind == ElementKind::kBool) throw Error(ErrorCategory::kUnsupported, "'argmax' of truth values");
  ChooseLanes(state, call, output, space);
  ForEachUnit(state, space, NumberOf(space.shape) * 3, [&](ReductionUnit& unit) {
    const Value none = NeutralOf(m, position, ElementKind::kInt);
    const std::vector<Value> best =
        unit.Carry({NeutralOf(m, extreme, kind), none}, [&](const Indices& at, const std::vector<Value>& carried) {
          const Value value = state.expressions.At(call.args()[0], ArgumentIndices(call, at));
          Index flat = e.Zero();
          for (size_t i = 0; i < space.shape.size(); ++i) {
            if (space.reduced[i]) flat = e.Sum(e.Scaled(flat, space.shape[i]), at[i]);
          }
          const Value here = AsValue(e.LanesOf(flat));
          Value better =
              is_max ? m.Compare("ogt", "sgt", value, carried[0]) : m.Compare("olt", "slt", value, carried[0]);
          // The position decides between equal elements, since memory may have them in another order; any is better
          // than none.
          const Value equal = m.Compare("oeq", "eq", value, carried[0]);
          better = m.Or(better, m.And(equal, m.Compare("ogt", takes_last ? "sgt" : "slt", here, carried[1])));
          if (!e.mask().is_none()) better = m.And(better, AsValue(e.mask()));
          return std::vector<Value>{m.Select(better, value, carried[0]), m.Select(better, here, carried[1])};
        });
    Value where = best[1];
    if (space.lane_reduced()) {
      const Value overall = CombineLanes(m, extreme, best[0]);
      where = CombineLanes(m, position, m.Select(m.Compare("oeq", "eq", best[0], overall), where, none));
    }
    // Nothing compared greater (not-a-number throughout): the first.
    where = m.Select(m.Compare("oeq", "eq", where, none), m.Integer(0), where);
    StoreUnit(state, call, output, space, unit, m.Wrap(where, AsTensorType(call.checked_type())->dtype()));
  });
  e.SetLanes(e.native_lanes());
}

// Rows of the axis one after the other, lanes along the innermost dimension; along that one itself lane by lane.
// Integers are kept whole until they are stored, whatever the dtype of the result.
void EmitCumulativeSum(PartitionState& state, const CallNode& call, const StageOutput& output) {
  Emitter& e = state.emitter;
  VectorMath& m = state.math();
  const Shape shape = ShapeOf(call.args()[0]);
  const size_t axis = AxisAttr(call, "axis", shape.size());
  const DataType from = TensorTypeOf(call.args()[0]).dtype();
  const DataType to = TensorTypeOf(output.result).dtype();
  const bool is_double = from.is_floating() && (from == kFloat64 || to == kFloat64);
  const DataType computed = is_double ? kFloat64 : from.is_floating() ? kFloat32 : kInt64;
  const bool is_product = call.op()->name == "cumprod";
  const bool exclusive = call.attrs().Bool("exclusive");
  if (axis + 1 == shape.size()) e.SetLanes(1);
  ReductionSpace space{shape, std::vector<bool>(shape.size()), shape.size() - 1};
  space.reduced[axis] = true;
  ForEachUnit(state, space, NumberOf(shape) * 2, [&](ReductionUnit& unit) {
    const Value start = m.Number(is_product ? 1 : 0, KindOf(computed));
    unit.Carry({start}, [&](const Indices& at, const std::vector<Value>& carried) {
      const Value own = m.Convert(state.expressions.At(call.args()[0], at), computed);
      const Value next = is_product ? m.Multiply(carried[0], own) : m.Add(carried[0], own);
      StoreResult(state, output, at, m.Convert(exclusive ? carried[0] : next, to));
      return std::vector<Value>{next};
    });
  });
  e.SetLanes(e.native_lanes());
}

}  // namespace collage::native
