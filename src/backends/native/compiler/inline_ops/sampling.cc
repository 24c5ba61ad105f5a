// sampling.cc: image.grid_sample: an element is a sum over the taps around a place that is data. If lanes run along
// channels, all have the same place, and taps are vector loads; else they are gathers.
#include <algorithm>

#include "backends/native/compiler/inline_ops/inline_ops.h"

namespace collage::native {
namespace {

/// One dimension of the place: where its taps lie, and how much each counts.
struct Tap {
  Index at;
  Value weight;                 ///< double
  std::optional<Value> inside;  ///< where it counts at all, if not everywhere
};

class GridSampler {
 public:
  GridSampler(Expressions& x, const CallNode& call, const Indices& indices)
      : x_(x),
        e_(x.emitter()),
        m_(x.math()),
        call_(call),
        indices_(indices),
        data_(ShapeOf(call.args()[0])),
        method_(call.attrs().String("method")),
        padding_(call.attrs().String("padding_mode")),
        aligned_(call.attrs().Bool("align_corners")) {}

  Value Run() {
    std::vector<std::vector<Tap>> taps;
    for (size_t d = 0; d + 2 < data_.size(); ++d) taps.push_back(TapsOf(d));
    return Sum(taps, 0, {indices_[0], indices_[1]}, m_.Number(1, ElementKind::kDouble), std::nullopt);
  }

 private:
  int64_t size(size_t d) const { return data_[d + 2]; }
  Value Double(double value) { return m_.Number(value, ElementKind::kDouble); }

  /// The pixel that the grid names in dimension `d`, in double as ties between neighbours must fall the same way.
  Value Pixel(size_t d) {
    Indices at = indices_;
    at[1] = {e_.Int(static_cast<int64_t>(data_.size() - 3 - d)), 0};
    // The first lane says nothing about the others where it may not be read.
    is_scalar_ = !e_.is_guarded() && std::ranges::all_of(at, [](const Index& index) { return index.is_scalar(); });
    const auto n = static_cast<double>(size(d));
    const Value from_zero = m_.Add(m_.Convert(x_.At(call_.args()[1], at), kFloat64), Double(1));
    const Value pixel = aligned_ ? m_.Multiply(m_.Multiply(from_zero, Double(0.5)), Double(n - 1))
                                 : m_.Multiply(m_.Subtract(m_.Multiply(from_zero, Double(n)), Double(1)), Double(0.5));
    // Beyond this all places read the same, but for reflections: there numbers must not overflow.
    constexpr double kFar = 1 << 28;
    const bool reflects = padding_ == "reflection";
    const Value limited = m_.Limit(pixel, reflects ? -kFar : -8, reflects ? kFar : n + 8);
    return m_.Select(m_.Compare("uno", "eq", pixel, pixel), Double(-1), limited);
  }

  Index AsIndex(const Value& whole) {
    const std::string narrow = fmt::format("vector<{}xi32>", e_.lanes());
    const std::string wide = e_.TypeOf(ElementKind::kInt);
    const std::string cut =
        e_.Def(fmt::format("arith.fptosi {} : {} to {}", whole.name, e_.TypeOf(whole.kind), narrow));
    const Lanes number{e_.Def(fmt::format("arith.extsi {} : {} to {}", cut, narrow, wide))};
    if (!is_scalar_) return e_.FromLanes(number);
    return {e_.FirstLane(AsValue(number)), 0};
  }

  std::vector<Tap> TapsOf(size_t d) {
    const Value pixel = Pixel(d);
    if (method_ == "nearest") return {Padded(AsIndex(m_.Unary("math.roundeven", pixel)), Double(1), d)};
    const Value floor = m_.Unary("math.floor", pixel);
    const Value t = m_.Subtract(pixel, floor);
    const Value rest = m_.Subtract(Double(1), t);
    const Index first = AsIndex(floor);
    if (method_ == "bilinear") return {Padded(first, rest, d), Padded(e_.Shifted(first, 1), t, d)};
    return {Padded(e_.Shifted(first, -1), Far(m_.Add(t, Double(1))), d), Padded(first, Near(t), d),
            Padded(e_.Shifted(first, 1), Near(rest), d), Padded(e_.Shifted(first, 2), Far(m_.Add(rest, Double(1))), d)};
  }

  // Keys' cubic with a = -0.75, for distances up to 1 and from 1 to 2.
  static constexpr double kCubic = -0.75;
  Value Near(const Value& s) {
    const Value inner = m_.FusedMultiplyAdd(Double(kCubic + 2), s, Double(-(kCubic + 3)));
    return m_.FusedMultiplyAdd(inner, m_.Multiply(s, s), Double(1));
  }
  Value Far(const Value& s) {
    Value sum = m_.FusedMultiplyAdd(Double(kCubic), s, Double(-5 * kCubic));
    sum = m_.FusedMultiplyAdd(sum, s, Double(8 * kCubic));
    return m_.FusedMultiplyAdd(sum, s, Double(-4 * kCubic));
  }

  Tap Padded(const Index& at, const Value& weight, size_t d) {
    const int64_t n = size(d);
    if (padding_ == "zeros") {
      const Value from = e_.IndexCompare("sge", at, 0);
      return {at, weight, m_.And(from, e_.IndexCompare("slt", at, n))};
    }
    if (padding_ == "border") return {e_.IndexOp("minsi", e_.IndexOp("maxsi", at, 0), n - 1), weight, {}};
    if (n == 1) return {e_.Zero(), weight, {}};
    // Reflected at pixels: period 2 (n - 1); between pixels: 2 n, and what is below 0 is one less far away.
    const Index opposite = e_.IndexOp("xori", at, e_.IndexOp("shrsi", at, 63));  // -at - 1 of negative ones
    const Index distance = aligned_ ? e_.IndexOp("maxsi", at, e_.Scaled(at, -1)) : opposite;
    const int64_t period = aligned_ ? 2 * (n - 1) : 2 * n;
    const Index place = e_.IndexOp("remui", distance, period);
    const Index back = e_.IndexOp("subi", Index{e_.Int(aligned_ ? period : period - 1), 0}, place);
    return {e_.IndexOp("minsi", place, back), weight, {}};
  }

  /// The taps of dimensions from `d` on, at places of those before.
  Value Sum(const std::vector<std::vector<Tap>>& taps, size_t d, const Indices& at, const Value& factor,
            const std::optional<Value>& inside) {
    const DataType dtype = TensorTypeOf(call_.args()[0]).dtype();
    if (d == taps.size()) {
      const Value weight = m_.Convert(factor, KindOf(dtype) == ElementKind::kDouble ? kFloat64 : kFloat32);
      Value value;
      if (!inside) {
        value = x_.At(call_.args()[0], at);
      } else {
        e_.WithMask(AsMask(*inside), [&] { value = x_.At(call_.args()[0], at); });
        value = m_.Select(*inside, value, m_.Like(0, value));
      }
      return m_.Multiply(value, weight);
    }
    std::optional<Value> sum;
    for (const Tap& tap : taps[d]) {
      Indices next = at;
      next.push_back(tap.at);
      const std::optional<Value> both = inside && tap.inside ? m_.And(*inside, *tap.inside)
                                        : tap.inside         ? tap.inside
                                                             : inside;
      const Value value = Sum(taps, d + 1, next, m_.Multiply(factor, tap.weight), both);
      sum = sum ? m_.Add(*sum, value) : value;
    }
    return *sum;
  }

  Expressions& x_;
  Emitter& e_;
  VectorMath& m_;
  const CallNode& call_;
  const Indices& indices_;
  Shape data_;
  std::string method_, padding_;
  bool aligned_;
  bool is_scalar_ = false;  ///< whether the place is the same in all lanes
};

}  // namespace

Value inline_ops::GridSample(X& x, C call, I indices) { return GridSampler(x, call, indices).Run(); }

}  // namespace collage::native
