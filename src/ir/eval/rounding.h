// rounding.h: from numbers to whole ones, to the nearest or at random.
#pragma once

#include <cstdint>

#include "collage/ir/op.h"
#include "runtime/split_mix.h"

namespace collage {

/// Rounds one number after the other: to the nearest, ties to even.
class Rounder {
 public:
  Rounder() = default;

  /// Rounds at random: 2.3 becomes 3 in three cases of ten, 2 in the others. Whole numbers stay unchanged. A `seed`
  /// gives the numbers of the splitmix64 generator.
  static Rounder AtRandom(uint64_t seed) {
    Rounder rounder;
    rounder.is_random_ = true;
    rounder.generator_ = SplitMix(seed);
    return rounder;
  }

  bool is_random() const { return is_random_; }

  /// As this will be when it has rounded `count` more numbers.
  Rounder After(int64_t count) const {
    Rounder rounder = *this;
    rounder.generator_.Skip(static_cast<uint64_t>(count));
    return rounder;
  }

  double operator()(double value);
  /// As calls for each of `count` values, in their order.
  void Round(double* values, int64_t count);

 private:
  bool is_random_ = false;
  SplitMix generator_;
};

/// As ReferenceFn, with the rounding at hand.
using RoundedReferenceFn =
    std::function<void(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs, Rounder round)>;

/// Makes `reference` the operator's reference evaluation and its random rounding.
inline void SetRoundedReference(OpDef& op, RoundedReferenceFn reference) {
  op.reference = [reference](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    reference(inputs, attrs, outputs, Rounder());
  };
  op.random_rounding = [reference](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs,
                                   uint64_t seed) { reference(inputs, attrs, outputs, Rounder::AtRandom(seed)); };
}

}  // namespace collage
