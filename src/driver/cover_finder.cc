// cover_finder.cc: the searches of one compilation, in the order in which their measurements serve most.
#include "driver/cover_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "driver/bounded_mix.h"

namespace collage {
namespace {

// Timings of one candidate differ by more than this from one day to the next.
constexpr double kTolerance = 0.005;
// Searches that only find what else may be worth building whole need not be as exact …
constexpr double kSideTolerance = 0.01;
// … and what costs so much more than the best mix does not win: sums are seldom wrong by as much.
constexpr double kSideMargin = 1.08;

// Of the best mix in full precision: what keeping values in a narrower type must gain to be worth finding out how much
// of it is exact enough.
constexpr double kWorthTrying = 0.01;

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
  const SearchResult evolved = partitioner_.Search(IsAtOnce(), options);
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
  const std::function<bool(int)> is_at_once = IsAtOnce();
  const auto set_budget = [&](double share) {
    estimator_.SetBudget(options_.budget_seconds * (is_first && searches ? share : 1));
  };
  FoundCovers found;
  set_budget(kGreedyShare);
  std::vector<NamedCover> greedy_covers;
  for (const Toolchain* toolchain : toolchains_) {
    if (participants_.Waits(*toolchain)) continue;
    if (!searches && !GoesBy(*toolchain, options_.partition_for)) continue;
    const std::optional<Cover> greedy = partitioner_.GreedyCover(*toolchain, participants_.native(), &found.stuck_at);
    if (greedy) greedy_covers.push_back({toolchain->name(), true, *greedy});
  }
  if (searches && options_.search_with) {
    set_budget(1);
    const SearchResult own =
        partitioner_.Search(is_at_once, {.num_covers = options_.num_covers, .custom = options_.search_with});
    found.num_states = own.num_states;
    found.stuck_at.insert(found.stuck_at.begin(), own.stuck_at.begin(), own.stuck_at.end());
    for (size_t i = 0; i < own.covers.size(); ++i) {
      found.covers.push_back({i == 0 ? "collage" : fmt::format("collage-{}", i + 1), false, own.covers[i]});
    }
  } else if (searches) {
    set_budget(kPrimaryShare);
    const SearchResult primary =
        partitioner_.Search([&](int candidate) { return is_at_once(candidate) && partitioner_.IsPrimary(candidate); },
                            {.strategy = CostSearch(), .tolerance = kSideTolerance});
    set_budget(1);
    const SearchResult best = partitioner_.Search(
        is_at_once, {.strategy = CostSearch(), .num_covers = options_.num_covers, .tolerance = kTolerance});
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
      if (participants_.Waits(*toolchain)) continue;
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

/// The best mixes of those that are off by no more than is allowed, should the best of all be off by more.
void CoverFinder::AddBounded(FoundCovers& found) {
  const auto named = std::ranges::find(found.covers, kStandard, &NamedCover::name);
  if (named == found.covers.end()) return;
  const Cover standard = named->cover;
  const Cover best = found.covers.front().cover;
  const int num_lower = CountLower(partitioner_, best);
  if (num_lower == 0) return;
  if (options_.progress != nullptr) options_.progress->Phase("precision");
  BoundedMix bounded;
  bounded.allowed = *options_.max_error;
  bounded.best_partitions = num_lower;
  bounded.best_error = error_of_(best);
  std::optional<BoundedCover> within;
  if (bounded.best_error <= bounded.allowed) {
    bounded.partitions = num_lower;
    bounded.error = bounded.best_error;
  } else if (std::isfinite(bounded.best_error)) {
    const auto search = [&](const std::function<bool(int)>& may) { return SearchAmong(may, found); };
    const auto at_once = [&, is_at_once = IsAtOnce()](const std::function<bool(int)>& may) {
      return search([&](int candidate) { return is_at_once(candidate) && may(candidate); });
    };
    within = FindBoundedCover(partitioner_, best, standard, bounded.allowed, at_once, error_of_);
    std::optional<BoundedCover> kept = FindKept(best, standard, found);
    if (kept && (!within || kept->cover.seconds < within->cover.seconds)) std::swap(kept, within);
    if (kept) AddBehindBest({"collage-bounded-2", false, kept->cover}, found);
    if (within) AddBehindBest({"collage-bounded", false, within->cover}, found);
  }
  if (within) {
    bounded.partitions = CountLower(partitioner_, within->cover);
    bounded.error = within->error;
  }
  found.bounded = bounded;
}

/// The same with what waits, where that gains: in its type as much as fits; if all fits, `best`'s lower precision
/// beside it as far as that fits, too.
std::optional<BoundedCover> CoverFinder::FindKept(const Cover& best, const Cover& standard, FoundCovers& found) {
  const auto waits = [&](const Toolchain& toolchain) { return participants_.Waits(toolchain); };
  if (std::ranges::none_of(toolchains_, [&](const Toolchain* one) { return waits(*one); })) return std::nullopt;
  const auto is_hasty = [&](const Toolchain& toolchain) { return IsLower(toolchain) && !waits(toolchain); };
  const auto search = [&](const std::function<bool(int)>& may) { return SearchAmong(may, found); };
  const auto without_hasty = [&](const std::function<bool(int)>& may) {
    return search([&](int candidate) { return !is_hasty(*partitioner_.ToolchainOf(candidate)) && may(candidate); });
  };
  const std::optional<Cover> kept = without_hasty([](int) { return true; });
  if (!kept || kept->seconds > standard.seconds * (1 - kWorthTrying)) return std::nullopt;
  const double allowed = *options_.max_error;
  const double error = error_of_(*kept);
  if (error > allowed) return FindBoundedCover(partitioner_, *kept, standard, allowed, without_hasty, error_of_);
  std::optional<BoundedCover> more = FindBoundedCover(partitioner_, best, *kept, allowed, search, error_of_, is_hasty);
  return more ? more : BoundedCover{*kept, error};
}

std::optional<Cover> CoverFinder::SearchAmong(const std::function<bool(int candidate)>& may, FoundCovers& found) {
  const SearchResult result = partitioner_.Search(may, {.strategy = CostSearch(), .tolerance = kTolerance});
  found.num_states += result.num_states;
  return result.covers.empty() ? std::nullopt : std::optional(result.covers[0]);
}

void CoverFinder::AddBehindBest(NamedCover cover, FoundCovers& found) {
  found.covers.insert(std::ranges::find(found.covers, kStandard, &NamedCover::name), std::move(cover));
}

std::function<bool(int candidate)> CoverFinder::IsAtOnce() const {
  return [this](int candidate) { return !participants_.Waits(*partitioner_.ToolchainOf(candidate)); };
}

/// The best mixes of two toolchains, where there are more: covers that differ in more than a partition or two, should
/// the costs of one toolchain mislead.
void CoverFinder::AddPairs(const SearchOptions& options, FoundCovers& found) {
  if (toolchains_.size() < 3) return;
  for (size_t i = 0; i < toolchains_.size(); ++i) {
    for (size_t j = i + 1; j < toolchains_.size(); ++j) {
      if (participants_.Waits(*toolchains_[i]) || participants_.Waits(*toolchains_[j])) continue;
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
