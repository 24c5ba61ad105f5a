// alternatives.cc: a search for each partition, among what computes its nodes and the rest of the cover.
#include "driver/covers/alternatives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "ir/place.h"
#include "search/renumbered_costs.h"

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Partitions that are explained: a report of more would not be read.
constexpr size_t kMostChoices = 10;
constexpr double kLeastShare = 5e-3;
// Differences of sums that are rounding.
constexpr double kRounding = 1e-12;

/// Costs as far as they are at hand, else their lower bounds.
class KnownCosts {
 public:
  struct Cost {
    double seconds;
    bool is_bound;
  };

  explicit KnownCosts(Partitioner& partitioner) : partitioner_(partitioner) {}

  Partitioner& partitioner() const { return partitioner_; }

  Cost Of(VariantIndex variant) {
    const auto [cost, is_new] = by_class_.emplace(partitioner_.ClassOf(variant), Cost{});
    if (is_new) {
      const bool is_known = partitioner_.IsAtHand(variant);
      cost->second = {is_known ? partitioner_.Exact(variant) : partitioner_.LowerBound(variant), !is_known};
    }
    return cost->second;
  }

  bool CanRun(VariantIndex variant) { return Of(variant).seconds < kInfinity; }

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

/// Known costs of a selection of variants, for a search that measures nothing.
class SelectedCosts : public RenumberedCosts {
 public:
  SelectedCosts(KnownCosts& known, const OriginalVariants& original)
      : RenumberedCosts(known.partitioner(), original), known_(known), original_(original) {}

  double LowerBound(VariantIndex variant) override { return known_.Of(original_[variant]).seconds; }
  double Exact(VariantIndex variant) override { return LowerBound(variant); }
  bool IsAtHand(VariantIndex /*variant*/) override { return true; }
  bool FindsOut() const override { return false; }
  void Prepare(std::span<const VariantIndex> /*variants*/) override {}
  double Convert(int value, Format from, Format to) override {
    if (known_.HasConversion(value, from, to)) return RenumberedCosts::Convert(value, from, to);
    has_bounds_ = true;
    return 0;
  }

  /// Returns the cost of a cover, and whether it is a bound: some conversion or some variant from `first` on is not
  /// known.
  KnownCosts::Cost CostOf(const CoverProblem& problem, const Cover& cover, VariantIndex first) {
    IndexedVector<VariantIndex, double> exact;
    for (const VariantIndex v : original_.indices()) exact.push_back(LowerBound(v));
    has_bounds_ = false;
    const double seconds = CoverSeconds(problem, cover.variants, exact, *this);
    const auto is_bound = [&](VariantIndex v) { return v >= first && known_.Of(original_[v]).is_bound; };
    return {seconds, has_bounds_ || std::ranges::any_of(cover.variants, is_bound)};
  }

 private:
  KnownCosts& known_;
  const OriginalVariants& original_;
  bool has_bounds_ = false;  ///< whether a conversion was asked for that is not known
};

/// Costs that note which conversions are asked for.
class NotingCosts : public RenumberedCosts {
 public:
  NotingCosts(KnownCosts& known, const OriginalVariants& original)
      : RenumberedCosts(known.partitioner(), original), known_(known) {}
  double Convert(int value, Format from, Format to) override {
    known_.AddOfCover(value, from, to);
    return RenumberedCosts::Convert(value, from, to);
  }

 private:
  KnownCosts& known_;
};

/// Finds the alternatives of one cover's partitions.
class ChoiceExplainer {
 public:
  ChoiceExplainer(Partitioner& partitioner, const Cover& cover,
                  const std::function<bool(CandidateIndex candidate)>& allowed)
      : partitioner_(partitioner),
        candidates_(partitioner.candidates()),
        cover_(cover),
        allowed_(allowed),
        known_(partitioner),
        starting_at_(partitioner.Problem().StartingAt()) {
    std::set<const Toolchain*> with_candidates;
    for (const CandidateIndex i : candidates_.candidates().indices()) {
      if (allowed(i)) with_candidates.insert(candidates_.ToolchainOf(i));
    }
    std::ranges::copy_if(candidates_.toolchains(), std::back_inserter(toolchains_),
                         [&](const Toolchain* toolchain) { return with_candidates.contains(toolchain); });
    PriceCover();
  }

  std::vector<PartitionChoice> Explain() {
    std::vector<PartitionChoice> choices;
    if (!(seconds_ > 0 && seconds_ < kInfinity)) return choices;
    std::vector<VariantIndex> dearest = cover_.variants;
    std::ranges::stable_sort(dearest, std::greater(), [&](VariantIndex v) { return known_.Of(v).seconds; });
    if (dearest.size() > kMostChoices) dearest.resize(kMostChoices);
    for (const VariantIndex chosen : dearest) {
      if (known_.Of(chosen).seconds >= kLeastShare * seconds_) choices.push_back(Explain(chosen));
    }
    return choices;
  }

 private:
  const CoverVariant& At(VariantIndex variant) const { return partitioner_.Problem().variants[variant]; }

  void PriceCover() {
    OriginalVariants original;
    IndexedVector<VariantIndex, double> exact;
    Cover renumbered;
    for (const VariantIndex v : cover_.variants) {
      renumbered.variants.push_back(original.next());
      original.push_back(v);
      exact.push_back(known_.Of(v).seconds);
    }
    NotingCosts costs(known_, original);
    seconds_ = CoverSeconds(partitioner_.Problem().Of(original), renumbered.variants, exact, costs);
  }

  PartitionChoice Explain(VariantIndex chosen) {
    const CandidatePartition& partition = candidates_.CandidateOf(chosen);
    const DataflowGraph& graph = candidates_.graph();
    const int first_node = partitioner_.NodesAt({At(chosen).covers.front()}).front();
    PartitionChoice choice;
    choice.operators = partition.sub_graph.OperatorLabel(graph);
    choice.num_operators = static_cast<int>(At(chosen).covers.size());
    choice.first_node = collage::PlaceOf(graph.node(first_node).expr->span());
    choice.toolchain = partition.toolchain->name();
    choice.seconds = known_.Of(chosen).seconds;
    choice.share = choice.seconds / seconds_;
    AddAlternatives(chosen, choice);
    return choice;
  }

  void AddAlternatives(VariantIndex chosen, PartitionChoice& choice) {
    const std::vector<VariantIndex> within = VariantsWithin(chosen);
    size_t num_toolchains = 0;
    for (const Toolchain* toolchain : toolchains_) {
      std::vector<VariantIndex> own;
      std::ranges::copy_if(within, std::back_inserter(own),
                           [&](VariantIndex v) { return candidates_.CandidateOf(v).toolchain == toolchain; });
      num_toolchains += own.empty() ? 0 : 1;
      std::string why_not = WhyNot(chosen, *toolchain, own);
      const std::optional<PartitionAlternative> best = why_not.empty() ? CheapestOf(chosen, own) : std::nullopt;
      if (best) {
        choice.alternatives.push_back(*best);
      } else {
        if (why_not.empty()) why_not = "no choice of its candidates computes just these nodes";
        choice.refusals[toolchain->name()] = why_not;
      }
    }
    // The cheapest by a single toolchain is one of those above.
    const std::optional<PartitionAlternative> mix = num_toolchains > 1 ? CheapestOf(chosen, within) : std::nullopt;
    if (mix && mix->partitions.size() > 1) choice.alternatives.push_back(*mix);
    std::ranges::stable_sort(choice.alternatives, {}, [](const PartitionAlternative& one) {
      return std::pair(one.is_bound, one.extra_seconds);
    });
  }

  /// Returns the allowed variants that can be run and cover no more than `chosen` does, except those of its candidate.
  std::vector<VariantIndex> VariantsWithin(VariantIndex chosen) {
    const std::vector<Position>& covers = At(chosen).covers;
    std::vector<VariantIndex> within;
    for (const Position position : covers) {
      for (const VariantIndex v : starting_at_[position]) {
        const CandidateIndex candidate = candidates_.variant(v).candidate;
        if (candidate == candidates_.variant(chosen).candidate || !allowed_(candidate)) continue;
        if (std::ranges::includes(covers, At(v).covers) && known_.CanRun(v)) within.push_back(v);
      }
    }
    return within;
  }

  /// Returns the cheapest cover with some of `within` in the place of `chosen`; nothing if there is none.
  std::optional<PartitionAlternative> CheapestOf(VariantIndex chosen, const std::vector<VariantIndex>& within) {
    OriginalVariants original;
    VariantList variants;
    const auto add = [&](VariantIndex v) {
      original.push_back(v);
      variants.push_back(candidates_.variant(v));
    };
    for (const VariantIndex v : cover_.variants) {
      if (v != chosen) add(v);
    }
    const VariantIndex first = original.next();
    for (const VariantIndex v : within) add(v);
    const CoverProblem problem = partitioner_.Problem().Of(original);
    SelectedCosts costs(known_, original);
    const SearchResult found = FindCovers(problem, candidates_.candidates(), variants, costs, {});
    if (found.covers.empty()) return std::nullopt;
    const KnownCosts::Cost cost = costs.CostOf(problem, found.covers[0], first);
    const double extra = cost.seconds - seconds_;
    PartitionAlternative alternative;
    alternative.extra_seconds = std::abs(extra) < kRounding * seconds_ ? 0 : extra;
    alternative.is_bound = cost.is_bound;
    for (const VariantIndex v : found.covers[0].variants) {
      if (v >= first) ++alternative.partitions[candidates_.ToolchainOf(variants[v].candidate)->name()];
    }
    return alternative;
  }

  /// Why `own`, the variants of `toolchain` within `chosen`, cannot take its place; empty if they may.
  std::string WhyNot(VariantIndex chosen, const Toolchain& toolchain, const std::vector<VariantIndex>& own) {
    std::vector<Position> open = At(chosen).covers;
    for (const VariantIndex v : own) {
      std::erase_if(open, [&](Position position) { return std::ranges::binary_search(At(v).covers, position); });
    }
    if (!open.empty()) return WhyOpen(partitioner_.NodesAt({open.front()}).front(), toolchain);
    std::set<const Toolchain*> others;
    for (const VariantIndex v : cover_.variants) {
      if (v != chosen) others.insert(candidates_.CandidateOf(v).toolchain);
    }
    for (const Toolchain* other : candidates_.toolchains()) {
      if (other == &toolchain || !others.contains(other)) continue;
      if (const std::optional<std::string> why = WhyIncompatible(toolchain, *other)) {
        return fmt::format("it cannot be in one process with {}: {}", other->name(), *why);
      }
    }
    return "";
  }

  /// Why `toolchain` has no other candidate for the node at index `node`.
  std::string WhyOpen(int node, const Toolchain& toolchain) {
    std::string why;
    for (const PartitionSpec& spec : candidates_.specs()) {
      if (spec.toolchain != &toolchain) continue;
      why = partitioner_.WhyNoneRuns(node, spec, [&](VariantIndex v) { return known_.CanRun(v); });
      if (why.empty()) break;
    }
    return fmt::format("'{}': {}", candidates_.graph().LabelAt(node),
                       why.empty() ? "no other candidate with it fits into these nodes" : why);
  }

  Partitioner& partitioner_;
  const Candidates& candidates_;
  const Cover& cover_;
  const std::function<bool(CandidateIndex candidate)>& allowed_;
  KnownCosts known_;
  IndexedVector<Position, std::vector<VariantIndex>> starting_at_;
  std::vector<const Toolchain*> toolchains_;  ///< owners of allowed candidates
  double seconds_ = 0;                        ///< cost of the cover
};

}  // namespace

std::vector<PartitionChoice> ExplainChoices(Partitioner& partitioner, const Cover& cover,
                                            const std::function<bool(CandidateIndex candidate)>& allowed) {
  return ChoiceExplainer(partitioner, cover, allowed).Explain();
}

}  // namespace collage
