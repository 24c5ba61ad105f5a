// cost_book.h: what a search knows of the costs of variants so far.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "search/find_covers.h"

namespace collage {

/// Bounds first, exact costs where they were asked for. All are keys that can be compared and summed: Invalid is
/// infinite, Unknown so great that no sum of known costs reaches it, and that it costs sums no digit that matters.
class CostBook {
 public:
  static constexpr double kUnknownSeconds = 1e6;

  CostBook(size_t num_variants, CoverCosts& costs) : costs_(costs) {
    std::unordered_map<int, int> numbers;
    for (int v = 0; v < static_cast<int>(num_variants); ++v) {
      const auto [number, is_new] = numbers.emplace(costs.ClassOf(v), static_cast<int>(entries_.size()));
      entry_of_.push_back(number->second);
      if (!is_new) continue;
      const double bound = costs.LowerBound(v);
      entries_.push_back({std::isnan(bound) ? 0 : bound, false});
    }
  }

  /// The exact cost when it is known, else the bound.
  double Seconds(int variant) const { return At(variant).seconds; }
  bool IsKnown(int variant) const { return At(variant).is_known; }
  bool IsUnknown(int variant) const { return IsKnown(variant) && Seconds(variant) == kUnknownSeconds; }
  bool CanRun(int variant) const { return Seconds(variant) < std::numeric_limits<double>::infinity(); }

  /// The exact cost, asked for when it is not known.
  double Ask(int variant) {
    Entry& entry = entries_[static_cast<size_t>(entry_of_[static_cast<size_t>(variant)])];
    if (entry.is_known) return entry.seconds;
    const double exact = costs_.Exact(variant);
    ++num_exact_;
    entry = {std::isnan(exact) ? kUnknownSeconds : exact, true};
    return entry.seconds;
  }

  int64_t num_exact() const { return num_exact_; }

 private:
  struct Entry {
    double seconds = 0;
    bool is_known = false;
  };

  CoverCosts& costs_;
  const Entry& At(int variant) const { return entries_[static_cast<size_t>(entry_of_[static_cast<size_t>(variant)])]; }

  std::vector<int> entry_of_;   ///< by variant
  std::vector<Entry> entries_;  ///< by class
  int64_t num_exact_ = 0;
};

}  // namespace collage
