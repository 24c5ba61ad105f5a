// reduction_loops.cc: rows are combined in several independent chains, which hide the latency of the operation.
#include "backends/native/compiler/reduction/reduction_loops.h"

#include <cmath>

#include "backends/native/compiler/stages/loop_nest.h"

namespace collage::native {
namespace {

constexpr int kChains = 4;

using V = const Value&;

}  // namespace

const Combiner& SumCombiner() {
  static const Combiner combiner{[](VectorMath& m, V a, V b) { return m.Add(a, b); }, "add", "add", 0};
  return combiner;
}
const Combiner& ProductCombiner() {
  static const Combiner combiner{[](VectorMath& m, V a, V b) { return m.Multiply(a, b); }, "mul", "mul", 1};
  return combiner;
}
const Combiner& MaxCombiner() {
  static const Combiner combiner{[](VectorMath& m, V a, V b) { return m.Larger(b, a); }, "maxnumf", "maxsi", -INFINITY};
  return combiner;
}
const Combiner& MinCombiner() {
  static const Combiner combiner{[](VectorMath& m, V a, V b) { return m.Smaller(b, a); }, "minnumf", "minsi", INFINITY};
  return combiner;
}
const Combiner& AllCombiner() {
  static const Combiner combiner{[](VectorMath& m, V a, V b) { return m.And(a, b); }, "", "and", 1};
  return combiner;
}
const Combiner& AnyCombiner() {
  static const Combiner combiner{[](VectorMath& m, V a, V b) { return m.Or(a, b); }, "", "or", 0};
  return combiner;
}

Value NeutralOf(VectorMath& m, const Combiner& combiner, ElementKind kind) {
  if (kind == ElementKind::kInt && std::isinf(combiner.neutral)) {
    return m.Integer(combiner.neutral > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min());
  }
  return m.Number(combiner.neutral, kind);
}

Value CombineLanes(VectorMath& m, const Combiner& combiner, const Value& value) {
  Emitter& e = m.emitter();
  if (e.lanes() == 1) return value;
  const std::string type = e.TypeOf(value.kind);
  const std::string element = type.substr(type.find('x') + 1, type.size() - type.find('x') - 2);
  const char* kind = IsFloat(value) ? combiner.horizontal_float : combiner.horizontal_int;
  const std::string one = e.Def(fmt::format("vector.reduction <{}>, {} : {} into {}", kind, value.name, type, element));
  return {e.Def(fmt::format("vector.broadcast {} : {} to {}", one, element, type)), value.kind};
}

int64_t ReductionSpace::elements() const {
  int64_t count = 1;
  for (size_t i = 0; i < shape.size(); ++i) count *= reduced[i] ? shape[i] : 1;
  return count;
}

Value ReductionSpace::Mean(VectorMath& m, const Value& sum, int64_t fewer) const {
  Emitter& e = m.emitter();
  int64_t count = 1;
  for (size_t i = 0; i < shape.size(); ++i) count = e.Times(count, reduced[i] ? shape[i] : 1);
  if (!IsSymbolic(count) && IsFloat(sum)) {
    return m.Multiply(sum, m.Like(1.0 / static_cast<double>(count - fewer), sum));
  }
  if (!IsSymbolic(count)) return m.Divide(sum, m.Integer(count - fewer));
  const Value divisor = AsValue(e.LanesOf({e.Plus(e.Int(count), -fewer)}));
  if (!IsFloat(sum)) return m.Divide(sum, divisor);
  return m.Divide(sum, m.Convert(divisor, sum.kind == ElementKind::kDouble ? kFloat64 : kFloat32));
}

size_t LaneAxisOf(PartitionState& state, const Expr& expr) {
  const Shape shape = ShapeOf(expr);
  size_t axis = shape.empty() ? 0 : shape.size() - 1;
  // The layout of a value computed in place, element by element, is its operand's.
  Expr source = expr;
  const Buffer* buffer = state.expressions.FindBuffer(source);
  while (buffer == nullptr) {
    const CallNode* call = As<CallNode>(source);
    if (call == nullptr || call->op() == nullptr || call->op()->pattern != OpPatternKind::kElemWise) break;
    source = call->args()[0];
    if (AsTensorType(source->checked_type()) == nullptr || ShapeOf(source) != shape) break;
    buffer = state.expressions.FindBuffer(source);
  }
  for (size_t i = 0; buffer != nullptr && i < shape.size(); ++i) {
    if (buffer->strides[i] == 1 && shape[i] > 1) axis = i;
  }
  return axis;
}

std::vector<size_t> ReductionUnit::InnerAxes() const {
  std::vector<size_t> axes;
  for (size_t i = 0; i < space_.shape.size(); ++i) {
    if (space_.reduced[i] && i != space_.lane_axis) axes.push_back(i);
  }
  return axes;
}

std::vector<int64_t> ReductionUnit::InnerSizes() const {
  std::vector<int64_t> sizes;
  for (size_t axis : InnerAxes()) sizes.push_back(space_.shape[axis]);
  return sizes;
}

/// The unit's place with the reduced dimensions, except that of the lanes, at flat position `inner`.
Indices ReductionUnit::At(const I64& inner) const {
  Indices at = place_;
  const std::vector<size_t> axes = InnerAxes();
  const I64s parts = Delinearise(e_, inner, InnerSizes());
  for (size_t i = 0; i < axes.size(); ++i) at[axes[i]] = {parts[i], 0};
  return at;
}

/// Combines over the lanes' dimension; the lanes of the result are still to be combined.
Value ReductionUnit::FoldRow(const Combiner& combiner, Value start, const std::function<Value(const I64&)>& value) {
  const int64_t length = space_.shape[space_.lane_axis];
  const int64_t lanes = e_.lanes();
  if (IsSymbolic(length)) return FoldDynamicRow(combiner, start, value);
  const int64_t blocks = length / lanes;
  const int64_t groups = blocks / kChains;
  if (groups > 0) {
    std::vector<Value> sums{start};
    for (int i = 1; i < kChains; ++i) sums.push_back(NeutralOf(m_, combiner, start.kind));
    sums = e_.ForValues(e_.Int(0), e_.Int(groups), sums, [&](const I64& group, const std::vector<Value>& carried) {
      std::vector<Value> next;
      for (int i = 0; i < kChains; ++i) {
        const I64 first = e_.Plus(e_.MulInt(group, kChains * lanes), i * lanes);
        next.push_back(combiner.combine(m_, carried[static_cast<size_t>(i)], value(first)));
      }
      return next;
    });
    start = combiner.combine(m_, combiner.combine(m_, sums[0], sums[1]), combiner.combine(m_, sums[2], sums[3]));
  }
  for (int64_t block = groups * kChains; block < blocks; ++block) {
    start = combiner.combine(m_, start, value(e_.Int(block * lanes)));
  }
  if (length % lanes == 0) return start;
  Value result;
  e_.MaskedRest(length, [&](const I64& first) {
    const Value own = value(first);
    const Value exists = AsValue(e_.mask());
    result = combiner.combine(m_, start, m_.Select(exists, own, NeutralOf(m_, combiner, own.kind)));
  });
  return result;
}

/// Groups of vectors first, and then one vector after the other, of which the last one may have fewer elements.
Value ReductionUnit::FoldDynamicRow(const Combiner& combiner, const Value& start,
                                    const std::function<Value(const I64&)>& value) {
  const int64_t lanes = e_.lanes();
  const I64 end = e_.Int(space_.shape[space_.lane_axis]);
  const I64 groups = e_.IntOp("divui", end, e_.Int(kChains * lanes));
  std::vector<Value> sums{start};
  for (int i = 1; i < kChains; ++i) sums.push_back(NeutralOf(m_, combiner, start.kind));
  sums = e_.ForValues(e_.Int(0), groups, sums, [&](const I64& group, const std::vector<Value>& carried) {
    std::vector<Value> next;
    for (int i = 0; i < kChains; ++i) {
      const I64 first = e_.Plus(e_.MulInt(group, kChains * lanes), i * lanes);
      next.push_back(combiner.combine(m_, carried[static_cast<size_t>(i)], value(first)));
    }
    return next;
  });
  const Value sum =
      combiner.combine(m_, combiner.combine(m_, sums[0], sums[1]), combiner.combine(m_, sums[2], sums[3]));
  const I64 rest = e_.MulInt(groups, kChains * lanes);
  const I64 blocks = e_.IntOp("divui", e_.Plus(e_.IntOp("subi", end, rest), lanes - 1), e_.Int(lanes));
  return e_.ForValues(e_.Int(0), blocks, {sum}, [&](const I64& block, const std::vector<Value>& carried) {
    const I64 first = e_.AddInt(rest, e_.MulInt(block, lanes));
    Value result;
    e_.MaskedBefore(first, end, [&] {
      const Value own = value(first);
      const Value exists = AsValue(e_.mask());
      result = combiner.combine(m_, carried[0], m_.Select(exists, own, NeutralOf(m_, combiner, own.kind)));
    });
    return std::vector<Value>{result};
  })[0];
}

Value ReductionUnit::Fold(const Combiner& combiner, ElementKind kind,
                          const std::function<Value(const Indices&)>& value) {
  const auto step = [&](const Indices& at, const Value& carried) {
    if (!space_.lane_reduced()) return combiner.combine(m_, carried, value(at));
    return FoldRow(combiner, carried, [&](const I64& first) {
      Indices own = at;
      own[space_.lane_axis] = {first, 1, {}, e_.lanes()};
      return value(own);
    });
  };
  const bool is_long = !space_.lane_reduced() && !space_.is_symbolic() && NumElements(InnerSizes()) >= 2 * kChains;
  std::vector<Value> sums(is_long ? kChains : 1, NeutralOf(m_, combiner, kind));
  sums = FoldInner(0, place_, sums, step);
  Value sum = sums[0];
  for (size_t i = 1; i < sums.size(); ++i) sum = combiner.combine(m_, sum, sums[i]);
  return space_.lane_reduced() ? CombineLanes(m_, combiner, sum) : sum;
}

/// Loops over the inner dimensions from the `d`-th on; the last one is dealt out to the chains.
std::vector<Value> ReductionUnit::FoldInner(size_t d, const Indices& at, std::vector<Value> sums,
                                            const std::function<Value(const Indices& at, const Value& carried)>& step) {
  const std::vector<size_t> axes = InnerAxes();
  if (d == axes.size()) return {step(at, sums[0])};
  const int64_t size = space_.shape[axes[d]];
  const auto place = [&](const I64& position) {
    Indices deeper = at;
    deeper[axes[d]] = {position, 0};
    return deeper;
  };
  if (d + 1 < axes.size()) {
    return e_.ForValues(e_.Int(0), e_.Int(size), sums, [&](const I64& position, const std::vector<Value>& carried) {
      return FoldInner(d + 1, place(position), carried, step);
    });
  }
  const auto chains = static_cast<int64_t>(sums.size());
  const int64_t groups = size / chains;
  if (groups > 0) {
    sums = e_.ForValues(e_.Int(0), e_.Int(groups), sums, [&](const I64& group, const std::vector<Value>& carried) {
      std::vector<Value> next;
      for (int64_t i = 0; i < chains; ++i) {
        const I64 position = e_.Plus(e_.MulInt(group, chains), i);
        next.push_back(step(place(position), carried[static_cast<size_t>(i)]));
      }
      return next;
    });
  }
  for (int64_t i = groups * chains; i < size; ++i) {
    Value& sum = sums[static_cast<size_t>(i - groups * chains)];
    sum = step(place(e_.Int(i)), sum);
  }
  return sums;
}

std::vector<Value> ReductionUnit::Carry(
    const std::vector<Value>& start,
    const std::function<std::vector<Value>(const Indices&, const std::vector<Value>&)>& step) {
  return e_.ForValues(
      e_.Int(0), e_.Int(e_.Product(InnerSizes())), start, [&](const I64& position, const std::vector<Value>& carried) {
        Indices at = At(position);
        if (!space_.lane_reduced()) return step(at, carried);
        const int64_t length = space_.shape[space_.lane_axis];
        if (IsSymbolic(length)) return CarryDynamicRow(at, carried, step);
        const int64_t whole = length / e_.lanes() * e_.lanes();
        std::vector<Value> values = carried;
        if (whole > 0) {
          values = e_.ForValues(e_.Int(0), e_.Int(whole / e_.lanes()), values,
                                [&](const I64& block, const std::vector<Value>& own) {
                                  at[space_.lane_axis] = {e_.MulInt(block, e_.lanes()), 1, {}, e_.lanes()};
                                  return step(at, own);
                                });
        }
        if (whole == length) return values;
        e_.MaskedRest(length, [&](const I64& first) {
          at[space_.lane_axis] = {first, 1, {}, e_.lanes()};
          values = step(at, values);
        });
        return values;
      });
}

std::vector<Value> ReductionUnit::CarryDynamicRow(
    Indices at, const std::vector<Value>& start,
    const std::function<std::vector<Value>(const Indices&, const std::vector<Value>&)>& step) {
  const int64_t length = space_.shape[space_.lane_axis];
  return e_.ForValues(e_.Int(0), e_.Int(e_.CeilDivided(length, e_.lanes())), start,
                      [&](const I64& block, const std::vector<Value>& carried) {
                        const I64 first = e_.MulInt(block, e_.lanes());
                        at[space_.lane_axis] = {first, 1, {}, e_.lanes()};
                        std::vector<Value> next;
                        if (e_.lanes() == 1) return step(at, carried);
                        e_.MaskedBefore(first, e_.Int(length), [&] { next = step(at, carried); });
                        return next;
                      });
}

void ReductionUnit::Each(const std::function<void(const Indices&)>& visit) {
  const auto at_inner = [&](const I64& position) {
    Indices at = At(position);
    if (!space_.lane_reduced()) return visit(at);
    e_.ForLanes(space_.shape[space_.lane_axis], [&](const I64& first) {
      at[space_.lane_axis] = {first, 1, {}, e_.lanes()};
      visit(at);
    });
  };
  const int64_t inner = e_.Product(InnerSizes());
  if (inner == 1) return at_inner(e_.Int(0));
  e_.For(e_.Int(0), e_.Int(inner), 1, at_inner);
}

void ForEachUnit(PartitionState& state, const ReductionSpace& space, double flops,
                 const std::function<void(ReductionUnit& unit)>& body) {
  Emitter& e = state.emitter;
  std::vector<size_t> axes;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < space.shape.size(); ++i) {
    if (space.reduced[i] || i == space.lane_axis) continue;
    axes.push_back(i);
    sizes.push_back(space.shape[i]);
  }
  const int64_t rows = e.Product(sizes);
  const auto emit = [&](int64_t blocks, const std::function<void(const std::function<void(const Index&)>&)>& lanes) {
    std::vector<int64_t> units = sizes;
    units.push_back(blocks);
    if (e.Product(units) == 0) return;
    const std::string name = state.NextStageName();
    e.Function(name, [&](const I64& begin, const I64& end) {
      e.For(begin, end, 1, [&](const I64& number) {
        const I64s parts = Delinearise(e, number, units);
        Indices at(space.shape.size(), e.Zero());
        for (size_t i = 0; i < axes.size(); ++i) at[axes[i]] = {parts[i], 0};
        const auto run = [&](const Index& lane) {
          at[space.lane_axis] = lane;
          ReductionUnit unit(state, space, at);
          body(unit);
        };
        if (lanes) {
          lanes(run);
        } else {
          run({e.MulInt(parts.back(), e.lanes()), 1, {}, e.lanes()});
        }
      });
    });
    e.Call(name, e.Times(rows, blocks), state.IsParallel(flops));
  };
  if (space.lane_reduced()) return emit(1, [&](const auto& run) { run(e.Zero()); });
  const int64_t length = space.shape[space.lane_axis];
  if (IsSymbolic(length)) {
    return emit(1, [&](const auto& run) {
      e.ForLanesBetween(e.Int(0), e.Int(length), [&](const I64& first) { run({first, 1, {}, e.lanes()}); });
    });
  }
  if (length >= e.lanes()) emit(length / e.lanes(), nullptr);
  if (length % e.lanes() == 0) return;
  emit(1, [&](const auto& run) { e.MaskedRest(length, [&](const I64& first) { run({first, 1, {}, e.lanes()}); }); });
}

}  // namespace collage::native
