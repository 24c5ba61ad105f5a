// alternative_finder.cc: a search for each question, among what may stand for a part of the cover and the rest of it.
#include "driver/covers/alternative_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "search/renumbered_costs.h"

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Differences of sums that are rounding.
constexpr double kRounding = 1e-12;
// A candidate that reaches over more variants of a cover is another cover, rather than another way for one of them.
constexpr size_t kMostReplaced = 3;

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

  /// Whether a conversion was asked for that is not known, since the last time.
  bool TakeHasBounds() { return std::exchange(has_bounds_, false); }

 private:
  KnownCosts& known_;
  const OriginalVariants& original_;
  bool has_bounds_ = false;
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

double SumOf(const CoverPenalties& penalties) {
  double seconds = penalties.transition + penalties.toolchain_switch;
  for (const CoverConversion& conversion : penalties.conversions) seconds += conversion.seconds;
  return seconds;
}

}  // namespace

KnownCosts::Cost KnownCosts::Of(VariantIndex variant) {
  const auto [cost, is_new] = by_class_.emplace(partitioner_.ClassOf(variant), Cost{});
  if (is_new) {
    const bool is_known = partitioner_.IsAtHand(variant);
    cost->second = {is_known ? partitioner_.Exact(variant) : partitioner_.LowerBound(variant), !is_known};
  }
  return cost->second;
}

AlternativeFinder::AlternativeFinder(Partitioner& partitioner, const Cover& cover, Allowed allowed)
    : partitioner_(partitioner),
      candidates_(partitioner.candidates()),
      cover_(cover),
      allowed_(std::move(allowed)),
      known_(partitioner),
      starting_at_(partitioner.Problem().StartingAt()),
      holding_(partitioner.Problem().num_positions),
      owner_(partitioner.Problem().num_positions) {
  std::set<const Toolchain*> with_candidates;
  for (const CandidateIndex i : candidates_.candidates().indices()) {
    if (allowed_(i)) with_candidates.insert(candidates_.ToolchainOf(i));
  }
  std::ranges::copy_if(candidates_.toolchains(), std::back_inserter(toolchains_),
                       [&](const Toolchain* toolchain) { return with_candidates.contains(toolchain); });
  for (const VariantIndex v : partitioner.Problem().variants.indices()) {
    for (const Position position : At(v).covers) holding_[position].push_back(v);
  }
  for (size_t i = 0; i < cover_.variants.size(); ++i) {
    for (const Position position : At(cover_.variants[i]).covers) owner_[position] = i;
  }
  PriceCover();
}

bool AlternativeFinder::IsExplained() const { return seconds_ > 0 && seconds_ < kInfinity; }

void AlternativeFinder::PriceCover() {
  OriginalVariants original;
  std::vector<VariantIndex> renumbered;
  for (const VariantIndex v : cover_.variants) {
    renumbered.push_back(original.next());
    original.push_back(v);
  }
  NotingCosts costs(known_, original);
  const auto penalties = PenaltiesOf(partitioner_.Problem().Of(original), renumbered, costs);
  if (!penalties) {
    seconds_ = kInfinity;
    return;
  }
  penalties_ = *penalties;
  for (size_t i = 0; i < penalties_.size(); ++i) {
    seconds_ += known_.Of(cover_.variants[i]).seconds + SumOf(penalties_[i]);
    for (const CoverConversion& one : penalties_[i].conversions) converted_.emplace(one.value, one.from, one.to);
  }
}

AlternativeFinder::Ways AlternativeFinder::Within(size_t number) {
  const VariantIndex chosen = cover_.variants[number];
  const std::vector<VariantIndex> within = VariantsWithin(chosen, At(chosen).covers);
  Ways ways;
  size_t num_toolchains = 0;
  for (const Toolchain* toolchain : toolchains_) {
    std::vector<VariantIndex> own;
    std::ranges::copy_if(within, std::back_inserter(own),
                         [&](VariantIndex v) { return candidates_.CandidateOf(v).toolchain == toolchain; });
    num_toolchains += own.empty() ? 0 : 1;
    std::string why_not = WhyNot(chosen, *toolchain, own);
    const Cheapest best = why_not.empty() ? CheapestOf({number}, own) : Cheapest();
    if (best.empty()) {
      if (why_not.empty()) why_not = "no choice of its candidates computes just these nodes";
      ways.refusals[toolchain] = why_not;
    }
    std::ranges::copy(best, std::back_inserter(ways.alternatives));
  }
  // The cheapest by a single toolchain is one of those above.
  for (const CoverAlternative& mix : num_toolchains > 1 ? CheapestOf({number}, within) : Cheapest()) {
    if (mix.toolchain == nullptr) ways.alternatives.push_back(mix);
  }
  std::ranges::stable_sort(ways.alternatives, {},
                           [](const CoverAlternative& one) { return std::pair(one.is_bound, one.extra_seconds); });
  return ways;
}

std::vector<CoverAlternative> AlternativeFinder::Around(size_t number) {
  const VariantIndex chosen = cover_.variants[number];
  const std::set<size_t> replaced = Neighbours(number);
  if (replaced.size() == 1) return {};
  std::vector<Position> positions;
  for (const size_t one : replaced) std::ranges::copy(At(cover_.variants[one]).covers, std::back_inserter(positions));
  std::ranges::sort(positions);
  Cheapest found = CheapestOf(replaced, VariantsWithin(chosen, positions));
  std::erase_if(found, [](const CoverAlternative& one) { return one.replaces.size() == 1; });  // found within, too
  return found;
}

/// Numbers of the variants, `number` included, with which an allowed candidate that reaches over few of them overlaps
/// beside `number`.
std::set<size_t> AlternativeFinder::Neighbours(size_t number) {
  std::set<size_t> neighbours{number};
  for (const Position position : At(cover_.variants[number]).covers) {
    for (const VariantIndex v : holding_[position]) {
      std::set<size_t> touched;
      for (const Position other : At(v).covers) {
        touched.insert(owner_[other]);
        if (touched.size() > kMostReplaced) break;
      }
      if (touched.size() < 2 || touched.size() > kMostReplaced) continue;
      if (std::ranges::includes(neighbours, touched)) continue;
      if (allowed_(candidates_.variant(v).candidate) && known_.Of(v).seconds < kInfinity) {
        neighbours.insert(touched.begin(), touched.end());
      }
    }
  }
  return neighbours;
}

/// Returns the allowed variants that can be run and cover only `positions`, except those of the candidate of `chosen`.
std::vector<VariantIndex> AlternativeFinder::VariantsWithin(VariantIndex chosen,
                                                            const std::vector<Position>& positions) {
  std::vector<VariantIndex> within;
  for (const Position position : positions) {
    for (const VariantIndex v : starting_at_[position]) {
      const CandidateIndex candidate = candidates_.variant(v).candidate;
      if (candidate == candidates_.variant(chosen).candidate || !allowed_(candidate)) continue;
      if (std::ranges::includes(positions, At(v).covers) && known_.Of(v).seconds < kInfinity) within.push_back(v);
    }
  }
  return within;
}

/// Returns the cheapest cover with some of `within` in the place of `replaced` of which all costs are known, and one
/// with bounds if it costs less by these.
AlternativeFinder::Cheapest AlternativeFinder::CheapestOf(const std::set<size_t>& replaced,
                                                          const std::vector<VariantIndex>& within) {
  std::vector<VariantIndex> measured;
  std::ranges::copy_if(within, std::back_inserter(measured), [&](VariantIndex v) { return !known_.Of(v).is_bound; });
  Cheapest found;
  if (const std::optional<CoverAlternative> known = Search(replaced, measured)) found.push_back(*known);
  if (measured.size() == within.size()) return found;
  const std::optional<CoverAlternative> bound = Search(replaced, within);
  if (bound && (found.empty() || bound->extra_seconds < found.front().extra_seconds)) found.push_back(*bound);
  return found;
}

std::optional<CoverAlternative> AlternativeFinder::Search(const std::set<size_t>& replaced,
                                                          const std::vector<VariantIndex>& within) {
  OriginalVariants original;
  VariantList variants;
  const auto add = [&](VariantIndex v) {
    original.push_back(v);
    variants.push_back(candidates_.variant(v));
  };
  for (size_t i = 0; i < cover_.variants.size(); ++i) {
    if (!replaced.contains(i)) add(cover_.variants[i]);
  }
  for (const VariantIndex v : within) add(v);
  const CoverProblem problem = partitioner_.Problem().Of(original);
  SelectedCosts costs(known_, original);
  const SearchResult found = FindCovers(problem, candidates_.candidates(), variants, costs, {});
  if (found.covers.empty()) return std::nullopt;
  const std::vector<VariantIndex>& renumbered = found.covers[0].variants;
  costs.TakeHasBounds();
  const auto penalties = PenaltiesOf(problem, renumbered, costs);
  if (!penalties) return std::nullopt;
  CoverAlternative alternative;
  alternative.is_bound = costs.TakeHasBounds();
  const std::set<VariantIndex> before(cover_.variants.begin(), cover_.variants.end());
  std::set<VariantIndex> now;
  std::set<const Toolchain*> toolchains;
  double seconds = 0;
  for (size_t i = 0; i < renumbered.size(); ++i) {
    const VariantIndex v = original[renumbered[i]];
    const KnownCosts::Cost cost = known_.Of(v);
    seconds += cost.seconds + SumOf((*penalties)[i]);
    for (const CoverConversion& one : (*penalties)[i].conversions) {
      if (!converted_.contains({one.value, one.from, one.to})) alternative.conversions.push_back(one);
    }
    now.insert(v);
    if (before.contains(v)) continue;
    alternative.variants.push_back(v);
    alternative.own_seconds += cost.seconds;
    alternative.is_bound = alternative.is_bound || cost.is_bound;
    toolchains.insert(candidates_.CandidateOf(v).toolchain);
  }
  for (size_t i = 0; i < cover_.variants.size(); ++i) {
    if (now.contains(cover_.variants[i])) continue;
    alternative.replaces.push_back(i);
    alternative.replaced_seconds += known_.Of(cover_.variants[i]).seconds;
  }
  if (toolchains.size() == 1) alternative.toolchain = *toolchains.begin();
  const double extra = seconds - seconds_;
  alternative.extra_seconds = std::abs(extra) < kRounding * seconds_ ? 0 : extra;
  return alternative;
}

/// Why `own`, the variants of `toolchain` within `chosen`, cannot take its place; empty if they may.
std::string AlternativeFinder::WhyNot(VariantIndex chosen, const Toolchain& toolchain,
                                      const std::vector<VariantIndex>& own) {
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
std::string AlternativeFinder::WhyOpen(int node, const Toolchain& toolchain) {
  std::string why;
  for (const PartitionSpec& spec : candidates_.specs()) {
    if (spec.toolchain != &toolchain) continue;
    why = partitioner_.WhyNoneRuns(node, spec, [&](VariantIndex v) { return known_.Of(v).seconds < kInfinity; });
    if (why.empty()) break;
  }
  return fmt::format("'{}': {}", candidates_.graph().LabelAt(node),
                     why.empty() ? "no other candidate with it fits into these nodes" : why);
}

}  // namespace collage
