// rounding.cc: many numbers at a time.
#include "ir/eval/rounding.h"

#include <cmath>

#include "ir/eval/uniform_run.h"
#include "support/clones.h"

namespace collage {
namespace {

// So many numbers that a loop over them needs no other for the rest.
constexpr int64_t kBlock = 64;

/// The number below, or the next, where the rest is greater than `limit`. The difference of infinities, and of NaN, is
/// NaN: they stay as they are.
inline double RoundedAtRandom(double value, double limit) {
  const double below = std::floor(value);
  return value - below > limit ? below + 1 : below;
}

COLLAGE_CLONES void RoundBlock(double* values) {
  for (int64_t i = 0; i < kBlock; ++i) values[i] = std::nearbyint(values[i]);
}

COLLAGE_CLONES void RoundBlockAtRandom(double* values, const double* limits) {
  for (int64_t i = 0; i < kBlock; ++i) values[i] = RoundedAtRandom(values[i], limits[i]);
}

}  // namespace

double Rounder::operator()(double value) {
  return is_random_ ? RoundedAtRandom(value, generator_.Uniform()) : std::nearbyint(value);
}

void Rounder::Round(double* values, int64_t count) {
  double limits[kBlock];
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    if (!is_random_) {
      RoundBlock(values + i);
      continue;
    }
    FillUniform(generator_, limits, kBlock);
    RoundBlockAtRandom(values + i, limits);
  }
  for (; i < count; ++i) values[i] = (*this)(values[i]);
}

}  // namespace collage
