// pool_indices.cc: nn.max_pool*_indices: where in the data the largest element of a window is, looked for tap by tap.
#include <optional>

#include "backends/native/compiler/inline_ops/inline_ops.h"
#include "backends/native/compiler/reduction/pool_windows.h"

namespace collage::native {
namespace {

class PoolIndices {
 public:
  PoolIndices(Expressions& x, const CallNode& call, const Indices& indices)
      : x_(x),
        e_(x.emitter()),
        m_(x.math()),
        call_(call),
        indices_(indices),
        data_(ShapeOf(call.args()[0])),
        rank_(data_.size() - 2),
        geometry_(call, static_cast<int>(rank_)) {}

  Value Run() {
    // Counted from the last spatial dimension on, or from the first.
    const bool column_major = call_.attrs().Bool("column_major");
    counted_.assign(rank_, 1);
    for (size_t i = 1; i < rank_; ++i) {
      const size_t d = column_major ? i : rank_ - 1 - i;
      const size_t inner = column_major ? d - 1 : d + 1;
      counted_[d] = counted_[inner] * data_[inner + 2];
    }
    int64_t pixels = 1;
    for (size_t d = 0; d < rank_; ++d) pixels *= data_[d + 2];
    const Index plane = e_.Scaled(e_.Sum(e_.Scaled(indices_[0], data_[1]), indices_[1]), pixels);
    Walk({indices_[0], indices_[1]}, plane, std::nullopt);
    return where_;
  }

 private:
  /// Taps at `at`, of which those dimensions are still missing that `at` has not; `flat`: the index so far.
  void Walk(const Indices& at, const Index& flat, const std::optional<Value>& inside) {
    const size_t d = at.size() - 2;
    if (d == rank_) return Look(at, flat, inside);
    const int64_t pad = geometry_.pad_before[d];
    for (int64_t tap = 0; tap < geometry_.size[d]; ++tap) {
      const Index place =
          e_.Shifted(e_.Scaled(indices_[d + 2], geometry_.stride[d]), tap * geometry_.dilation[d] - pad);
      const Value from = e_.IndexCompare("sge", place, 0);
      Value both = m_.And(from, e_.IndexCompare("slt", place, data_[d + 2]));
      if (inside) both = m_.And(*inside, both);
      Indices next = at;
      next.push_back(place);
      Walk(next, e_.Sum(flat, e_.Scaled(place, counted_[d])), both);
    }
  }

  /// The first element that there is, then whatever is greater.
  void Look(const Indices& at, const Index& flat, const std::optional<Value>& inside) {
    Value value;
    e_.WithMask(AsMask(*inside), [&] { value = x_.At(call_.args()[0], at); });
    const Value here = AsValue(e_.LanesOf(flat));
    if (!best_) {
      best_ = value;
      where_ = m_.Select(*inside, here, m_.Integer(-1));
      return;
    }
    const Value is_first = m_.Compare("olt", "slt", where_, m_.Integer(0));
    const Value is_better = m_.And(*inside, m_.Or(is_first, m_.Compare("ogt", "sgt", value, *best_)));
    best_ = m_.Select(is_better, value, *best_);
    where_ = m_.Select(is_better, here, where_);
  }

  Expressions& x_;
  Emitter& e_;
  VectorMath& m_;
  const CallNode& call_;
  const Indices& indices_;
  Shape data_;
  size_t rank_;
  PoolGeometry geometry_;
  std::vector<int64_t> counted_;  ///< steps of the index that is the result, by spatial dimension
  std::optional<Value> best_;
  Value where_;
};

}  // namespace

Value inline_ops::MaxPoolIndices(X& x, C call, I indices) { return PoolIndices(x, call, indices).Run(); }

}  // namespace collage::native
