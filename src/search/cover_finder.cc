// cover_finder.cc: the searches of one compilation, in the order in which their measurements serve most.
#include "search/cover_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "search/bounded_mix.h"

namespace collage {
namespace {

// Timings of one candidate differ by more than this from one day to the next.
constexpr double kTolerance = 0.005;
// Searches that only find what else may be worth building whole need not be as exact …
constexpr double kSideTolerance = 0.01;
// … and what costs so much more than the best mix does not win: sums are seldom wrong by as much.
constexpr double kSideMargin = 1.08;

constexpr const char* kStandard = "collage-standard";

}  // namespace

/// Searches until a pass measures nothing, and nothing that noise may have chosen is left in the best mix: its covers
/// then follow from known costs alone, and whoever compiles the model again finds the same.
FoundCovers CoverFinder::Run() {
  const bool searches = options_.partition_for.empty();
  for (bool is_first = true;; is_first = false) {
    const auto num_timed = [&] { return estimator_.counts().measured + estimator_.counts().remeasured; };
    const int64_t before = num_timed();
    FoundCovers found = SearchOnce(is_first);
    if (searches && !found.covers.empty()) partitioner_.Settle(found.covers.front().cover);
    if (num_timed() != before) continue;
    if (searches && error_of_) AddBounded(found);
    if (num_timed() != before) continue;
    if (searches && IsEvolutionary()) AddEvolved(found);
    return found;
  }
}

/// The graph level of the paper: covers judged by what they take end to end.
void CoverFinder::AddEvolved(FoundCovers& found) {
  if (options_.progress != nullptr) options_.progress->Phase("evolution");
  SearchOptions options{.strategy = options_.search, .num_covers = options_.num_covers};
  options.evolution.budget_seconds = options_.evolution_seconds;
  options.evolution.population = options_.evolution_population;
  options.evolution.seed = options_.evolution_seed;
  options.fitness = judge_;
  const SearchResult evolved = partitioner_.Search([](int) { return true; }, options);
  found.num_states += evolved.num_states;
  for (size_t i = 0; i < evolved.covers.size(); ++i) {
    const std::string number = i == 0 ? "" : fmt::format("-{}", i + 1);
    found.covers.push_back({"collage-evolved" + number, false, evolved.covers[i]});
  }
}

/// What each toolchain would choose by itself, the best mixes, and each toolchain's best cover of its own.
FoundCovers CoverFinder::SearchOnce(bool is_first) {
  // Own choices first, then few candidates, then all: when time runs out there is a cover, and what was measured
  // serves all.
  constexpr double kGreedyShare = 0.3;
  constexpr double kPrimaryShare = 0.6;
  const bool searches = options_.partition_for.empty();
  const auto set_budget = [&](double share) {
    estimator_.SetBudget(options_.budget_seconds * (is_first && searches ? share : 1));
  };
  FoundCovers found;
  set_budget(kGreedyShare);
  std::vector<NamedCover> greedy_covers;
  for (const Toolchain* toolchain : toolchains_) {
    if (!searches && !GoesBy(*toolchain, options_.partition_for)) continue;
    const std::optional<Cover> greedy = partitioner_.GreedyCover(*toolchain, participants_.native(), &found.stuck_at);
    if (greedy) greedy_covers.push_back({toolchain->name(), true, *greedy});
  }
  if (searches && options_.search_with) {
    set_budget(1);
    const SearchResult own = partitioner_.Search([](int) { return true; },
                                                 {.num_covers = options_.num_covers, .custom = options_.search_with});
    found.num_states = own.num_states;
    found.stuck_at.insert(found.stuck_at.begin(), own.stuck_at.begin(), own.stuck_at.end());
    for (size_t i = 0; i < own.covers.size(); ++i) {
      found.covers.push_back({i == 0 ? "collage" : fmt::format("collage-{}", i + 1), false, own.covers[i]});
    }
  } else if (searches) {
    set_budget(kPrimaryShare);
    const SearchResult primary = partitioner_.Search([&](int candidate) { return partitioner_.IsPrimary(candidate); },
                                                     {.strategy = CostSearch(), .tolerance = kSideTolerance});
    set_budget(1);
    const SearchResult best =
        partitioner_.Search([](int) { return true; },
                            {.strategy = CostSearch(), .num_covers = options_.num_covers, .tolerance = kTolerance});
    found.num_states = primary.num_states + best.num_states;
    found.stuck_at.insert(found.stuck_at.begin(), best.stuck_at.begin(), best.stuck_at.end());
    for (size_t i = 0; i < best.covers.size(); ++i) {
      found.covers.push_back({i == 0 ? "collage" : fmt::format("collage-{}", i + 1), false, best.covers[i]});
    }
    if (!primary.covers.empty()) found.covers.push_back({"collage-primary", false, primary.covers[0]});
    AddStandard(found);
    SearchOptions side{.strategy = CostSearch(), .tolerance = kSideTolerance};
    if (!best.covers.empty()) side.limit = best.covers[0].seconds * kSideMargin;
    AddPairs(side, found);
    for (const Toolchain* toolchain : toolchains_) {
      const SearchResult own =
          partitioner_.Search([&](int candidate) { return partitioner_.ToolchainOf(candidate) == toolchain; }, side);
      if (!own.covers.empty()) found.covers.push_back({toolchain->name() + "-search", true, own.covers[0]});
    }
  }
  found.covers.insert(found.covers.end(), greedy_covers.begin(), greedy_covers.end());
  return found;
}

/// The best mix of what computes as exactly as the model says, should all that is faster be off by too much.
void CoverFinder::AddStandard(FoundCovers& found) {
  if (std::none_of(toolchains_.begin(), toolchains_.end(), [](const Toolchain* one) { return IsLower(*one); })) return;
  const SearchResult standard =
      partitioner_.Search([&](int candidate) { return !IsLower(*partitioner_.ToolchainOf(candidate)); },
                          {.strategy = CostSearch(), .tolerance = kTolerance});
  if (!standard.covers.empty()) found.covers.push_back({kStandard, false, standard.covers[0]});
}

/// The best mix of those that are off by no more than is allowed, should the best of all be off by more.
void CoverFinder::AddBounded(FoundCovers& found) {
  const auto standard = std::ranges::find(found.covers, kStandard, &NamedCover::name);
  if (standard == found.covers.end()) return;
  const Cover best = found.covers.front().cover;
  const int num_lower = CountLower(partitioner_, best);
  if (num_lower == 0) return;
  if (options_.progress != nullptr) options_.progress->Phase("precision");
  BoundedMix bounded;
  bounded.allowed = *options_.max_error;
  bounded.best_partitions = num_lower;
  bounded.best_error = error_of_(best);
  if (bounded.best_error <= bounded.allowed) {
    bounded.partitions = num_lower;
    bounded.error = bounded.best_error;
  } else if (std::isfinite(bounded.best_error)) {
    const auto search = [&](const std::function<bool(int)>& may) -> std::optional<Cover> {
      const SearchResult result = partitioner_.Search(may, {.strategy = CostSearch(), .tolerance = kTolerance});
      found.num_states += result.num_states;
      return result.covers.empty() ? std::nullopt : std::optional(result.covers[0]);
    };
    const std::optional<BoundedCover> within =
        FindBoundedCover(partitioner_, best, standard->cover, bounded.allowed, search, error_of_);
    if (within) {
      bounded.partitions = CountLower(partitioner_, within->cover);
      bounded.error = within->error;
      found.covers.insert(standard, {"collage-bounded", false, within->cover});
    }
  }
  found.bounded = bounded;
}

/// The best mixes of two toolchains, where there are more: covers that differ in more than a partition or two, should
/// the costs of one toolchain mislead.
void CoverFinder::AddPairs(const SearchOptions& options, FoundCovers& found) {
  if (toolchains_.size() < 3) return;
  for (size_t i = 0; i < toolchains_.size(); ++i) {
    for (size_t j = i + 1; j < toolchains_.size(); ++j) {
      if (WhyIncompatible(*toolchains_[i], *toolchains_[j])) continue;
      const SearchResult pair = partitioner_.Search(
          [&](int candidate) {
            const Toolchain* owner = partitioner_.ToolchainOf(candidate);
            return owner == toolchains_[i] || owner == toolchains_[j];
          },
          options);
      if (pair.covers.empty()) continue;
      found.covers.push_back(
          {fmt::format("collage-{}-{}", toolchains_[i]->name(), toolchains_[j]->name()), false, pair.covers[0]});
    }
  }
}

}  // namespace collage
