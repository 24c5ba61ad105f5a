// uniform_run.cc: every number is made from the state that it has by its place, so that they are made side by side.
#include "ir/eval/uniform_run.h"

#include "support/clones.h"

namespace collage {
namespace {

constexpr int64_t kBlock = 64;

COLLAGE_CLONES void FillBlock(const SplitMix& generator, double* numbers) {
  const SplitMix first = generator;
  for (int64_t i = 0; i < kBlock; ++i) {
    SplitMix own = first;
    own.Skip(static_cast<uint64_t>(i));
    numbers[i] = own.Uniform();
  }
}

}  // namespace

void FillUniform(SplitMix& generator, double* numbers, int64_t count) {
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    FillBlock(generator, numbers + i);
    generator.Skip(kBlock);
  }
  for (; i < count; ++i) numbers[i] = generator.Uniform();
}

}  // namespace collage
