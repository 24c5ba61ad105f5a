// cost_book.h: what a search knows of the costs of variants so far.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
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
    for (VariantIndex v : IndexRange(VariantIndex(static_cast<int>(num_variants)))) {
      const auto [number, is_new] = numbers.emplace(costs.ClassOf(v), static_cast<int>(entries_.size()));
      entry_of_.push_back(number->second);
      if (!is_new) continue;
      const double bound = costs.LowerBound(v);
      entries_.push_back({std::isnan(bound) ? 0 : bound, false});
    }
  }

  /// Learns what is at hand; whether there is any.
  bool AskAtHand() {
    bool any = false;
    for (VariantIndex v : entry_of_.indices()) {
      if (!IsKnown(v) && costs_.IsAtHand(v)) Ask(v);
      any = any || IsKnown(v);
    }
    return any;
  }

  /// Returns a copy in which variants of unknown cost cannot be run.
  CostBook OnlyKnown() const {
    CostBook result = *this;
    result.LeaveOutUnknown();
    return result;
  }

  bool IsAllKnown() const {
    return std::all_of(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.is_known; });
  }

  /// From now on what is not known cannot be run.
  void LeaveOutUnknown() {
    for (Entry& entry : entries_) {
      if (entry.is_known) continue;
      entry = {std::numeric_limits<double>::infinity(), true};
      has_left_out_ = true;
    }
  }
  /// Whether something cannot be run only because its cost is not known.
  bool has_left_out() const { return has_left_out_; }

  /// The exact cost when it is known, else the bound.
  double Seconds(VariantIndex variant) const { return At(variant).seconds; }
  bool IsKnown(VariantIndex variant) const { return At(variant).is_known; }
  bool IsUnknown(VariantIndex variant) const { return IsKnown(variant) && Seconds(variant) == kUnknownSeconds; }
  bool CanRun(VariantIndex variant) const { return Seconds(variant) < std::numeric_limits<double>::infinity(); }

  /// The exact cost, asked for when it is not known.
  double Ask(VariantIndex variant) {
    Entry& entry = entries_[entry_of_[variant]];
    if (entry.is_known) return entry.seconds;
    const double exact = costs_.Exact(variant);
    ++num_exact_;
    entry = {std::isnan(exact) ? kUnknownSeconds : exact, true};
    return entry.seconds;
  }

  /// Asks for the exact costs of the `variants` that are not known, until `is_enough` says so: those with the greatest
  /// bounds first, as many at once as that pays for. Whether any differs from what was taken for its bound.
  template <typename IsEnough>
  bool AskAll(std::vector<VariantIndex> variants, const IsEnough& is_enough) {
    bool has_changed = false;
    std::erase_if(variants, [&](VariantIndex variant) { return IsKnown(variant); });
    std::stable_sort(variants.begin(), variants.end(),
                     [&](VariantIndex a, VariantIndex b) { return Seconds(a) > Seconds(b); });
    for (std::span<const VariantIndex> left = variants; !left.empty() && !is_enough();) {
      const std::span<const VariantIndex> chunk = left.first(std::min<size_t>(left.size(), costs_.NumAtOnce()));
      costs_.Prepare(chunk);
      for (VariantIndex variant : chunk) {
        const double bound = Seconds(variant);
        has_changed = Ask(variant) != bound || has_changed;
      }
      left = left.subspan(chunk.size());
    }
    return has_changed;
  }

  int64_t num_exact() const { return num_exact_; }

 private:
  struct Entry {
    double seconds = 0;
    bool is_known = false;
  };

  CoverCosts& costs_;
  const Entry& At(VariantIndex variant) const { return entries_[entry_of_[variant]]; }

  IndexedVector<VariantIndex, int> entry_of_;
  std::vector<Entry> entries_;  ///< by class
  int64_t num_exact_ = 0;
  bool has_left_out_ = false;
};

}  // namespace collage
