// normalisation.cc: elements divided by statistics of the group that they are in: softmax and the norms.
#include <cmath>

#include "backends/native/compiler/reduction_loops.h"
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
    // What is computed once and read again lies in the result's place where that has the data's type.
    const bool in_place = output_.buffer.dtype == (kind_ == ElementKind::kDouble ? kFloat64 : kFloat32);
    scratch_ = in_place ? output_.buffer : Scratch();
    keeps_ = state_.expressions.FindBuffer(call_.args()[0]) == nullptr;
    const double flops = static_cast<double>(NumElements(shape_)) * 10;
    const bool is_softmax = name_ == "nn.softmax" || name_ == "nn.log_softmax";
    if (FitsRegisters(e_, space_) && name_ != "nn.l2_normalize") {
      return ForEachRows(state_, space_, flops, [&](std::vector<ReductionUnit>& rows) {
        is_softmax ? ShortSoftmax(rows) : ShortStandardise(rows);
      });
    }
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
    Buffer buffer = state_.AddWorkspace(shape_, Layout::kPlain, kind_ == ElementKind::kDouble ? kFloat64 : kFloat32);
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

  using Values = std::vector<Value>;

  // Rows that registers hold are read once and written once. Each step is made for all `rows` before the next one.

  std::vector<Values> ReadRows(std::vector<ReductionUnit>& rows) {
    std::vector<Values> values;
    for (ReductionUnit& row : rows) {
      values.push_back(
          row.Values([&](const Indices& at) { return state_.expressions.At(call_.args()[0], DataIndices(at)); }));
    }
    return values;
  }
  static Values FoldRows(std::vector<ReductionUnit>& rows, const Combiner& combiner,
                         const std::vector<Values>& values) {
    Values folded;
    for (size_t r = 0; r < rows.size(); ++r) folded.push_back(rows[r].FoldValues(combiner, values[r]));
    return folded;
  }

  void ShortSoftmax(std::vector<ReductionUnit>& rows) {
    std::vector<Values> values = ReadRows(rows);
    const Values largest = FoldRows(rows, MaxCombiner(), values);
    std::vector<Values> powers(rows.size());
    for (size_t r = 0; r < rows.size(); ++r) {
      for (Value& value : values[r]) {
        value = m_.Subtract(value, largest[r]);
        powers[r].push_back(m_.Exp(value));
      }
    }
    const Values sums = FoldRows(rows, SumCombiner(), powers);
    const bool is_log = name_ == "nn.log_softmax";
    Values last;
    for (const Value& sum : sums) last.push_back(is_log ? m_.Log(sum) : m_.Divide(m_.Like(1, sum), sum));
    for (size_t r = 0; r < rows.size(); ++r) {
      rows[r].EachVector([&](const Indices& at, size_t i) {
        Store(at, is_log ? m_.Subtract(values[r][i], last[r]) : m_.Multiply(powers[r][i], last[r]));
      });
    }
  }

  void ShortStandardise(std::vector<ReductionUnit>& rows) {
    const double share = 1.0 / static_cast<double>(space_.elements());
    std::vector<Values> values = ReadRows(rows);
    const Values totals = FoldRows(rows, SumCombiner(), values);
    std::vector<Values> squares(rows.size());
    for (size_t r = 0; r < rows.size(); ++r) {
      const Value mean = m_.Multiply(totals[r], m_.Like(share, totals[r]));
      for (Value& value : values[r]) {
        value = m_.Subtract(value, mean);
        squares[r].push_back(m_.Multiply(value, value));
      }
    }
    Values factors = FoldRows(rows, SumCombiner(), squares);
    for (Value& factor : factors) factor = Factor(factor, share);
    for (size_t r = 0; r < rows.size(); ++r) {
      rows[r].EachVector([&](const Indices& at, size_t i) { StoreScaled(at, m_.Multiply(values[r][i], factors[r])); });
    }
  }

  void Softmax(ReductionUnit& unit) {
    const bool is_log = name_ == "nn.log_softmax";
    const Value largest = unit.Fold(MaxCombiner(), kind_, [&](const Indices& at) { return First(at); });
    const Value sum = unit.Fold(SumCombiner(), kind_, [&](const Indices& at) {
      const Value value = m_.Exp(m_.Subtract(Again(at), largest));
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
    const double share = 1.0 / static_cast<double>(space_.elements());
    const Value total = unit.Fold(SumCombiner(), kind_, [&](const Indices& at) { return First(at); });
    const Value mean = m_.Multiply(total, m_.Like(share, total));
    const Value squares = unit.Fold(SumCombiner(), kind_, [&](const Indices& at) {
      const Value centred = m_.Subtract(Again(at), mean);
      return m_.Multiply(centred, centred);
    });
    const Value factor = Factor(squares, share);
    unit.Each([&](const Indices& at) { StoreScaled(at, m_.Multiply(m_.Subtract(Again(at), mean), factor)); });
  }

  /// 1 / standard deviation.
  Value Factor(const Value& squares, double share) {
    const Value variance =
        m_.FusedMultiplyAdd(squares, m_.Like(share, squares), m_.Like(call_.attrs().Double("epsilon"), squares));
    return m_.Divide(m_.Like(1, variance), m_.Sqrt(variance));
  }

  void StoreScaled(const Indices& at, Value value) {
    const size_t axis = name_ == "nn.instance_norm" ? 1 : AxisAttr(call_, "axis", shape_.size());
    const Indices channel{DataIndices(at)[axis]};
    if (call_.attrs().Bool("scale")) value = m_.Multiply(value, state_.expressions.At(call_.args()[1], channel));
    if (call_.attrs().Bool("center")) value = m_.Add(value, state_.expressions.At(call_.args()[2], channel));
    Store(at, value);
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
