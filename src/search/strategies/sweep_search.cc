// sweep_search.cc: sweeps repeated as costs come to be known, and the paper's dynamic programming.
#include <algorithm>
#include <cmath>
#include <functional>

#include "search/strategies/cover_search.h"
#include "search/strategies/sweep.h"

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// States per position in the sweep that only looks for some good cover.
constexpr int kScoutBeam = 8;

double Total(const Cover& cover) { return cover.seconds + cover.num_unknown * CostBook::kUnknownSeconds; }

/// The best covers found so far all of whose costs are known: what costs more than the last of them is of no interest.
class KnownCovers {
 public:
  explicit KnownCovers(const SearchOptions& options) : options_(options) {}

  void Add(const Cover& cover) {
    const auto is_same = [&](const Cover& other) { return other.variants == cover.variants; };
    if (std::any_of(covers_.begin(), covers_.end(), is_same)) return;
    const auto is_after = [](double total, const Cover& other) { return total < Total(other); };
    covers_.insert(std::upper_bound(covers_.begin(), covers_.end(), Total(cover), is_after), cover);
    if (std::ssize(covers_) > options_.num_covers) covers_.pop_back();
  }

  /// Returns the highest cost of a wanted cover.
  double Limit() const {
    if (covers_.empty()) return options_.limit;
    const double most = std::min(options_.limit, MostSeconds(Total(covers_[0]), options_));
    return std::ssize(covers_) < options_.num_covers ? most : std::min(most, Total(covers_.back()));
  }

  /// Whether `best`, which has the least cost by what is known and by bounds, is no better to speak of.
  bool IsGoodEnough(const std::vector<Cover>& best) const {
    if (!best.empty() && Total(best[0]) > options_.limit) return true;
    if (covers_.empty() || options_.tolerance == 0) return false;
    return best.empty() || Total(best[0]) >= Total(covers_[0]) * (1 - options_.tolerance);
  }

  const std::vector<Cover>& covers() const { return covers_; }

 private:
  const SearchOptions& options_;
  std::vector<Cover> covers_;  ///< best first
};

/// Finds the best covers under bounds, asks for the costs of what they consist of, and again, until the best covers
/// have known costs only: then they are the best under all costs, since others cost no less than their bounds (lazy
/// shortest paths: Dellin and Srinivasa, ICAPS 2016). Narrow sweeps first: once they know some good covers, what cannot
/// be as good need not be kept.
class SweepSearch : public CoverSearch {
 public:
  SearchResult Run(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options) const override {
    SearchResult result;
    CostBook book(problem.variants.size(), costs);
    SearchSpace space(problem, costs);
    KnownCovers known(options);
    const auto bound = [&](bool is_refined) {
      RemainingBound made(problem, book, costs);
      if (is_refined) made.Refine(space, book, costs, kMostRefined);
      return made;
    };
    if (!SweepAtHand(problem, costs, space, options, book, known, result)) {
      SweepAsCostsBecomeKnown(bound, space, book, costs, options, known, result);
    }
    if (result.covers.empty()) {
      result.stuck_at = StuckPositions(problem, book, result.stuck_at);
    } else {
      result.stuck_at.clear();  // a sweep within a limit may have found nothing that is better
      const double most = std::min(options.limit, MostSeconds(Total(result.covers[0]), options));
      std::erase_if(result.covers, [&](const Cover& cover) { return Total(cover) > most; });
    }
    result.num_exact = book.num_exact();
    result.is_exact = result.num_dropped == 0;
    return result;
  }

 private:
  static void SweepAsCostsBecomeKnown(const std::function<RemainingBound(bool is_refined)>& bound, SearchSpace& space,
                                      CostBook& book, CoverCosts& costs, const SearchOptions& options,
                                      KnownCovers& known, SearchResult& result) {
    result.num_dropped = 0;
    RemainingBound guide = bound(false);
    const bool is_guided = !Scout(space, book, guide, options, result);
    if (is_guided) guide = bound(true);
    bool is_narrow = false;  // enough to see everything
    for (;;) {
      is_narrow = Scout(space, book, guide, options, result);
      // Whether what may only be as good is better by rank, a narrow sweep that dropped something cannot tell.
      const double limit = is_narrow ? known.Limit() : std::nextafter(known.Limit(), 0);
      if (IsSettled(known, result) || !AskFor(result.covers, book, limit, known)) break;
      if (!costs.FindsOut()) book.LeaveOutUnknown();
      guide = bound(is_guided);
    }
    if (!is_narrow) {
      for (;;) {
        SweepWithin(space, book, guide, options, known.Limit(), result);
        if (IsSettled(known, result) || !AskFor(result.covers, book, known.Limit(), known)) break;
        if (!costs.FindsOut()) book.LeaveOutUnknown();
        guide = bound(true);
      }
    }
    // With a beam, the last sweep may have lost what was known before.
    const bool is_lost =
        !known.covers().empty() && (result.covers.empty() || Total(known.covers()[0]) < Total(result.covers[0]));
    if (result.num_dropped > 0 && is_lost) result.covers = known.covers();
  }

  /// A bound that a sweep proves holds from then on, since costs are no less than their bounds, unless candidates were
  /// left out.
  static void RunSweep(Sweep& sweep, const CostBook& book, SearchResult& result) {
    result.covers = sweep.Run();
    if (!book.has_left_out()) result.least_seconds = std::max(result.least_seconds, sweep.least_seconds());
    result.num_states = std::max(result.num_states, sweep.num_states());
    if (result.covers.empty()) result.stuck_at = sweep.dead_ends();
  }

  /// Some good covers under what is known now; true when they are the best ones.
  static bool Scout(SearchSpace& space, const CostBook& book, RemainingBound& bound, const SearchOptions& options,
                    SearchResult& result) {
    Sweep scout(space, book, &bound, {.num_covers = options.num_covers, .beam = kScoutBeam});
    RunSweep(scout, book, result);
    return scout.num_dropped() == 0;
  }

  /// The best covers under what is known now, of those that cost `limit` at most.
  static void SweepWithin(SearchSpace& space, const CostBook& book, RemainingBound& bound, const SearchOptions& options,
                          double limit, SearchResult& result) {
    Sweep sweep(space, book, &bound, {.num_covers = options.num_covers, .limit = limit, .beam = options.beam});
    RunSweep(sweep, book, result);
    result.num_dropped = sweep.num_dropped();
  }

  /// Begins with the best covers among those whose costs are at hand: from there it shows what is worth asking for.
  /// Whether they are the best of all, since all costs are.
  static bool SweepAtHand(const CoverProblem& problem, CoverCosts& costs, SearchSpace& space,
                          const SearchOptions& options, CostBook& book, KnownCovers& known, SearchResult& result) {
    if (!book.AskAtHand()) return false;
    const CostBook at_hand = book.OnlyKnown();
    RemainingBound guide(problem, at_hand, costs);
    guide.Refine(space, at_hand, costs, kMostRefined);
    if (!Scout(space, at_hand, guide, options, result)) {
      KnownCovers good(options);
      AskFor(result.covers, book, kInfinity, good);
      SweepWithin(space, at_hand, guide, options, good.Limit(), result);
    }
    AskFor(result.covers, book, kInfinity, known);
    return book.IsAllKnown() && result.num_dropped == 0;
  }

  /// Whether a sweep has shown that the known covers will do: they are the result then.
  static bool IsSettled(const KnownCovers& known, SearchResult& result) {
    if (!known.IsGoodEnough(result.covers)) return false;
    result.covers = known.covers();
    return true;
  }

  /// Asks for what is not known of each cover in turn, up to the first that costs another thing than was taken for its
  /// bound: that may decide the others. Not for all of a cover that turns out to cost more than `limit`. False when
  /// nothing changed: another sweep would find the same.
  static bool AskFor(std::vector<Cover>& covers, CostBook& book, double limit, KnownCovers& known) {
    const auto sum = [&](const Cover& cover) {
      double seconds = 0;
      for (VariantIndex variant : cover.variants) seconds += book.Seconds(variant);
      return seconds;
    };
    for (Cover& cover : covers) {
      const double penalties = Total(cover) - sum(cover);
      if (Total(cover) > limit) break;  // nor are those after it of interest
      const bool has_changed = book.AskAll(cover.variants, [&] { return penalties + sum(cover) > limit; });
      const double total = penalties + sum(cover);
      if (total == kInfinity) return true;
      const auto is_known = [&](VariantIndex variant) { return book.IsKnown(variant); };
      if (!std::all_of(cover.variants.begin(), cover.variants.end(), is_known)) return true;
      cover.num_unknown = static_cast<int>(std::count_if(
          cover.variants.begin(), cover.variants.end(), [&](VariantIndex variant) { return book.IsUnknown(variant); }));
      cover.seconds = total - cover.num_unknown * CostBook::kUnknownSeconds;
      known.Add(cover);
      if (has_changed) return true;
    }
    return false;
  }
};

/// The costs of a problem whose variants have no neighbours: all run in one place.
class WithoutSwitchPenalties : public CoverCosts {
 public:
  explicit WithoutSwitchPenalties(CoverCosts& all) : all_(all) {}
  double LowerBound(VariantIndex variant) override { return all_.LowerBound(variant); }
  double Exact(VariantIndex variant) override { return all_.Exact(variant); }
  bool IsAtHand(VariantIndex variant) override { return all_.IsAtHand(variant); }
  bool FindsOut() const override { return all_.FindsOut(); }
  int NumAtOnce() const override { return all_.NumAtOnce(); }
  void Prepare(std::span<const VariantIndex> variants) override { all_.Prepare(variants); }
  double Convert(int value, Format from, Format to) override { return all_.Convert(value, from, to); }
  double Transition(VariantIndex variant) override { return all_.Transition(variant); }
  int PlaceOf(VariantIndex /*variant*/) override { return 0; }
  double SwitchPenalty(int /*from*/, int /*to*/) override { return 0; }
  int ClassOf(VariantIndex variant) override { return all_.ClassOf(variant); }

 private:
  CoverCosts& all_;
};

/// The paper's op level: from the result upwards, cells keyed by the set of nodes matched so far, each extended by
/// every pattern whose root is the next node. All costs are asked for. A sweep of the reversed problem, in which what
/// is chosen one after the other does not run so: handing over is no part of it, only of what is then said to be the
/// cost.
class OpLevelDp : public CoverSearch {
 public:
  SearchResult Run(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options) const override {
    SearchResult result;
    CostBook book(problem.variants.size(), costs);
    for (VariantIndex v : problem.variants.indices()) {
      if (book.CanRun(v)) book.Ask(v);
    }
    const CoverProblem reversed = problem.Reversed();
    WithoutSwitchPenalties own_costs(costs);
    SearchSpace space(reversed, own_costs);
    Sweep sweep(space, book, nullptr, {.num_covers = options.num_covers, .beam = options.beam});
    result.covers = sweep.Run();
    result.least_seconds = sweep.least_seconds();
    for (Cover& cover : result.covers) AddSwitchPenalties(problem, costs, cover);
    std::stable_sort(result.covers.begin(), result.covers.end(),
                     [](const Cover& a, const Cover& b) { return Total(a) < Total(b); });
    const double limit = result.covers.empty() ? 0 : MostSeconds(Total(result.covers[0]), options);
    std::erase_if(result.covers, [&](const Cover& cover) { return Total(cover) > limit; });
    if (result.covers.empty()) {
      std::vector<Position> dead_ends = sweep.dead_ends();
      for (Position& position : dead_ends) position = problem.Mirrored(position);
      result.stuck_at = StuckPositions(problem, book, std::move(dead_ends));
    }
    result.num_states = sweep.num_states();
    result.num_exact = book.num_exact();
    result.num_dropped = sweep.num_dropped();
    result.is_exact = result.num_dropped == 0;
    return result;
  }

 private:
  /// Puts the variants in the order of their first positions and adds what handing over costs in it.
  static void AddSwitchPenalties(const CoverProblem& problem, CoverCosts& costs, Cover& cover) {
    std::sort(cover.variants.begin(), cover.variants.end(),
              [&](VariantIndex a, VariantIndex b) { return problem.variants[a].covers < problem.variants[b].covers; });
    for (size_t i = 1; i < cover.variants.size(); ++i) {
      cover.seconds += costs.SwitchPenalty(costs.PlaceOf(cover.variants[i - 1]), costs.PlaceOf(cover.variants[i]));
    }
  }
};

}  // namespace

std::unique_ptr<CoverSearch> MakeSweep() { return std::make_unique<SweepSearch>(); }
std::unique_ptr<CoverSearch> MakeOpLevelDp() { return std::make_unique<OpLevelDp>(); }

}  // namespace collage
