// split_mix.h: the splitmix64 generator of pseudo-random numbers (Steele, Lea, Flood, "Fast splittable pseudorandom
// number generators", OOPSLA 2014): the same numbers on every machine.
#pragma once

#include <cstdint>

namespace collage {

class SplitMix {
 public:
  explicit SplitMix(uint64_t seed = 0) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Leaves out the next `count` numbers.
  void Skip(uint64_t count) { state_ += count * 0x9e3779b97f4a7c15u; }
  /// Uniform in [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace collage
