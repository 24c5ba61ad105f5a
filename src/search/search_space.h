// search_space.h: the states that searches walk through, and the steps between them (RFC 0.81, "Phase 3").
#pragma once

#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "search/cost_book.h"
#include "search/cover_problem.h"
#include "search/number_table.h"
#include "search/partition_order.h"
#include "search/position_lists.h"

namespace collage {

/// Identity of a partial cover for all its continuations. Two partial covers in the same state can be continued by the
/// same variants at the same costs.
///
///     position   0 1 2 3 4 5 6 7 …
///     covered    x x x . x . x .       next = 3, beyond = {4, 6}
///
/// The next uncovered position must be covered first, so each cover is reached along one path.
struct SearchState {
  Position next;   ///< first position that is not covered
  int beyond = 0;  ///< positions covered behind it: a list of SearchSpace::lists()
  int memory = 0;  ///< formats and order: a number of SearchSpace
  bool operator==(const SearchState&) const = default;
};

struct SearchStateHash {
  size_t operator()(const SearchState& state) const {
    uint64_t hash = static_cast<uint64_t>(state.next.number()) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 29 ^ static_cast<uint64_t>(state.beyond)) * 0xff51afd7ed558ccdu;
    hash = (hash ^ hash >> 29 ^ static_cast<uint64_t>(state.memory)) * 0xc4ceb9fe1a85ec53u;
    return hash ^ hash >> 32;
  }
};

/// Memory of a state beside the covered positions. All lists are ascending.
struct SearchMemory {
  static constexpr int kNoPlace = -1;

  std::vector<FormatUse> made;       ///< values made in another format than 0, which have readers left
  std::vector<FormatUse> converted;  ///< further formats that values were converted to, which have readers left
  std::vector<FormatUse> wanted;     ///< formats that covered positions want of values not made yet
  std::vector<VariantIndex> risky;   ///< chosen variants that later ones may be on a circle with
  int place = kNoPlace;              ///< the last variant's, if switching toolchains costs anything
  bool operator==(const SearchMemory&) const = default;
};

class SearchSpace {
 public:
  SearchSpace(const CoverProblem& problem, CoverCosts& costs);

  const CoverProblem& problem() const { return problem_; }
  /// Whether what a variant costs depends on the one before it.
  bool has_switch_penalties() const { return !switch_penalties_.empty(); }
  SearchState Start();
  bool IsEnd(const SearchState& state) const { return state.next == problem_.end(); }
  /// Variants whose first position is the next uncovered one, ascending.
  const std::vector<VariantIndex>& Continuing(const SearchState& state) const { return starting_at_[state.next]; }

  struct Step {
    SearchState to;
    double penalty;  ///< transition and conversions, beside the variant's own cost
  };
  /// Covers what `variant`, one of those that continue the state, covers; nothing when it overlaps or cannot be put in
  /// order with what is chosen.
  std::optional<Step> Apply(const SearchState& state, VariantIndex variant);

  /// Calls `visit(variant, step)` for each step from `state` with a variant that, as far as `book` knows, can be run;
  /// false when there is none.
  template <class Visit>
  bool ForEachStep(const SearchState& state, const CostBook& book, const Visit& visit) {
    bool any = false;
    for (VariantIndex variant : Continuing(state)) {
      if (!book.CanRun(variant)) continue;
      const std::optional<Step> step = Apply(state, variant);
      if (!step) continue;
      any = true;
      visit(variant, *step);
    }
    return any;
  }

  /// Takes the same step for the covered positions only: without memory, in any order.
  std::optional<SearchState> Cover(const SearchState& state, VariantIndex variant);

  const SearchMemory& MemoryOf(const SearchState& state) const { return memories_[state.memory]; }
  const PositionLists& lists() const { return lists_; }

  /// Returns the cost of making, in `better`, at least the formats that `worse` has; infinity if it may still be worse.
  /// The states must cover the same, then nothing that continues `worse` costs less than in `better` plus this. More
  /// than `most` may be any number above it.
  double SecondsToMatch(const SearchState& better, const SearchState& worse,
                        double most = std::numeric_limits<double>::infinity());

 private:
  int NumberOf(const SearchMemory& memory);
  bool IsCovered(const SearchState& state, Position position) const {
    return position < state.next || lists_.Contains(state.beyond, position);
  }
  /// Conversions that choosing a variant makes necessary: of what it reads, and of what it makes for those who wanted
  /// it otherwise. By the format that they lead to, valid until the next call; adds what they cost to `seconds`.
  const std::vector<FormatUse>& Conversions(const SearchState& state, const CoverVariant& variant, double& seconds);
  void FindSwitchPenalties();
  double SwitchPenalty(int from, int to) const;
  int MemoryAfter(const SearchState& before, const SearchState& after, VariantIndex variant,
                  const std::vector<FormatUse>& conversions);
  Format MadeIn(const SearchMemory& memory, int value) const;
  const FormattedValue& ValueAt(int value) const { return *values_[value]; }
  const std::vector<Format>& FormatsOf(int value) const { return formats_[value]; }
  double Convert(int value, Format from, Format to);

  const CoverProblem& problem_;
  CoverCosts& costs_;
  PartitionOrder order_;
  IndexedVector<Position, std::vector<VariantIndex>> starting_at_;
  PositionLists lists_;
  IndexedVector<VariantIndex, int> rest_of_;  ///< the list of its positions but the first
  IndexedVector<VariantIndex, int> places_;
  std::vector<std::vector<double>> switch_penalties_;  ///< from place, to place
  std::deque<SearchMemory> memories_;
  NumberTable numbers_;                        ///< numbers of memories
  std::vector<const FormattedValue*> values_;  ///< by value
  std::vector<std::vector<Format>> formats_;   ///< by value: those that anyone wants it in
  size_t num_formats_ = 1;
  std::vector<double> converts_;  ///< by value, from format, to format; NaN when it was not asked for
  // Kept from one call to the next for their memory.
  SearchMemory after_;
  std::vector<FormatUse> conversions_;
  std::vector<int> matched_values_;
};

}  // namespace collage
