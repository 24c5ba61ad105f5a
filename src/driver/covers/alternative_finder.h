// alternative_finder.h: other ways to compute parts of a cover, found by searches among what is known.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "driver/covers/partitioner.h"
#include "search/cover_problem.h"

namespace collage {

/// Costs as far as they are at hand, else their lower bounds. Measures nothing.
class KnownCosts {
 public:
  struct Cost {
    double seconds;
    bool is_bound;
  };

  explicit KnownCosts(Partitioner& partitioner) : partitioner_(partitioner) {}

  Partitioner& partitioner() const { return partitioner_; }
  Cost Of(VariantIndex variant);

  /// A conversion of the cover itself has the price by which the cover was chosen, measured or not.
  void AddOfCover(int value, Format from, Format to) { of_cover_.emplace(value, from, to); }
  bool HasConversion(int value, Format from, Format to) const {
    return of_cover_.contains({value, from, to}) || partitioner_.IsConversionAtHand(value, from, to);
  }

 private:
  Partitioner& partitioner_;
  std::unordered_map<int, Cost> by_class_;
  std::set<std::tuple<int, Format, Format>> of_cover_;
};

/// A cover that differs from another one in some places.
struct CoverAlternative {
  const Toolchain* toolchain = nullptr;  ///< computes all of it; null: several do
  std::vector<VariantIndex> variants;    ///< not in the other one, in the cover's order
  std::vector<size_t> replaces;          ///< numbers of the variants in the other one that they stand for
  double extra_seconds = 0;              ///< cost of the whole cover, minus that of the other one
  bool is_bound = false;                 ///< it costs at least that: something in it was never measured
  /// Conversions that the other one has not got; those of unknown price have 0 seconds.
  std::vector<CoverConversion> conversions;
  double own_seconds = 0;       ///< costs of `variants`
  double replaced_seconds = 0;  ///< costs of those in their place
};

/// Finds the alternatives of one cover's variants:
///
///     cover       [conv relu] [pool] [dense]      native, dnnl, native
///     Within(0)   [conv][relu]                    just the nodes of variant 0; all others stay
///     Around(0)   [conv][relu pool]               the nodes of variants that share a candidate with it, too
///
/// An alternative has none of the variant's own candidate, in whatever formats. All other variants stay as they are;
/// conversions are added where they are needed. Each is a search of the whole graph with one variant elsewhere.
class AlternativeFinder {
 public:
  /// Candidates that alternatives may have.
  using Allowed = std::function<bool(CandidateIndex candidate)>;

  /// All must outlive it.
  AlternativeFinder(Partitioner& partitioner, const Cover& cover, Allowed allowed);

  /// The cost of the cover by what is known; infinite, or 0, if there is nothing to explain.
  double seconds() const { return seconds_; }
  /// Whether the cover has a cost, so that there may be alternatives.
  bool IsExplained() const;
  KnownCosts& known() { return known_; }
  /// Penalties by variant of the cover, in its order; empty if the cover cannot be run.
  const std::vector<CoverPenalties>& penalties() const { return penalties_; }
  /// Toolchains that have allowed candidates.
  const std::vector<const Toolchain*>& toolchains() const { return toolchains_; }

  struct Ways {
    /// The cheapest way of each toolchain alone, and of several together if that is cheaper; the cheapest whose costs
    /// are all known, and a bound that is lower. Known costs come first; the lesser before the greater.
    std::vector<CoverAlternative> alternatives;
    std::map<const Toolchain*, std::string> refusals;  ///< why a toolchain has no way of its own
  };
  Ways Within(size_t number);
  /// The cheapest ways, one known and a lower bound, that replace neighbours, too. A candidate that reaches over more
  /// than a few variants of the cover is none of them.
  std::vector<CoverAlternative> Around(size_t number);

 private:
  using Cheapest = std::vector<CoverAlternative>;  ///< known, lower bound

  const CoverVariant& At(VariantIndex variant) const { return partitioner_.Problem().variants[variant]; }
  void PriceCover();
  std::vector<VariantIndex> VariantsWithin(VariantIndex chosen, const std::vector<Position>& positions);
  std::set<size_t> Neighbours(size_t number);
  Cheapest CheapestOf(const std::set<size_t>& replaced, const std::vector<VariantIndex>& within);
  std::optional<CoverAlternative> Search(const std::set<size_t>& replaced, const std::vector<VariantIndex>& within);
  std::string WhyNot(VariantIndex chosen, const Toolchain& toolchain, const std::vector<VariantIndex>& own);
  std::string WhyOpen(int node, const Toolchain& toolchain);

  Partitioner& partitioner_;
  const Candidates& candidates_;
  const Cover& cover_;
  Allowed allowed_;
  KnownCosts known_;
  IndexedVector<Position, std::vector<VariantIndex>> starting_at_;
  IndexedVector<Position, std::vector<VariantIndex>> holding_;  ///< all variants that cover a position
  IndexedVector<Position, size_t> owner_;                       ///< the cover's variant at a position, by its number
  std::vector<const Toolchain*> toolchains_;
  std::vector<CoverPenalties> penalties_;
  std::set<std::tuple<int, Format, Format>> converted_;  ///< conversions of the cover
  double seconds_ = 0;
};

}  // namespace collage
