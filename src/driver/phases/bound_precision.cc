// bound_precision.cc: covers whose results are off by no more than CompileOptions::max_error, as a whole.
#include <algorithm>
#include <cmath>
#include <utility>

#include "driver/compilation.h"
#include "driver/covers/partitioning_json.h"
#include "driver/phases/cover_search_state.h"
#include "driver/precision_budget.h"

namespace collage {
namespace {

// The gain over the best mix in full precision, as a fraction, from which keeping values in a narrower type is worth
// finding out how much of it is exact enough.
constexpr double kWorthTrying = 0.01;

using MayTake = std::function<bool(CandidateIndex candidate)>;

void AddBehindBest(NamedCover cover, FoundCovers& found) {
  found.covers.insert(std::ranges::find(found.covers, kStandardCover, &NamedCover::name), std::move(cover));
}

/// The covers within the budget of one search.
class PrecisionPhase {
 public:
  PrecisionPhase(CoverSearchState& search, const ToolchainSelection& selection, double allowed, FoundCovers& found)
      : search_(search), selection_(selection), allowed_(allowed), found_(found) {}

  /// If `best` exceeds the budget, adds the best covers that do not.
  BoundedMix Run(const Cover& best, const Cover& standard, int num_lower) {
    BoundedMix bounded;
    bounded.allowed = allowed_;
    bounded.best_partitions = num_lower;
    bounded.best_error = ErrorOf(best);
    if (bounded.best_error <= allowed_) {
      bounded.partitions = num_lower;
      bounded.error = bounded.best_error;
      return bounded;
    }
    if (!std::isfinite(bounded.best_error)) return bounded;
    const auto eager = [&, is_eager = search_.portfolio.IsEager()](const MayTake& may) {
      return Among([&](CandidateIndex candidate) { return is_eager(candidate) && may(candidate); });
    };
    std::optional<BoundedCover> within = Bounded(best, standard, eager);
    std::optional<BoundedCover> deferred = FindDeferred(best, standard);
    if (deferred && (!within || deferred->cover.seconds < within->cover.seconds)) std::swap(deferred, within);
    if (deferred) AddBehindBest({"collage-bounded-2", false, deferred->cover}, found_);
    if (within) AddBehindBest({"collage-bounded", false, within->cover}, found_);
    if (within) {
      bounded.partitions = CountLower(search_.partitioner, within->cover);
      bounded.error = within->error;
    }
    return bounded;
  }

 private:
  using Search = std::function<std::optional<Cover>(const MayTake& may)>;

  double ErrorOf(const Cover& cover) const {
    return search_.errors.Of(PartitioningToJson(search_.candidates.graph(), search_.partitioner.ChosenOf(cover)));
  }
  std::optional<Cover> Among(const MayTake& may) { return search_.portfolio.SearchAmong(may, found_); }
  std::optional<BoundedCover> Bounded(const Cover& best, const Cover& standard, const Search& search,
                                      const IsRationed& is_rationed = IsLower) {
    return FindBoundedCover(
        search_.partitioner, best, standard, allowed_, search, [&](const Cover& cover) { return ErrorOf(cover); },
        is_rationed);
  }

  /// Finds a bounded cover with deferred toolchains, if that gains: in their type as much as fits; if all fits,
  /// `best`'s lower precision beside it as far as that fits, too.
  std::optional<BoundedCover> FindDeferred(const Cover& best, const Cover& standard) {
    const std::vector<const Toolchain*>& toolchains = selection_.toolchains();
    const auto is_deferred = [&](const Toolchain& toolchain) { return selection_.IsDeferred(toolchain); };
    if (std::ranges::none_of(toolchains, [&](const Toolchain* one) { return is_deferred(*one); })) return std::nullopt;
    const auto is_eager = [&](const Toolchain& toolchain) { return IsLower(toolchain) && !is_deferred(toolchain); };
    const auto without_eager = [&](const MayTake& may) {
      return Among([&](CandidateIndex candidate) {
        return !is_eager(*search_.candidates.ToolchainOf(candidate)) && may(candidate);
      });
    };
    const std::optional<Cover> kept = without_eager([](CandidateIndex) { return true; });
    if (!kept || kept->seconds > standard.seconds * (1 - kWorthTrying)) return std::nullopt;
    const double error = ErrorOf(*kept);
    if (error > allowed_) return Bounded(*kept, standard, without_eager);
    std::optional<BoundedCover> more = Bounded(
        best, *kept, [&](const MayTake& may) { return Among(may); }, is_eager);
    return more ? more : BoundedCover{*kept, error};
  }

  CoverSearchState& search_;
  const ToolchainSelection& selection_;
  double allowed_;
  FoundCovers& found_;
};

}  // namespace

void Compilation::BoundPrecision(CoverSearchState& search, FoundCovers& found) {
  const auto named = std::ranges::find(found.covers, kStandardCover, &NamedCover::name);
  if (named == found.covers.end()) return;
  const Cover standard = named->cover;
  const Cover best = found.covers.front().cover;
  const int num_lower = CountLower(search.partitioner, best);
  if (num_lower == 0) return;
  Phase("precision");
  found.bounded = PrecisionPhase(search, *selection_, *options_.max_error, found).Run(best, standard, num_lower);
}

}  // namespace collage
