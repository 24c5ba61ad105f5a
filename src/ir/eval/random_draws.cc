// random_draws.cc: the rounds of Philox, and keys from seeds.
#include "ir/eval/random_draws.h"

#include <random>

#include "runtime/split_mix.h"

namespace collage {
namespace {

constexpr int kRounds = 10;
constexpr uint64_t kMultiplierA = 0xd2511f53;
constexpr uint64_t kMultiplierB = 0xcd9e8d57;
constexpr uint32_t kWeylA = 0x9e3779b9;
constexpr uint32_t kWeylB = 0xbb67ae85;

uint32_t Low(uint64_t word) { return static_cast<uint32_t>(word); }
uint32_t High(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

uint64_t FreshSeed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

}  // namespace

Philox::Block Philox::At(uint64_t index) const {
  Block x{Low(index), High(index), Low(draw_), High(draw_)};
  uint32_t a = Low(key_), b = High(key_);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t first = kMultiplierA * x[0];
    const uint64_t second = kMultiplierB * x[2];
    x = {High(second) ^ x[1] ^ a, Low(second), High(first) ^ x[3] ^ b, Low(first)};
    a += kWeylA;
    b += kWeylB;
  }
  return x;
}

Philox RandomDraws::Next(std::optional<int64_t> seed, int64_t stream) {
  if (!seed && !seed_) seed_ = FreshSeed();
  SplitMix of_seed(seed ? static_cast<uint64_t>(*seed) : *seed_);
  SplitMix of_stream(of_seed.Next() + static_cast<uint64_t>(stream));
  return {of_stream.Next(), num_calls_[stream]++};
}

}  // namespace collage
