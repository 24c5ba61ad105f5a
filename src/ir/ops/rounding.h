// rounding.h: from numbers to whole ones, to the nearest or at random.
#pragma once

#include <cmath>
#include <cstdint>

#include "collage/ir/op.h"

namespace collage {

/// Rounds one number after the other: to the nearest, ties to even.
class Rounder {
 public:
  Rounder() = default;

  /// Rounds at random: 2.3 becomes 3 in three cases of ten, 2 in the others. What is whole stays as it is. The numbers
  /// of one `seed` are those of the splitmix64 generator.
  static Rounder AtRandom(uint64_t seed) {
    Rounder rounder;
    rounder.is_random_ = true;
    rounder.state_ = seed;
    return rounder;
  }

  bool is_random() const { return is_random_; }

  double operator()(double value) {
    if (!is_random_) return std::nearbyint(value);
    const double below = std::floor(value);
    return value - below > Uniform() ? below + 1 : below;  // of infinities and NaN the difference is NaN: as they are
  }

 private:
  /// In [0, 1).
  double Uniform() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

  bool is_random_ = false;
  uint64_t state_ = 0;
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
