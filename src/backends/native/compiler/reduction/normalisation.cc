// normalisation.cc: elements divided by statistics of the group that they are in: softmax and the norms.
#include "backends/native/compiler/reduction/normalisation.h"

#include <cmath>

#include "backends/native/compiler/reduction/row_loops.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

/// One call's groups: the space in which they are reduced, and how it lies over the data.
class Normalisation {
 public:
  Normalisation(PartitionState& state, const CallNode& call, const StageOutput& output)
      : state_(state),
        e_(state.emitter),
        m_(state.math()),
        call_(call),
        output_(output),
        name_(call.op()->name),
        shape_(ShapeOf(call.args()[0])) {
    space_.shape = shape_;
    space_.reduced.assign(shape_.size(), false);
    space_.lane_axis = static_cast<size_t>(MemoryOrder(output.buffer).back());
    if (name_ == "nn.group_norm") {
      SplitGroups();
    } else if (name_ == "nn.instance_norm") {
      for (size_t i = 2; i < shape_.size(); ++i) space_.reduced[i] = true;
    } else {
      for (int64_t axis : call.attrs().Ints("axis")) {
        space_.reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape_.size()) : axis)] = true;
      }
    }
  }

  void Run() {
    const DataType dtype = TensorTypeOf(call_.args()[0]).dtype();
    if (!dtype.is_floating()) throw Error(ErrorCategory::kUnsupported, "normalises floats only");
    kind_ = KindOf(dtype);
    // Values computed once and read again are kept in the result's memory if it has the data's type.
    const bool in_place = output_.buffer.dtype == (kind_ == ElementKind::kDouble ? kFloat64 : kFloat32);
    scratch_ = in_place ? output_.buffer : Scratch();
    keeps_ = state_.expressions.FindBuffer(call_.args()[0]) == nullptr;
    const double flops = NumberOf(shape_) * 10;
    const bool is_softmax = name_ == "nn.softmax" || name_ == "nn.log_softmax";
    if (IsOfRows(e_, space_) && name_ != "nn.l2_normalize") return RunRows(is_softmax, flops);
    ForEachUnit(state_, space_, flops, [&](ReductionUnit& unit) {
      if (is_softmax) return Softmax(unit);
      if (name_ == "nn.l2_normalize") return Norm2(unit);
      Standardise(unit);
    });
  }

 private:
  /// [N, C, …] as [N, groups, C / groups, …].
  void SplitGroups() {
    const size_t axis = AxisAttr(call_, "axis", shape_.size());
    const int64_t groups = call_.attrs().Int("num_groups");
    group_axis_ = static_cast<int>(axis);
    const int64_t channels = shape_[axis] / groups;
    space_.shape[axis] = channels;
    space_.shape.insert(space_.shape.begin() + static_cast<int64_t>(axis), groups);
    space_.reduced.assign(space_.shape.size(), true);
    space_.reduced[axis] = false;
    space_.reduced[0] = false;
    if (space_.lane_axis >= axis) ++space_.lane_axis;
  }

  /// Indices of the data of a place in the space.
  Indices DataIndices(const Indices& at) {
    if (group_axis_ < 0) return at;
    const auto axis = static_cast<size_t>(group_axis_);
    Indices own = at;
    own[axis + 1] = e_.Sum(e_.Scaled(at[axis], space_.shape[axis + 1]), at[axis + 1]);
    own.erase(own.begin() + group_axis_);
    return own;
  }

  Buffer Scratch() {
    const DataType dtype = kind_ == ElementKind::kDouble ? kFloat64 : kFloat32;
    Buffer buffer{WorkspaceRef(), 0, dtype, shape_};
    if (HasSymbolic(shape_)) {
      e_.CallScratch(e_.Times(e_.Product(shape_), static_cast<int64_t>(dtype.size_bytes())));
    } else {
      buffer = state_.AddWorkspace(shape_, Layout::kPlain, dtype);
    }
    buffer.strides = output_.buffer.strides;
    return buffer;
  }

  /// The data for the first time; a value that has to be computed is kept.
  Value First(const Indices& at) {
    const Indices own = DataIndices(at);
    const Value value = state_.expressions.At(call_.args()[0], own);
    if (keeps_) e_.Store(scratch_, own, value);
    return value;
  }
  Value Again(const Indices& at) {
    const Indices own = DataIndices(at);
    return keeps_ ? e_.Load(scratch_, own) : state_.expressions.At(call_.args()[0], own);
  }
  void Store(const Indices& at, const Value& value) { StoreResult(state_, output_, DataIndices(at), value); }

  using Values = RowGroup::Values;
  using Places = std::vector<Indices>;

  /// Each step is made for all rows of a group before the next one. Short rows stay in registers. Of long ones what is
  /// computed is kept in memory; so are powers where registers hold few rows, unless vectors of them would straddle
  /// cache lines.
  void RunRows(bool is_softmax, double flops) {
    if (IsSymbolic(space_.shape[space_.lane_axis])) {
      return ForEachRows(state_, space_, kMostRows, flops,
                         [&](RowGroup& rows) { is_softmax ? LongSoftmax(rows) : LongStandardise(rows); });
    }
    const int64_t held = RowsInRegisters(e_, space_);
    // Three groups in work are to stay in the first cache, and what is carried of them in registers.
    constexpr int64_t kMostInCache = 512;
    const bool is_between = held < kMostRows && space_.shape[space_.lane_axis] <= kMostInCache;
    if (is_between && e_.native_lanes() >= 16 && name_ != "nn.log_softmax") {
      return ForEachRowsOverlapping(state_, space_, kMostRows, flops,
                                    is_softmax ? SoftmaxPasses() : StandardisePasses(),
                                    [&](RowGroup& rows) { is_softmax ? LongSoftmax(rows) : LongStandardise(rows); });
    }
    const bool is_aligned = space_.shape[space_.lane_axis] % e_.lanes() == 0;
    const bool is_short = is_softmax && is_aligned ? held == kMostRows : held > 0;
    ForEachRows(state_, space_, is_short ? held : kMostRows, flops, [&](RowGroup& rows) {
      if (is_softmax) return is_short ? ShortSoftmax(rows) : LongSoftmax(rows);
      is_short ? ShortStandardise(rows) : LongStandardise(rows);
    });
  }

  Values FirstOf(const Places& at) {
    Values values;
    for (const Indices& row : at) values.push_back(First(row));
    return values;
  }
  Values AgainOf(const Places& at) {
    Values values;
    for (const Indices& row : at) values.push_back(Again(row));
    return values;
  }

  void ShortSoftmax(RowGroup& rows) {
    std::vector<Values> values = rows.Read([&](const Places& at) { return DataOf(at); });
    const bool is_log = name_ == "nn.log_softmax";
    const Values largest = rows.Spread(rows.FoldVectors(MaxCombiner(), values));
    std::vector<Values> powers;
    for (Values& vector : values) {
      powers.emplace_back();
      for (size_t r = 0; r < vector.size(); ++r) {
        powers.back().push_back(m_.ExpBelow(vector[r], largest[r]));
        if (is_log) vector[r] = m_.Subtract(vector[r], largest[r]);
      }
    }
    const Value sums = rows.FoldVectors(SumCombiner(), powers);
    const Values last = rows.Spread(is_log ? m_.Log(sums) : m_.Divide(m_.Like(1, sums), sums));
    rows.EachVector([&](const Places& at, size_t i) {
      for (size_t r = 0; r < at.size(); ++r) {
        Store(at[r], is_log ? m_.Subtract(values[i][r], last[r]) : m_.Multiply(powers[i][r], last[r]));
      }
    });
  }

  void LongSoftmax(RowGroup& rows) {
    const bool is_log = name_ == "nn.log_softmax";
    const Value largest = rows.Fold(MaxCombiner(), kind_, [&](const Places& at) { return FirstOf(at); });
    const Values shifts = rows.Spread(largest);
    const Value sums = rows.Fold(SumCombiner(), kind_, [&](const Places& at) {
      Values powers = AgainOf(at);
      for (size_t r = 0; r < at.size(); ++r) powers[r] = m_.ExpBelow(powers[r], shifts[r]);
      for (size_t r = 0; r < at.size() && !is_log; ++r) e_.Store(scratch_, DataIndices(at[r]), powers[r]);
      return powers;
    });
    const Values last = rows.Spread(is_log ? m_.Add(largest, m_.Log(sums)) : m_.Divide(m_.Like(1, sums), sums));
    rows.Each([&](const Places& at) {
      Values values;
      for (const Indices& row : at) values.push_back(is_log ? Again(row) : e_.Load(scratch_, DataIndices(row)));
      for (size_t r = 0; r < at.size(); ++r) {
        Store(at[r], is_log ? m_.Subtract(values[r], last[r]) : m_.Multiply(values[r], last[r]));
      }
    });
  }

  /// The largest elements are found of one group of rows while the exponentials of another one are taken, and those of
  /// a third one are divided by their sums.
  RowPasses SoftmaxPasses() {
    RowPasses passes;
    passes.start = [this](RowGroup& first) -> Values {
      const Value largest = first.Fold(MaxCombiner(), kind_, [&](const Places& at) { return FirstOf(at); });
      return {largest, largest};
    };
    passes.step = [this](RowGroup* before, RowGroup& now, RowGroup& next, const Values& carried) -> Values {
      const size_t count = now.count();
      const Values shifts = now.Spread(carried[0]);
      const Values factors = now.Spread(carried[1]);
      Values start(count, NeutralOf(m_, MaxCombiner(), kind_));
      start.resize(2 * count, NeutralOf(m_, SumCombiner(), kind_));
      Values folded = now.Carry(start, [&](const I64& first, const Values& values) {
        Values powers = AgainOf(now.At(first));
        if (before != nullptr) DivideBySums(before->At(first), factors);
        const Values data = FirstOf(next.At(first));
        FetchBehind(next.At(first), scratch_);
        const Places at = now.At(first);
        Values results = values;
        for (size_t r = 0; r < count; ++r) {
          powers[r] = m_.ExpBelow(powers[r], shifts[r]);
          e_.Store(scratch_, DataIndices(at[r]), powers[r]);
          results[r] = MaxCombiner().combine(m_, values[r], Existing(data[r], MaxCombiner()));
          results[count + r] = m_.Add(values[count + r], Existing(powers[r], SumCombiner()));
        }
        return results;
      });
      const Values sums(folded.begin() + static_cast<int64_t>(count), folded.end());
      folded.resize(count);
      const Value sum = now.Pack(SumCombiner(), sums);
      return {next.Pack(MaxCombiner(), folded), m_.Divide(m_.Like(1, sum), sum)};
    };
    passes.finish = [this](RowGroup& last, const Values& carried) {
      const Values factors = last.Spread(carried[1]);
      last.Each([&](const Places& at) { DivideBySums(at, factors); });
    };
    return passes;
  }

  /// Brings nearer what the rows behind `next` read, and where `next` or, if data are kept, the rows behind it are
  /// written first: vectors of several rows are too many streams for the processor to foresee.
  void FetchBehind(const Places& next, const Buffer& written) {
    const Buffer* data = state_.expressions.FindBuffer(call_.args()[0]);
    const int64_t elements = space_.shape[space_.lane_axis] * static_cast<int64_t>(next.size());
    const auto behind = [&](const Buffer& buffer, const Indices& row) {
      return e_.ElementAt(e_.Address(buffer, row), elements * static_cast<int64_t>(buffer.dtype.size_bytes()), "i8");
    };
    for (const Indices& row : next) {
      const Indices own = DataIndices(row);
      if (data != nullptr && data->is_contiguous()) e_.Prefetch(behind(*data, own), {.nearest = 1});
      if (keeps_ && !written.is_contiguous()) continue;
      e_.Prefetch(keeps_ ? behind(written, own) : e_.Address(written, own), {.nearest = 1, .to_write = true});
    }
  }

  /// `value` but in lanes that do not exist.
  Value Existing(const Value& value, const Combiner& combiner) {
    if (e_.mask().is_none()) return value;
    return m_.Select(AsValue(e_.mask()), value, NeutralOf(m_, combiner, value.kind));
  }

  /// `factors`: 1 / the sum of each row's exponentials, which have been kept.
  void DivideBySums(const Places& at, const Values& factors) {
    Values powers;
    for (const Indices& row : at) powers.push_back(e_.Load(scratch_, DataIndices(row)));
    for (size_t r = 0; r < at.size(); ++r) Store(at[r], m_.Multiply(powers[r], factors[r]));
  }

  /// The data, which are not needed again.
  Values DataOf(const Places& at) {
    Values values;
    for (const Indices& row : at) values.push_back(state_.expressions.At(call_.args()[0], DataIndices(row)));
    return values;
  }

  void ShortStandardise(RowGroup& rows) {
    const double share = 1.0 / static_cast<double>(space_.elements());
    std::vector<Values> values = rows.Read([&](const Places& at) { return DataOf(at); });
    const Value total = rows.FoldVectors(SumCombiner(), values);
    const Values means = rows.Spread(m_.Multiply(total, m_.Like(share, total)));
    std::vector<Values> squares;
    for (Values& vector : values) {
      squares.emplace_back();
      for (size_t r = 0; r < vector.size(); ++r) {
        vector[r] = m_.Subtract(vector[r], means[r]);
        squares.back().push_back(m_.Multiply(vector[r], vector[r]));
      }
    }
    const Values factors = rows.Spread(Factor(rows.FoldVectors(SumCombiner(), squares)));
    rows.EachVector([&](const Places& at, size_t i) {
      for (size_t r = 0; r < at.size(); ++r) values[i][r] = m_.Multiply(values[i][r], factors[r]);
      StoreScaled(at, values[i]);
    });
  }

  void LongStandardise(RowGroup& rows) {
    const Value total = rows.Fold(SumCombiner(), kind_, [&](const Places& at) { return FirstOf(at); });
    const Values means = rows.Spread(space_.Mean(m_, total));
    const auto centred = [&](const Places& at) {
      Values values = AgainOf(at);
      for (size_t r = 0; r < at.size(); ++r) values[r] = m_.Subtract(values[r], means[r]);
      return values;
    };
    const Value squares = rows.Fold(SumCombiner(), kind_, [&](const Places& at) {
      Values values = centred(at);
      for (Value& value : values) value = m_.Multiply(value, value);
      return values;
    });
    const Values factors = rows.Spread(Factor(squares));
    rows.Each([&](const Places& at) {
      Values values = centred(at);
      for (size_t r = 0; r < at.size(); ++r) values[r] = m_.Multiply(values[r], factors[r]);
      StoreScaled(at, values);
    });
  }

  /// Sums are taken of one group of rows while squares of distances to the mean are summed of another one, and a third
  /// one is scaled. Carried are the mean of what comes, the mean and the factor of what has been.
  RowPasses StandardisePasses() {
    const double share = 1.0 / static_cast<double>(space_.elements());
    RowPasses passes;
    passes.start = [this, share](RowGroup& first) -> Values {
      const Value total = first.Fold(SumCombiner(), kind_, [&](const Places& at) { return FirstOf(at); });
      const Value mean = m_.Multiply(total, m_.Like(share, total));
      return {mean, mean, mean};
    };
    passes.step = [this, share](RowGroup* before, RowGroup& now, RowGroup& next, const Values& carried) -> Values {
      const size_t count = now.count();
      const Values means = now.Spread(carried[0]);
      const Values old_means = now.Spread(carried[1]);
      const Values factors = now.Spread(carried[2]);
      const Value zero = NeutralOf(m_, SumCombiner(), kind_);
      const Values sums = now.Carry(Values(2 * count, zero), [&](const I64& first, const Values& values) {
        if (before != nullptr) Scale(before->At(first), old_means, factors);
        const Values data = AgainOf(now.At(first));
        const Values coming = FirstOf(next.At(first));
        FetchBehind(next.At(first), keeps_ ? scratch_ : output_.buffer);
        Values results;
        for (size_t r = 0; r < count; ++r) {
          results.push_back(m_.Add(values[r], Existing(coming[r], SumCombiner())));
        }
        for (size_t r = 0; r < count; ++r) {
          const Value distance = Existing(m_.Subtract(data[r], means[r]), SumCombiner());
          results.push_back(m_.FusedMultiplyAdd(distance, distance, values[count + r]));
        }
        return results;
      });
      const auto middle = sums.begin() + static_cast<int64_t>(count);
      const Value total = next.Pack(SumCombiner(), {sums.begin(), middle});
      const Value squares = now.Pack(SumCombiner(), {middle, sums.end()});
      return {m_.Multiply(total, m_.Like(share, total)), carried[0], Factor(squares)};
    };
    passes.finish = [this](RowGroup& last, const Values& carried) {
      const Values means = last.Spread(carried[1]);
      const Values factors = last.Spread(carried[2]);
      last.Each([&](const Places& at) { Scale(at, means, factors); });
    };
    return passes;
  }

  void Scale(const Places& at, const Values& means, const Values& factors) {
    Values values = AgainOf(at);
    for (size_t r = 0; r < at.size(); ++r) values[r] = m_.Multiply(m_.Subtract(values[r], means[r]), factors[r]);
    StoreScaled(at, values);
  }

  void Softmax(ReductionUnit& unit) {
    const bool is_log = name_ == "nn.log_softmax";
    const Value largest = unit.Fold(MaxCombiner(), kind_, [&](const Indices& at) { return First(at); });
    const Value sum = unit.Fold(SumCombiner(), kind_, [&](const Indices& at) {
      const Value value = m_.ExpBelow(Again(at), largest);
      if (!is_log) e_.Store(scratch_, DataIndices(at), value);
      return value;
    });
    if (is_log) {
      const Value shift = m_.Add(largest, m_.Log(sum));
      unit.Each([&](const Indices& at) { Store(at, m_.Subtract(Again(at), shift)); });
      return;
    }
    const Value factor = m_.Divide(m_.Like(1, sum), sum);
    unit.Each([&](const Indices& at) { Store(at, m_.Multiply(e_.Load(scratch_, DataIndices(at)), factor)); });
  }

  /// Mean 0 and variance 1, then scale and shift.
  void Standardise(ReductionUnit& unit) {
    const Value total = unit.Fold(SumCombiner(), kind_, [&](const Indices& at) { return First(at); });
    const Value mean = space_.Mean(m_, total);
    const Value squares = unit.Fold(SumCombiner(), kind_, [&](const Indices& at) {
      const Value centred = m_.Subtract(Again(at), mean);
      return m_.Multiply(centred, centred);
    });
    const Value factor = Factor(squares);
    unit.Each([&](const Indices& at) { StoreScaled({at}, {m_.Multiply(m_.Subtract(Again(at), mean), factor)}); });
  }

  /// 1 / standard deviation.
  Value Factor(const Value& squares) {
    const Value epsilon = m_.Like(call_.attrs().Double("epsilon"), squares);
    bool is_known = true;
    for (size_t i = 0; i < space_.shape.size(); ++i) {
      is_known = is_known && !(space_.reduced[i] && IsSymbolic(space_.shape[i]));
    }
    const Value variance =
        is_known ? m_.FusedMultiplyAdd(squares, m_.Like(1.0 / static_cast<double>(space_.elements()), squares), epsilon)
                 : m_.Add(space_.Mean(m_, squares), epsilon);
    return m_.Divide(m_.Like(1, variance), m_.Sqrt(variance));
  }

  /// Stores elements of one channel, or a single one. Scale and shift are read before anything is written: for all that
  /// LLVM knows, it could be the same memory.
  void StoreScaled(const Places& at, Values values) {
    const size_t axis = name_ == "nn.instance_norm" ? 1 : AxisAttr(call_, "axis", shape_.size());
    const bool is_common = space_.reduced[axis] && group_axis_ < 0;
    const auto read = [&](size_t argument, const char* attribute) {
      Values numbers;
      for (size_t r = 0; r < at.size() && call_.attrs().Bool(attribute); ++r) {
        const bool is_known = r > 0 && is_common;
        numbers.push_back(is_known ? numbers[0]
                                   : state_.expressions.At(call_.args()[argument], {DataIndices(at[r])[axis]}));
      }
      return numbers;
    };
    const Values scales = read(1, "scale");
    const Values shifts = read(2, "center");
    for (size_t r = 0; r < scales.size(); ++r) values[r] = m_.Multiply(values[r], scales[r]);
    for (size_t r = 0; r < shifts.size(); ++r) values[r] = m_.Add(values[r], shifts[r]);
    for (size_t r = 0; r < at.size(); ++r) Store(at[r], values[r]);
  }

  /// x / sqrt(max(sum of squares, epsilon)).
  void Norm2(ReductionUnit& unit) {
    const Value squares = unit.Fold(SumCombiner(), kind_, [&](const Indices& at) {
      const Value value = First(at);
      return m_.Multiply(value, value);
    });
    const Value epsilon = m_.Like(call_.attrs().Double("eps"), squares);
    const Value root = m_.Sqrt(m_.Larger(squares, epsilon));
    unit.Each([&](const Indices& at) { Store(at, m_.Divide(Again(at), root)); });
  }

  PartitionState& state_;
  Emitter& e_;
  VectorMath& m_;
  const CallNode& call_;
  const StageOutput& output_;
  const std::string& name_;
  Shape shape_;
  ReductionSpace space_;
  int group_axis_ = -1;
  ElementKind kind_ = ElementKind::kFloat;
  Buffer scratch_;
  bool keeps_ = false;
};

}  // namespace

void EmitNormalisation(PartitionState& state, const CallNode& call, const StageOutput& output) {
  Normalisation(state, call, output).Run();
}

}  // namespace collage::native
