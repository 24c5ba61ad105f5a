// cover_portfolio.cc: the searches of one compilation, in the order in which their measurements serve most.
#include "driver/covers/cover_portfolio.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "driver/covers/greedy_cover.h"
#include "driver/precision_budget.h"
#include "support/stopwatch.h"

namespace collage {
namespace {

// A cover that costs so much more than the best mix does not win: sums are seldom wrong by as much.
constexpr double kSideMargin = 1.08;

// Own choices first, then few candidates, then all: when time runs out there is a cover, and what was measured serves
// all. Each step may spend the budget up to its share.
constexpr double kGreedyShare = 0.3;
constexpr double kPrimaryShare = 0.6;

}  // namespace

FoundCovers CoverPortfolio::Search(bool is_first) {
  const bool searches = options_.partition_for.empty();
  const auto set_budget = [&](double share) {
    estimator_.SetBudget(options_.budget_seconds * (is_first && searches ? share : 1));
  };
  FoundCovers found;
  set_budget(kGreedyShare);
  std::vector<NamedCover> baselines = Baselines(found.stuck_at);
  std::vector<Cover> own;
  for (const NamedCover& one : baselines) own.push_back(one.cover);
  if (searches) AddStep(own, 0);  // costs of switching are not wanted otherwise
  if (searches && options_.search_with) {
    set_budget(1);
    AddCustom(found);
  } else if (searches) {
    AddMixes(set_budget, found);
  }
  found.covers.insert(found.covers.end(), baselines.begin(), baselines.end());
  return found;
}

FoundCovers CoverPortfolio::OwnChoices() {
  FoundCovers found;
  estimator_.SetBudget(options_.budget_seconds * kGreedyShare);
  found.covers = Baselines(found.stuck_at);
  return found;
}

/// How much faster a cover may be that the best mix is not exchanged for.
double CoverPortfolio::Tolerance() const { return std::max(estimator_.Noise(), options_.until.value_or(0)); }

/// Notes the best cover so far whose costs are all known, at what it costs by now, and the last bound. A cost that was
/// measured again may have come out below that bound: then it bounds nothing more than what was found.
void CoverPortfolio::AddStep(const std::vector<Cover>& covers, double least_seconds) {
  SearchStep step{SteadySeconds(), estimator_.counts().measured, 0, least_seconds};
  const std::optional<Cover> before = best_so_far_;
  const auto consider = [&](const Cover& cover) {
    const auto is_known = [&](VariantIndex variant) { return partitioner_.IsAtHand(variant); };
    if (cover.num_unknown > 0 || !std::ranges::all_of(cover.variants, is_known)) return;
    const double seconds = partitioner_.SecondsOf(cover);
    if (!std::isfinite(seconds) || (step.best_seconds > 0 && step.best_seconds <= seconds)) return;
    step.best_seconds = seconds;
    best_so_far_ = cover;
  };
  if (before) consider(*before);
  for (const Cover& cover : covers) consider(cover);
  if (step.least_seconds == 0 && !steps_.empty()) step.least_seconds = steps_.back().least_seconds;
  if (step.best_seconds > 0) step.least_seconds = std::min(step.least_seconds, step.best_seconds);
  steps_.push_back(step);
}

/// Searches that only find what else may be worth building whole need not be as exact as the noise allows.
SearchOptions CoverPortfolio::SideSearch() const {
  return {.strategy = CostSearch(), .tolerance = std::max(2 * estimator_.Noise(), Tolerance())};
}

/// Each toolchain's own choice, and what FuseOps makes of those that fuse as it does.
std::vector<NamedCover> CoverPortfolio::Baselines(std::vector<int>& stuck_at) {
  const PassContext& context = options_.pass_context;
  const int64_t max_calls = context.opt_level > 0 ? context.ConfigInt("relay.FuseOps.max_depth") : 1;
  const bool searches = options_.partition_for.empty();
  std::vector<NamedCover> covers;
  const auto add = [&](const std::string& name, std::optional<Cover> cover) {
    if (cover) covers.push_back({name, true, *std::move(cover), /*is_baseline=*/true});
  };
  for (const Toolchain* toolchain : toolchains_) {
    if (selection_.IsDeferred(*toolchain)) continue;
    if (!searches && !GoesBy(*toolchain, options_.partition_for)) continue;
    add(toolchain->name(), GreedyCover(partitioner_, *toolchain, {.fall_back = selection_.native()}, &stuck_at));
    if (!searches || toolchain->fusion_style() != FusionStyle::kTVMFusion) continue;
    add(toolchain->name() + kFuseOps, FuseOpsCover(partitioner_, *toolchain, selection_.native(), max_calls));
  }
  return covers;
}

void CoverPortfolio::AddCustom(FoundCovers& found) {
  const SearchResult own =
      partitioner_.Search(IsEager(), {.num_covers = options_.num_covers, .custom = options_.search_with});
  found.num_states = own.num_states;
  AddNumbered(own, found);
}

void CoverPortfolio::AddNumbered(const SearchResult& result, FoundCovers& found) {
  const std::vector<int> stuck_at = partitioner_.NodesAt(result.stuck_at);
  found.stuck_at.insert(found.stuck_at.begin(), stuck_at.begin(), stuck_at.end());
  if (!result.covers.empty() && result.covers[0].num_unknown == 0) {
    found.certificate = Certificate{result.is_exact, result.num_dropped, partitioner_.candidates().capped(),
                                    result.covers[0].seconds, result.least_seconds};
  }
  for (size_t i = 0; i < result.covers.size(); ++i) {
    found.covers.push_back({i == 0 ? kBestCover : fmt::format("{}-{}", kBestCover, i + 1), false, result.covers[i]});
  }
}

void CoverPortfolio::AddMixes(const std::function<void(double share)>& set_budget, FoundCovers& found) {
  const std::function<bool(CandidateIndex)> is_eager = IsEager();
  set_budget(kPrimaryShare);
  const SearchResult primary = partitioner_.Search(
      [&](CandidateIndex candidate) { return is_eager(candidate) && partitioner_.candidates().IsPrimary(candidate); },
      SideSearch());
  AddStep(primary.covers, 0);
  set_budget(1);
  const SearchResult best = partitioner_.Search(
      is_eager, {.strategy = CostSearch(), .num_covers = options_.num_covers, .tolerance = Tolerance()});
  AddStep(best.covers, best.least_seconds);
  found.num_states = primary.num_states + best.num_states;
  AddNumbered(best, found);
  if (!primary.covers.empty()) found.covers.push_back({"collage-primary", false, primary.covers[0]});
  AddStandard(found);
  SearchOptions side = SideSearch();
  if (!best.covers.empty()) side.limit = best.covers[0].seconds * kSideMargin;
  AddPairs(side, found);
  AddSingle(side, found);
}

/// Each toolchain's best cover of its own.
void CoverPortfolio::AddSingle(const SearchOptions& options, FoundCovers& found) {
  for (const Toolchain* toolchain : toolchains_) {
    if (selection_.IsDeferred(*toolchain)) continue;
    const SearchResult own = partitioner_.Search(
        [&](CandidateIndex candidate) { return partitioner_.candidates().ToolchainOf(candidate) == toolchain; },
        options);
    if (!own.covers.empty()) found.covers.push_back({toolchain->name() + kOwnSearch, true, own.covers[0]});
  }
}

/// The best mix of what computes as exactly as the model says, should all that is faster be off by too much.
void CoverPortfolio::AddStandard(FoundCovers& found) {
  if (std::none_of(toolchains_.begin(), toolchains_.end(), [](const Toolchain* one) { return IsLower(*one); })) return;
  const SearchResult standard = partitioner_.Search(
      [&](CandidateIndex candidate) { return !IsLower(*partitioner_.candidates().ToolchainOf(candidate)); },
      {.strategy = CostSearch(), .tolerance = Tolerance()});
  if (!standard.covers.empty()) found.covers.push_back({kStandardCover, false, standard.covers[0]});
}

std::optional<Cover> CoverPortfolio::SearchAmong(const std::function<bool(CandidateIndex candidate)>& may,
                                                 FoundCovers& found) {
  const SearchResult result = partitioner_.Search(may, {.strategy = CostSearch(), .tolerance = Tolerance()});
  found.num_states += result.num_states;
  return result.covers.empty() ? std::nullopt : std::optional(result.covers[0]);
}

std::function<bool(CandidateIndex candidate)> CoverPortfolio::IsEager() const {
  return [this](CandidateIndex candidate) {
    return !selection_.IsDeferred(*partitioner_.candidates().ToolchainOf(candidate));
  };
}

/// The best mixes of two toolchains, where there are more: covers that differ in more than a partition or two, should
/// the costs of one toolchain mislead.
void CoverPortfolio::AddPairs(const SearchOptions& options, FoundCovers& found) {
  if (toolchains_.size() < 3) return;
  for (size_t i = 0; i < toolchains_.size(); ++i) {
    for (size_t j = i + 1; j < toolchains_.size(); ++j) {
      if (selection_.IsDeferred(*toolchains_[i]) || selection_.IsDeferred(*toolchains_[j])) continue;
      if (WhyIncompatible(*toolchains_[i], *toolchains_[j])) continue;
      const SearchResult pair = partitioner_.Search(
          [&](CandidateIndex candidate) {
            const Toolchain* owner = partitioner_.candidates().ToolchainOf(candidate);
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
