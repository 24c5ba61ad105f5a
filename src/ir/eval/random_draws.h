// random_draws.h: random numbers of operators, by a generator that counts: element i of a call depends on i alone, not
// on the order in which, or the threads by which, elements are computed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

namespace collage {

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a bijection of
/// counters of 128 bits under a key of 64.
class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  /// `draw` is the upper half of all counters.
  Philox(uint64_t key, uint64_t draw) : key_(key), draw_(draw) {}

  /// The four words of the counter whose lower half is `index`.
  Block At(uint64_t index) const;

 private:
  uint64_t key_;
  uint64_t draw_;
};

/// The random numbers of one run of a program.
///
/// A call of an operator draws from its stream: of a seed that the call states, or of the run's. A call that is made
/// again, as in a loop, gets other numbers each time, and the same ones in each run of the same seed.
class RandomDraws {
 public:
  /// A run of a seed that no other run has.
  RandomDraws() = default;
  explicit RandomDraws(uint64_t seed) : seed_(seed) {}

  /// The numbers of the next call of `stream`, under `seed`, or that of the run.
  Philox Next(std::optional<int64_t> seed, int64_t stream);

 private:
  std::optional<uint64_t> seed_;           ///< drawn when it is first needed
  std::map<int64_t, uint64_t> num_calls_;  ///< by stream
};

}  // namespace collage
