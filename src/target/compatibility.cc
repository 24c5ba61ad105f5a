// compatibility.cc: which toolchains may meet in one process.
#include <algorithm>
#include <bit>

#include "collage/support/error.h"
#include "collage/target/toolchain.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

std::optional<std::string> Objection(const Toolchain& from, const Toolchain& to) {
  const std::string name = RegisteredName(to.name());  // whatever its options are
  for (const Incompatibility& one : from.Incompatible()) {
    if (one.toolchain == name) return one.reason;
  }
  return std::nullopt;
}

/// Bron and Kerbosch's enumeration (CACM 16(9), 1973) of the maximal cliques of "can be in one process", as bit sets.
class MaximalSets {
 public:
  explicit MaximalSets(std::vector<uint64_t> friends) : friends_(std::move(friends)) {}

  std::vector<uint64_t> Find() {
    const uint64_t all = friends_.size() == 64 ? ~uint64_t{0} : (uint64_t{1} << friends_.size()) - 1;
    Extend(0, all, 0);
    return std::move(found_);
  }

 private:
  /// Sets that hold `chosen`, some of `open`, and none of `done`.
  void Extend(uint64_t chosen, uint64_t open, uint64_t done) {
    if (open == 0 && done == 0) found_.push_back(chosen);
    while (open != 0) {
      const int next = std::countr_zero(open);
      const uint64_t bit = uint64_t{1} << next;
      const uint64_t friends = friends_[static_cast<size_t>(next)];
      Extend(chosen | bit, open & friends, done & friends);
      open &= ~bit;
      done |= bit;
    }
  }

  std::vector<uint64_t> friends_;  ///< by toolchain: those that it can be with, itself not among them
  std::vector<uint64_t> found_;
};

}  // namespace

std::optional<std::string> WhyIncompatible(const Toolchain& a, const Toolchain& b) {
  const std::optional<std::string> objection = Objection(a, b);
  return objection ? objection : Objection(b, a);
}

std::vector<std::vector<const Toolchain*>> CompatibleSets(std::span<const Toolchain* const> toolchains) {
  COLLAGE_CHECK(toolchains.size() <= 64) << "more toolchains than any machine has";
  std::vector<uint64_t> friends(toolchains.size(), 0);
  for (size_t i = 0; i < toolchains.size(); ++i) {
    for (size_t j = 0; j < toolchains.size(); ++j) {
      if (i != j && !WhyIncompatible(*toolchains[i], *toolchains[j])) friends[i] |= uint64_t{1} << j;
    }
  }
  std::vector<std::vector<const Toolchain*>> sets;
  for (uint64_t chosen : MaximalSets(std::move(friends)).Find()) {
    std::vector<const Toolchain*>& set = sets.emplace_back();
    for (size_t i = 0; i < toolchains.size(); ++i) {
      if ((chosen >> i & 1) != 0) set.push_back(toolchains[i]);
    }
  }
  return sets;
}

}  // namespace collage
