// regions.cc: vision.roi_align: an element is the mean, or the largest, of samples between the pixels of a region whose
// corners are data. How many samples is known when the kernel is compiled.
#include "backends/native/compiler/regions.h"

#include <optional>

namespace collage::native {
namespace {

class RegionSampler {
 public:
  RegionSampler(Expressions& x, const CallNode& call, const Indices& indices)
      : x_(x), e_(x.emitter()), m_(x.math()), call_(call), indices_(indices), data_(ShapeOf(call.args()[0])) {
    // What lanes are not read says nothing of their places, so only where all are read is one place that of all.
    const bool is_one = indices[0].is_scalar() && indices[2].is_scalar() && indices[3].is_scalar();
    is_scalar_ = is_one && !e_.is_guarded();
  }

  Value Run() {
    const std::vector<int64_t> pooled = call_.attrs().Ints("pooled_size");
    const int64_t samples = call_.attrs().Int("sample_ratio");
    const Side rows = SideOf(2, pooled[0]), columns = SideOf(1, pooled.back());
    const Index batch = AsIndex(Corner(0));
    const bool is_max = call_.attrs().String("mode") == "max";
    std::optional<Value> result;
    for (int64_t i = 0; i < samples * samples; ++i) {
      const auto share = [&](int64_t which) {
        return (static_cast<double>(which) + 0.5) / static_cast<double>(samples);
      };
      const Value row = At(rows, indices_[2], share(i / samples));
      const Value column = At(columns, indices_[3], share(i % samples));
      const Value sample = Sample(batch, row, column, is_max);
      result = !result ? sample : is_max ? m_.Larger(*result, sample) : m_.Add(*result, sample);
    }
    if (!is_max) result = m_.Divide(*result, Double(static_cast<double>(samples * samples)));
    return m_.Convert(*result, TensorTypeOf(call_.args()[0]).dtype());
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

  Value Double(double value) { return m_.Number(value, ElementKind::kDouble); }

  /// Number `k` of the region.
  Value Corner(int64_t k) { return m_.Convert(x_.At(call_.args()[1], {indices_[0], {e_.Int(k), 0}}), kFloat64); }

  /// `k`: where the dimension's low corner is among the region's numbers; the high one is two behind it.
  Side SideOf(int64_t k, int64_t parts) {
    const bool aligned = call_.attrs().Bool("aligned");
    const Value scale = Double(call_.attrs().Double("spatial_scale"));
    const auto pixel = [&](int64_t at) {
      const Value scaled = m_.Multiply(Corner(at), scale);
      return aligned ? m_.Subtract(scaled, Double(0.5)) : scaled;
    };
    const Value begin = pixel(k);
    Value length = m_.Subtract(pixel(k + 2), begin);
    if (!aligned) length = m_.Larger(length, Double(1));
    return {begin, m_.DivideExactly(length, Double(static_cast<double>(parts)))};
  }

  Value At(const Side& side, const Index& part, double share) {
    const Value number = m_.Convert({e_.LanesOf(part), ElementKind::kInt}, kFloat64);
    return m_.Add(side.begin, m_.Multiply(m_.Add(number, Double(share)), side.part));
  }

  Index AsIndex(const Value& whole) {
    const Value number = m_.Convert(whole, kInt64);
    if (!is_scalar_) return e_.FromLanes(number.name);
    return {e_.Def(fmt::format("vector.extract {}[0] : i64 from {}", number.name, e_.TypeOf(ElementKind::kInt))), 0};
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

  Value Sample(const Index& batch, const Value& row, const Value& column, bool is_max) {
    const Neighbours r = Around(row, data_[2]), c = Around(column, data_[3]);
    std::optional<Value> result;
    for (int corner = 0; corner < 4; ++corner) {
      const bool is_below = corner >= 2, is_right = corner % 2 == 1;
      const Value vertical = is_below ? r.share : m_.Subtract(Double(1), r.share);
      const Value horizontal = is_right ? c.share : m_.Subtract(Double(1), c.share);
      const Indices at{batch, indices_[1], is_below ? r.second : r.first, is_right ? c.second : c.first};
      const Value value = m_.Convert(x_.At(call_.args()[0], at), kFloat64);
      const Value weighted = m_.Multiply(m_.Multiply(vertical, horizontal), value);
      result = !result ? weighted : is_max ? m_.Larger(*result, weighted) : m_.Add(*result, weighted);
    }
    return m_.Select(m_.And(r.inside, c.inside), *result, Double(0));
  }

  Expressions& x_;
  Emitter& e_;
  VectorMath& m_;
  const CallNode& call_;
  const Indices& indices_;
  Shape data_;
  bool is_scalar_ = false;  ///< whether places are the same in all lanes
};

}  // namespace

void AddRegionRows(InPlaceTable& rows) {
  rows["vision.roi_align"] = [](Expressions& x, const CallNode& call, const Indices& indices) {
    return RegionSampler(x, call, indices).Run();
  };
}

}  // namespace collage::native
