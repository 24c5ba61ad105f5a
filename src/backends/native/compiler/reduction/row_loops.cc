// row_loops.cc: lanes of four vectors are combined in half as many steps as of each by itself: pairs are interleaved
// and combined, and then the pairs.
#include "backends/native/compiler/reduction/row_loops.h"

#include <algorithm>

#include "backends/native/compiler/stages/loop_nest.h"

namespace collage::native {
RowGroup::Values RowGroup::Spread(const Value& packed) {
  Values rows;
  for (size_t row = 0; row < count(); ++row) {
    rows.push_back(m_.Shuffle(packed, packed, [&](int64_t i) { return i / 4 * 4 + static_cast<int64_t>(row); }));
  }
  return rows;
}

// Rows a, b, c, d are combined by quarters of the lanes, which do not meet before the last steps:
//     a0 a1 a2 a3, b0 … → a02 b02 a13 b13, c02 d02 c13 d13 → a b c d
Value RowGroup::Pack(const Combiner& combiner, const Values& rows) {
  const auto lanes = static_cast<int64_t>(e_.lanes());
  const auto row = [&](size_t i) { return rows[std::min(i, rows.size() - 1)]; };
  const auto half = [&](const Value& a, const Value& b) {
    const auto low = [&](int64_t i) { return i / 4 * 4 + i % 4 / 2 + i % 2 * lanes; };
    return combiner.combine(m_, m_.Shuffle(a, b, low), m_.Shuffle(a, b, [&](int64_t i) { return low(i) + 2; }));
  };
  const Value first = half(row(0), row(1));
  const Value second = rows.size() > 2 ? half(row(2), row(3)) : first;
  const auto low = [&](int64_t i) { return i / 4 * 4 + i % 2 + i % 4 / 2 * lanes; };
  Value packed = combiner.combine(m_, m_.Shuffle(first, second, low),
                                  m_.Shuffle(first, second, [&](int64_t i) { return low(i) + 2; }));
  for (int64_t distance = lanes / 2; distance >= 4; distance /= 2) {
    packed = combiner.combine(m_, packed, m_.Shuffle(packed, packed, [&](int64_t i) { return i ^ distance; }));
  }
  return packed;
}

std::vector<Indices> RowGroup::At(const I64& first) const {
  std::vector<Indices> at = places_;
  for (Indices& row : at) row[space_.lane_axis] = {first, 1, {}, e_.lanes()};
  return at;
}

Value RowGroup::Fold(const Combiner& combiner, ElementKind kind, const ValuesFn& values) {
  constexpr size_t kChains = 8;  // that hide the latency of combining
  const size_t chains = std::max<size_t>(kChains / count(), 1);
  const int64_t length = space_.shape[space_.lane_axis];
  const int64_t lanes = e_.lanes();
  const auto step = static_cast<int64_t>(chains);
  Values sums(chains * count(), NeutralOf(m_, combiner, kind));
  const auto add = [&](Values& to, size_t chain, const I64& first) {
    const Values own = values(At(first));
    for (size_t row = 0; row < count(); ++row) {
      Value& sum = to[chain * count() + row];
      sum = combiner.combine(m_, sum, own[row]);
    }
  };
  const auto add_groups = [&](const I64& groups) {
    sums = e_.ForValues(e_.Int(0), groups, sums, [&](const I64& group, const Values& carried) {
      Values next = carried;
      for (size_t chain = 0; chain < chains; ++chain) {
        add(next, chain, e_.Plus(e_.MulInt(group, step * lanes), static_cast<int64_t>(chain) * lanes));
      }
      return next;
    });
  };
  const auto add_masked = [&](Values& to, const I64& first) {
    const Values own = values(At(first));
    for (size_t row = 0; row < count(); ++row) {
      const Value exists = AsValue(e_.mask());
      const Value neutral = NeutralOf(m_, combiner, own[row].kind);
      to[row] = combiner.combine(m_, to[row], m_.Select(exists, own[row], neutral));
    }
  };
  if (IsSymbolic(length)) {
    const I64 end = e_.Int(length);
    const I64 groups = e_.IntOp("divui", end, e_.Int(step * lanes));
    add_groups(groups);
    const I64 rest = e_.MulInt(groups, step * lanes);
    const I64 left = e_.IntOp("divui", e_.Plus(e_.IntOp("subi", end, rest), lanes - 1), e_.Int(lanes));
    sums = e_.ForValues(e_.Int(0), left, sums, [&](const I64& block, const Values& carried) {
      Values next = carried;
      const I64 first = e_.AddInt(rest, e_.MulInt(block, lanes));
      e_.MaskedBefore(first, end, [&] { add_masked(next, first); });
      return next;
    });
  } else {
    const int64_t blocks = length / lanes;
    if (blocks >= step) add_groups(e_.Int(blocks / step));
    for (int64_t block = blocks / step * step; block < blocks; ++block) {
      add(sums, static_cast<size_t>(block % step), e_.Int(block * lanes));
    }
    if (length % lanes != 0) e_.MaskedRest(length, [&](const I64& first) { add_masked(sums, first); });
  }
  for (size_t i = sums.size() - 1; i >= count(); --i) {
    sums[i - count()] = combiner.combine(m_, sums[i - count()], sums[i]);
  }
  sums.resize(count());
  return Pack(combiner, sums);
}

RowGroup::Values RowGroup::Carry(const Values& start,
                                 const std::function<Values(const I64& first, const Values&)>& step) {
  const int64_t length = space_.shape[space_.lane_axis];
  Values carried = start;
  if (length >= e_.lanes()) {
    carried = e_.ForValues(
        e_.Int(0), e_.Int(length / e_.lanes()), carried,
        [&](const I64& block, const Values& values) { return step(e_.MulInt(block, e_.lanes()), values); });
  }
  if (length % e_.lanes() == 0) return carried;
  e_.MaskedRest(length, [&](const I64& first) { carried = step(first, carried); });
  return carried;
}

void RowGroup::Each(const std::function<void(const std::vector<Indices>&)>& visit) {
  e_.ForLanes(space_.shape[space_.lane_axis], [&](const I64& first) { visit(At(first)); });
}

void RowGroup::EachVector(const std::function<void(const std::vector<Indices>&, size_t)>& visit) {
  const int64_t length = space_.shape[space_.lane_axis];
  const int64_t whole = length / e_.lanes();
  for (int64_t number = 0; number < whole; ++number) {
    visit(At(e_.Int(number * e_.lanes())), static_cast<size_t>(number));
  }
  if (length % e_.lanes() == 0) return;
  e_.MaskedRest(length, [&](const I64& first) { visit(At(first), static_cast<size_t>(whole)); });
}

std::vector<RowGroup::Values> RowGroup::Read(const ValuesFn& values) {
  std::vector<Values> vectors;
  EachVector([&](const std::vector<Indices>& at, size_t) { vectors.push_back(values(at)); });
  return vectors;
}

Value RowGroup::FoldVectors(const Combiner& combiner, const std::vector<Values>& vectors) {
  const int64_t length = space_.shape[space_.lane_axis];
  Values rows;
  for (size_t row = 0; row < count(); ++row) {
    Values level;
    for (const Values& vector : vectors) level.push_back(vector[row]);
    if (length % e_.lanes() != 0) {
      e_.MaskedRest(length, [&](const I64&) {
        level.back() = m_.Select(AsValue(e_.mask()), level.back(), NeutralOf(m_, combiner, level[0].kind));
      });
    }
    while (level.size() > 1) {
      Values next;
      for (size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(combiner.combine(m_, level[i], level[i + 1]));
      if (level.size() % 2 != 0) next.push_back(level.back());
      level = std::move(next);
    }
    rows.push_back(level[0]);
  }
  return Pack(combiner, rows);
}

bool IsOfRows(const Emitter& e, const ReductionSpace& space) {
  bool is_one_row = space.lane_reduced() && e.lanes() >= 4 && space.shape[space.lane_axis] > 0;
  for (size_t i = 0; i < space.shape.size(); ++i) {
    is_one_row = is_one_row && (i == space.lane_axis || !space.reduced[i] || space.shape[i] == 1);
  }
  return is_one_row;
}

int64_t RowsInRegisters(const Emitter& e, const ReductionSpace& space) {
  const int64_t vectors = (space.shape[space.lane_axis] + e.lanes() - 1) / e.lanes();
  const int64_t most = e.native_lanes() >= 16 ? 16 : 8;  // while as many others are in use
  return IsOfRows(e, space) ? std::min(most / vectors, kMostRows) : 0;
}

namespace {

/// Calls `emit(groups, rows of a group, first row)` for whole groups, and for what is left of them.
void ForGroups(Emitter& e, const ReductionSpace& space, int64_t together,
               const std::function<void(int64_t, int64_t, int64_t)>& emit) {
  int64_t rows = 1;
  for (size_t i = 0; i < space.shape.size(); ++i) rows = e.Times(rows, i == space.lane_axis ? 1 : space.shape[i]);
  if (IsSymbolic(rows)) {
    // Whole groups, then the rows that are left, one by one: the quotient is one less than that of the next number,
    // rounded up.
    const int64_t groups = e.Added(e.CeilDivided(e.Added(rows, 1), together), -1);
    emit(groups, together, 0);
    if (together > 1) emit(e.Added(rows, e.Times(groups, -together)), 1, e.Times(groups, together));
    return;
  }
  if (rows >= together) emit(rows / together, together, 0);
  if (rows % together != 0) emit(1, rows % together, rows / together * together);
}

/// Group `number` of `count` rows each, the first one from row `first` on.
RowGroup GroupAt(PartitionState& state, const ReductionSpace& space, const I64& number, int64_t count, int64_t first) {
  Emitter& e = state.emitter;
  Shape sizes = space.shape;
  sizes[space.lane_axis] = 1;
  std::vector<Indices> places;
  for (int64_t i = 0; i < count; ++i) {
    const I64 row = IsSymbolic(first) ? e.Plus(e.Plus(e.MulInt(number, count), first), i)
                                      : e.Plus(e.MulInt(number, count), first + i);
    places.push_back({});
    for (const I64& part : Delinearise(e, row, sizes)) places.back().push_back({part, 0});
  }
  return {state, space, std::move(places)};
}

void EmitGroups(PartitionState& state, const ReductionSpace& space, int64_t groups, int64_t count, int64_t first,
                double flops, const std::function<void(RowGroup& rows)>& body) {
  Emitter& e = state.emitter;
  const std::string name = state.NextStageName();
  e.Function(name, [&](const I64& begin, const I64& end) {
    e.For(begin, end, 1, [&](const I64& number) {
      RowGroup group = GroupAt(state, space, number, count, first);
      body(group);
    });
  });
  e.Call(name, groups, state.IsParallel(flops));
}

}  // namespace

void ForEachRows(PartitionState& state, const ReductionSpace& space, int64_t together, double flops,
                 const std::function<void(RowGroup& rows)>& body) {
  ForGroups(state.emitter, space, together, [&](int64_t groups, int64_t count, int64_t first) {
    EmitGroups(state, space, groups, count, first, flops, body);
  });
}

void ForEachRowsOverlapping(PartitionState& state, const ReductionSpace& space, int64_t together, double flops,
                            const RowPasses& passes, const std::function<void(RowGroup& rows)>& rest) {
  Emitter& e = state.emitter;
  ForGroups(e, space, together, [&](int64_t groups, int64_t count, int64_t first) {
    if (count < together || groups == 1) return EmitGroups(state, space, groups, count, first, flops, rest);
    const std::string name = state.NextStageName();
    e.Function(name, [&](const I64& begin, const I64& end) {
      e.If(e.IntCompare("slt", begin, end), [&] {
        const auto at = [&](const I64& number) { return GroupAt(state, space, number, count, first); };
        const I64 last = e.Plus(end, -1);
        const auto step = [&](RowGroup* before, const I64& number, const RowPasses::Values& carried) {
          RowGroup now = at(number);
          RowGroup next = at(e.IntOp("minsi", e.Plus(number, 1), last));
          return passes.step(before, now, next, carried);
        };
        RowGroup start = at(begin);
        RowPasses::Values carried = step(nullptr, begin, passes.start(start));
        carried = e.ForValues(e.Plus(begin, 1), end, carried, [&](const I64& number, const RowPasses::Values& values) {
          RowGroup before = at(e.Plus(number, -1));
          return step(&before, number, values);
        });
        RowGroup finish = at(last);
        passes.finish(finish, carried);
      });
    });
    e.Call(name, groups, state.IsParallel(flops));
  });
}

}  // namespace collage::native
