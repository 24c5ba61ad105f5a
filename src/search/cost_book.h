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

  CostBook(size_t num_variants, CoverCosts& costs) : costs_(costs), entries_(num_variants) {
    for (size_t v = 0; v < num_variants; ++v) {
      const double bound = costs.LowerBound(static_cast<int>(v));
      entries_[v].seconds = std::isnan(bound) ? 0 : bound;
    }
  }

  /// The exact cost when it is known, else the bound.
  double Seconds(int variant) const { return entries_[static_cast<size_t>(variant)].seconds; }
  bool IsKnown(int variant) const { return entries_[static_cast<size_t>(variant)].is_known; }
  bool IsUnknown(int variant) const { return IsKnown(variant) && Seconds(variant) == kUnknownSeconds; }
  bool CanRun(int variant) const { return Seconds(variant) < std::numeric_limits<double>::infinity(); }

  /// The exact cost, asked for when it is not known.
  double Ask(int variant) {
    Entry& entry = entries_[static_cast<size_t>(variant)];
    if (entry.is_known) return entry.seconds;
    const int class_of = costs_.ClassOf(variant);
    const auto [it, is_new] = by_class_.emplace(class_of, 0);
    if (is_new) {
      const double exact = costs_.Exact(variant);
      it->second = std::isnan(exact) ? kUnknownSeconds : exact;
      ++num_exact_;
    }
    entry = {it->second, true};
    return entry.seconds;
  }

  int64_t num_exact() const { return num_exact_; }

 private:
  struct Entry {
    double seconds = 0;
    bool is_known = false;
  };

  CoverCosts& costs_;
  std::vector<Entry> entries_;
  std::unordered_map<int, double> by_class_;
  int64_t num_exact_ = 0;
};

}  // namespace collage
