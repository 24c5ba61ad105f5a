// random_source.h: random numbers that are the same on every platform.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace collage {

class RandomSource {
 public:
  explicit RandomSource(uint64_t seed) : engine_(seed * 0x9e3779b97f4a7c15u + 1) {}

  /// Uniform in [0, count).
  int Below(int count) { return static_cast<int>(engine_() % static_cast<uint64_t>(count)); }
  bool OneIn(int count) { return Below(count) == 0; }
  template <typename T>
  const T& Pick(const std::vector<T>& items) {
    return items[static_cast<size_t>(Below(static_cast<int>(items.size())))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace collage
