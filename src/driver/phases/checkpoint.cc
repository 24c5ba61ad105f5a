// checkpoint.cc: executables that are written before the search has ended, so that there is one whenever it is stopped.
#include <algorithm>

#include "collage/support/error.h"
#include "driver/compilation.h"
#include "driver/phases/contender_list.h"
#include "driver/phases/cover_search_state.h"
#include "driver/write_executable.h"
#include "support/stopwatch.h"

namespace collage {
namespace {

// A cover whose costs add up to so much less than those of the one that is written is worth a comparison.
constexpr double kWorthwhile = 0.99;
// For timing the two that are compared, about.
constexpr double kTimedSeconds = 1;
// Seconds of a budget from which on it is found out what other toolchains would do by themselves.
constexpr double kBudgetForOthers = 20;
// The name of the executable that is in its place, beside the one that may replace it.
constexpr const char* kWritten = "collage-before";

bool IsKnown(const Partitioner& partitioner, const Cover& cover) {
  return cover.num_unknown == 0 && std::ranges::all_of(cover.variants, [&](VariantIndex variant) {
           return partitioner.IsKnownToCompile(variant);
         });
}

}  // namespace

bool Compilation::IsStopped() const { return options_.should_stop && options_.should_stop(); }

/// The best cover all of whose costs are known, or else the native toolchain's own; null if there is neither.
const NamedCover* Compilation::BestSoFar(const CoverSearchState& search, const FoundCovers& found) const {
  const NamedCover* best = nullptr;
  const NamedCover* own = nullptr;
  for (const NamedCover& one : found.covers) {
    const bool is_better = best == nullptr || one.cover.seconds < best->cover.seconds;
    if (IsKnown(search.partitioner, one.cover) && is_better) best = &one;
    if (one.is_single && selection_->native() != nullptr && one.name == selection_->native()->name()) own = &one;
  }
  return best != nullptr ? best : own;
}

/// Some covers, and the one that is written.
std::vector<ContenderModule> Compilation::ContendersSoFar(const CoverSearchState& search,
                                                          const std::vector<const NamedCover*>& covers) const {
  ContenderList contenders(search.partitioner, search.form.module);
  for (const NamedCover* cover : covers) contenders.Add(*cover);
  if (checkpoints_.written) contenders.AddGiven(checkpoints_.written->contender);
  return contenders.contenders();
}

/// The choices that toolchains other than the native one make by themselves.
std::vector<const NamedCover*> Compilation::OwnChoicesOfOthers(const FoundCovers& found) const {
  std::vector<const NamedCover*> choices;
  for (const NamedCover& one : found.covers) {
    const bool is_own = std::ranges::any_of(toolchains(), [&](const Toolchain* toolchain) {
      return toolchain != selection_->native() && toolchain->name() == one.name;
    });
    if (is_own && one.is_baseline) choices.push_back(&one);
  }
  return choices;
}

/// Whether `best` is worth a comparison with what is written, by what is known of their costs.
bool Compilation::MayReplaceWritten(const CoverSearchState& search, const NamedCover* best) const {
  if (best == nullptr) return false;
  const std::optional<WrittenCover>& written = checkpoints_.written;
  if (!written) return true;
  if (best->cover.variants == written->cover.variants) return false;
  const bool is_costed = IsKnown(search.partitioner, written->cover);
  const double seconds = is_costed ? search.partitioner.SecondsOf(written->cover) : written->seconds;
  return best->cover.seconds < kWorthwhile * seconds;
}

/// Writes the best cover so far, if it is right and faster than what is written, and notes when the next is due.
/// `search_seconds`: what the search took that found it. The first is compared with each toolchain's own choice, on the
/// clock: costs say little about them yet, and a kernel that one toolchain lacks may make it twice as slow as others.
void Compilation::Checkpoint(CoverSearchState& search, const FoundCovers& found, double search_seconds) {
  double seconds = 0;
  const bool is_first = !checkpoints_.written;
  if (const NamedCover* best = BestSoFar(search, found); MayReplaceWritten(search, best)) {
    Phase("checkpoint");
    const Stopwatch stopwatch(seconds);
    WriteFaster(search, {best});
    Phase("search");
  }
  const std::vector<const NamedCover*> others = OwnChoicesOfOthers(found);
  if (is_first && checkpoints_.written && !others.empty() && options_.budget_seconds >= kBudgetForOthers &&
      !IsStopped()) {
    Phase("checkpoint");
    WriteFaster(search, others);
    Phase("search");
  }
  checkpoints_.Made(seconds, search_seconds);
  search.estimator.ForgetSkipped();
  if (options_.progress == nullptr || !checkpoints_.written) return;
  const std::optional<Certificate>& certificate = found.certificate;
  options_.progress->Written(checkpoints_.written->seconds,
                             certificate ? std::optional(certificate->gap()) : std::nullopt);
}

/// Writes the fastest of some covers, unless what is written is faster.
void Compilation::WriteFaster(const CoverSearchState& search, const std::vector<const NamedCover*>& covers) {
  const std::vector<ContenderModule> contenders = ContendersSoFar(search, covers);
  PlayOffResult result;
  try {
    result = Compare(contenders, kTimedSeconds, /*is_checkpoint=*/true);
  } catch (const Error& error) {
    if (error.category() != ErrorCategory::kUnsupported) throw;
    return;  // what cannot be built, or is wrong, is found out again in the play-off, which says so
  } catch (const PlayOffStopped&) {
    return;  // the executable that is written stays
  }
  const Contender& winner = result.contenders[static_cast<size_t>(result.winner)];
  const auto module = std::ranges::find(contenders, winner.name, &ContenderModule::name);
  const auto cover = std::ranges::find(covers, winner.name, &NamedCover::name);
  if (cover == covers.end()) {
    checkpoints_.written->seconds = winner.p50;
    return;
  }
  report_.output_bytes = WriteExecutable(
      options_.output, [&](const std::filesystem::path& file) { return result.executable->SerialiseTo(file); },
      nullptr);
  ++report_.num_checkpoints;
  checkpoints_.written = WrittenCover{*module, (*cover)->cover, winner.p50};
  if (!module->is_single) checkpoints_.written->contender.name = kWritten;
  if (options_.on_checkpoint) options_.on_checkpoint(options_.output);
}

}  // namespace collage
