// random_source.h: random numbers that are the same on every platform.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace collage {

class RandomSource {
 public:
  explicit RandomSource(uint64_t seed) : engine_(seed * 0x9e3779b97f4a7c15u + 1) {}
  /// Takes its numbers from `choices`, a byte for each that is below 256 and four for others, so that a fuzzer that
  /// changes a byte changes a choice; behind them those of seed 0.
  explicit RandomSource(std::string choices) : RandomSource(uint64_t{0}) { choices_ = std::move(choices); }

  /// Uniform in [0, count).
  int Below(int count) { return static_cast<int>(Next(count > 256 ? 4 : 1) % static_cast<uint64_t>(count)); }
  bool OneIn(int count) { return Below(count) == 0; }
  template <typename T>
  const T& Pick(const std::vector<T>& items) {
    return items[static_cast<size_t>(Below(static_cast<int>(items.size())))];
  }

 private:
  uint64_t Next(size_t num_bytes) {
    if (choices_.size() - next_ < num_bytes) next_ = choices_.size();
    if (next_ == choices_.size()) return engine_();
    uint64_t number = 0;
    for (; num_bytes > 0; --num_bytes) number = number << 8 | static_cast<unsigned char>(choices_[next_++]);
    return number;
  }

  std::mt19937_64 engine_;
  std::string choices_;
  size_t next_ = 0;
};

}  // namespace collage
