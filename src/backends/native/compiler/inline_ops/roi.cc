// roi.cc: vision.roi_align: an element is the mean, or the largest, of samples between the pixels of a region whose
// corners are data; and vision.roi_pool: the largest of the pixels of a part of one. How many there are may be data,
// too: loops then go as far as the lane with the most of them wants, and the others leave what they do not have out.
#include <cmath>
#include <limits>
#include <optional>

#include "backends/native/compiler/inline_ops/inline_ops.h"

namespace collage::native {
namespace {

/// The common part of both operators: an element's region, and loops whose counts are data.
class RegionRow {
 public:
  RegionRow(Expressions& x, const CallNode& call, const Indices& indices)
      : x_(x), e_(x.emitter()), m_(x.math()), call_(call), indices_(indices), data_(ShapeOf(call.args()[0])) {
    // The places of lanes that are not read are unknown, so one place is that of all lanes only if all are read.
    const bool is_one = indices[0].is_scalar() && indices[2].is_scalar() && indices[3].is_scalar();
    is_scalar_ = is_one && !e_.is_guarded();
  }

 protected:
  Value Double(double value) { return m_.Number(value, ElementKind::kDouble); }
  /// `index` in double.
  Value NumberOf(const Index& index) { return m_.Convert(AsValue(e_.LanesOf(index)), kFloat64); }

  /// Number `k` of the region.
  Value Corner(int64_t k) { return m_.Convert(x_.At(call_.args()[1], {indices_[0], {e_.Int(k), 0}}), kFloat64); }

  Value Scaled(int64_t k) { return m_.Multiply(Corner(k), Double(call_.attrs().Double("spatial_scale"))); }

  Index AsIndex(const Value& whole) {
    const Value number = m_.Convert(whole, kInt64);
    return is_scalar_ ? Index{e_.FirstLane(number), 0} : e_.FromLanes(AsLanes(number));
  }

  DataType dtype() const { return TensorTypeOf(call_.args()[0]).dtype(); }

  /// Carries `start` through a loop over the integers [0, `count`). `step` is told which lanes have not come to the end
  /// of their own count, unless all have the same.
  using StepFn = std::function<Value(const Index& number, const std::optional<Value>& has, const Value& carried)>;
  Value Loop(const Value& count, const Value& start, const StepFn& step) {
    Value own = count;
    if (!e_.mask().is_none()) own = m_.Select(AsValue(e_.mask()), count, m_.Integer(0));
    const I64 most = is_scalar_ ? e_.FirstLane(own) : e_.LargestLane(own);
    const auto body = [&](const I64& number, const std::vector<Value>& carried) {
      Value next;
      x_.Inside([&] {
        const Index at{number, 0};
        std::optional<Value> has;
        if (!is_scalar_) has = m_.Compare("olt", "slt", AsValue(e_.LanesOf(at)), own);
        next = step(at, has, carried[0]);
        if (has) next = m_.Select(*has, next, carried[0]);
      });
      return std::vector<Value>{next};
    };
    return e_.ForValues(e_.Int(0), most, {start}, body)[0];
  }

  Expressions& x_;
  Emitter& e_;
  VectorMath& m_;
  const CallNode& call_;
  const Indices& indices_;
  Shape data_;
  bool is_scalar_ = false;  ///< whether places are the same in all lanes
};

class RegionSampler : public RegionRow {
 public:
  using RegionRow::RegionRow;

  Value Run() {
    const std::vector<int64_t> pooled = call_.attrs().Ints("pooled_size");
    const int64_t samples = call_.attrs().Int("sample_ratio");
    const Side rows = SideOf(2, pooled[0]), columns = SideOf(1, pooled.back());
    const Index batch = AsIndex(Corner(0));
    constexpr int64_t kMostWrittenOut = 6;
    const bool is_written_out = samples > 0 && samples <= kMostWrittenOut;
    return m_.Convert(is_written_out ? Samples(batch, rows, columns, samples) : ManySamples(batch, rows, columns),
                      dtype());
  }

 private:
  /// A dimension of the region: where it begins, and the size of a part of it.
  struct Side {
    Value begin;
    Value part;
  };
  /// The pixels on both sides of a place, and what the second one counts.
  struct Neighbours {
    Index first, second;
    Value share;
    Value inside;  ///< whether the place is no more than a pixel outside
  };

  bool is_max() const { return call_.attrs().String("mode") == "max"; }

  Value Samples(const Index& batch, const Side& rows, const Side& columns, int64_t samples) {
    std::optional<Value> result;
    for (int64_t i = 0; i < samples * samples; ++i) {
      const auto share = [&](int64_t which) {
        return Double((static_cast<double>(which) + 0.5) / static_cast<double>(samples));
      };
      const Value row = At(rows, indices_[2], share(i / samples));
      const Value column = At(columns, indices_[3], share(i % samples));
      const Value sample = Sample(batch, row, column);
      result = !result ? sample : is_max() ? m_.Larger(*result, sample) : m_.Add(*result, sample);
    }
    return is_max() ? *result : m_.Divide(*result, Double(static_cast<double>(samples * samples)));
  }

  /// As many samples of a part as it has pixels, if the call does not say how many.
  Value ManySamples(const Index& batch, const Side& rows, const Side& columns) {
    const int64_t told = call_.attrs().Int("sample_ratio");
    const auto count = [&](const Side& side) {
      return told > 0 ? m_.Integer(told) : m_.Convert(m_.Unary("math.ceil", side.part), kInt64);
    };
    const Value in_rows = count(rows), in_columns = count(columns);
    const auto share = [&](const Index& which, const Value& of) {
      return m_.DivideExactly(m_.Add(NumberOf(which), Double(0.5)), m_.Convert(of, kFloat64));
    };
    const Value start = Double(is_max() ? -std::numeric_limits<double>::infinity() : 0);
    const Value all = Loop(in_rows, start, [&](const Index& i, const std::optional<Value>&, const Value& above) {
      const Value row = At(rows, indices_[2], share(i, in_rows));
      return Loop(in_columns, above, [&](const Index& j, const std::optional<Value>&, const Value& before) {
        const Value sample = Sample(batch, row, At(columns, indices_[3], share(j, in_columns)));
        return is_max() ? m_.Larger(sample, before) : m_.Add(before, sample);
      });
    });
    const Value one = m_.Integer(1);
    const Value has = m_.And(m_.Compare("oge", "sge", in_rows, one), m_.Compare("oge", "sge", in_columns, one));
    if (is_max()) return m_.Select(has, all, Double(0));
    const Value samples = m_.Select(has, m_.Multiply(in_rows, in_columns), one);
    return m_.Divide(all, m_.Convert(samples, kFloat64));
  }

  /// `k`: where the dimension's low corner is among the region's numbers; the high one is two behind it.
  Side SideOf(int64_t k, int64_t parts) {
    const bool aligned = call_.attrs().Bool("aligned");
    const auto pixel = [&](int64_t at) { return aligned ? m_.Subtract(Scaled(at), Double(0.5)) : Scaled(at); };
    const Value begin = pixel(k);
    Value length = m_.Subtract(pixel(k + 2), begin);
    if (!aligned) length = m_.Larger(length, Double(1));
    return {begin, m_.DivideExactly(length, Double(static_cast<double>(parts)))};
  }

  Value At(const Side& side, const Index& part, const Value& share) {
    return m_.Add(side.begin, m_.Multiply(m_.Add(NumberOf(part), share), side.part));
  }

  Neighbours Around(const Value& place, int64_t size) {
    const Value inside = m_.And(m_.Compare("oge", "sge", place, Double(-1)),
                                m_.Compare("ole", "sle", place, Double(static_cast<double>(size))));
    const Value last = Double(static_cast<double>(size - 1));
    const Value within = m_.Larger(m_.Select(inside, place, Double(0)), Double(0));
    const Value first = m_.Smaller(m_.Unary("math.floor", within), last);
    const Value share = m_.Select(m_.Compare("oge", "sge", first, last), Double(0), m_.Subtract(within, first));
    const Index at = AsIndex(first);
    return {at, e_.IndexOp("minsi", e_.Shifted(at, 1), size - 1), share, inside};
  }

  Value Sample(const Index& batch, const Value& row, const Value& column) {
    const Neighbours r = Around(row, data_[2]), c = Around(column, data_[3]);
    std::optional<Value> result;
    for (int corner = 0; corner < 4; ++corner) {
      const bool is_below = corner >= 2, is_right = corner % 2 == 1;
      const Value vertical = is_below ? r.share : m_.Subtract(Double(1), r.share);
      const Value horizontal = is_right ? c.share : m_.Subtract(Double(1), c.share);
      const Indices at{batch, indices_[1], is_below ? r.second : r.first, is_right ? c.second : c.first};
      const Value value = m_.Convert(x_.At(call_.args()[0], at), kFloat64);
      const Value weighted = m_.Multiply(m_.Multiply(vertical, horizontal), value);
      result = !result ? weighted : is_max() ? m_.Larger(*result, weighted) : m_.Add(*result, weighted);
    }
    return m_.Select(m_.And(r.inside, c.inside), *result, Double(0));
  }
};

/// Parts begin and end at whole pixels, and neighbouring ones may share some.
class RegionPool : public RegionRow {
 public:
  using RegionRow::RegionRow;

  Value Run() {
    const std::vector<int64_t> pooled = call_.attrs().Ints("pooled_size");
    const Part rows = PartOf(2, indices_[2], pooled[0], data_[2]);
    const Part columns = PartOf(1, indices_[3], pooled.back(), data_[3]);
    const Index batch = AsIndex(Corner(0));
    const ElementKind kind = KindOf(dtype());
    const Value least = kind == ElementKind::kInt ? m_.Integer(std::numeric_limits<int64_t>::min())
                                                  : m_.Number(-std::numeric_limits<double>::infinity(), kind);
    const Value largest =
        Loop(rows.size, least, [&](const Index& i, const std::optional<Value>& has_row, const Value& above) {
          return Loop(columns.size, above, [&](const Index& j, const std::optional<Value>& has, const Value& before) {
            const Indices at{batch, indices_[1], e_.Sum(rows.begin, i), e_.Sum(columns.begin, j)};
            Value pixel;
            if (has) {
              e_.WithMask(AsMask(m_.And(*has_row, *has)), [&] { pixel = x_.At(call_.args()[0], at); });
            } else {
              pixel = x_.At(call_.args()[0], at);
            }
            return m_.Larger(pixel, before);
          });
        });
    const Value none = m_.Integer(0);
    const Value has = m_.And(m_.Compare("ogt", "sgt", rows.size, none), m_.Compare("ogt", "sgt", columns.size, none));
    return m_.Select(has, largest, m_.Like(0, largest));
  }

 private:
  struct Part {
    Index begin;
    Value size;  ///< in pixels; none where it is not above 0
  };

  /// Part `at` of `parts` equal ones of the region, as far as it is within [0, size).
  Part PartOf(int64_t k, const Index& at, int64_t parts, int64_t size) {
    const auto pixel = [&](int64_t of) { return m_.Convert(m_.Unary("math.round", Scaled(of)), kInt64); };
    const Value first = pixel(k);
    const Value length = m_.Add(m_.Subtract(pixel(k + 2), first), m_.Integer(1));
    const Value step =
        m_.DivideExactly(m_.Convert(m_.Larger(length, m_.Integer(1)), kFloat64), Double(static_cast<double>(parts)));
    const auto within = [&](const char* rounding, const Index& number) {
      const Value whole = m_.Unary(rounding, m_.Multiply(NumberOf(number), step));
      const Value place = m_.Add(m_.Convert(whole, kInt64), first);
      return m_.Smaller(m_.Larger(place, m_.Integer(0)), m_.Integer(size));
    };
    const Value begin = within("math.floor", at);
    return {AsIndex(begin), m_.Subtract(within("math.ceil", e_.Shifted(at, 1)), begin)};
  }
};

}  // namespace

Value inline_ops::RoiAlign(X& x, C call, I indices) { return RegionSampler(x, call, indices).Run(); }

Value inline_ops::RoiPool(X& x, C call, I indices) { return RegionPool(x, call, indices).Run(); }

}  // namespace collage::native
