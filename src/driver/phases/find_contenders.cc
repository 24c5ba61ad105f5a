// find_contenders.cc: candidates, their costs, and the searches: which covers meet in the play-off.
#include <fmt/format.h>

#include <algorithm>

#include "collage/support/error.h"
#include "driver/compilation.h"
#include "driver/covers/alternatives.h"
#include "driver/covers/layout_analysis.h"
#include "driver/covers/partition_for_cover.h"
#include "driver/covers/partitioning_json.h"
#include "driver/phases/contender_list.h"
#include "driver/phases/cover_search_state.h"
#include "support/file.h"
#include "support/stopwatch.h"

namespace collage {

std::vector<ContenderModule> Compilation::FindContenders(bool must_cover) {
  std::vector<ContenderModule> also = AlsoGiven();  // first: a mistake in a file is told of before the search
  if (!options_.partitioning.empty()) {
    also.insert(also.begin(), GivenContender(options_.partitioning, "given"));
    return also;
  }
  ForgetSearch();  // should there have been one
  std::string stuck, stuck_in_form;
  std::vector<ContenderModule> contenders = SearchForm({module_, {}}, std::move(also), stuck);
  for (const ModelForm& form : forms_) {
    for (ContenderModule& contender : SearchForm(form, {}, stuck_in_form)) contenders.push_back(std::move(contender));
  }
  if (contenders.empty() && must_cover) {
    throw Error(ErrorCategory::kUnsupported, "no toolchain covers the model: " + stuck, model_.string());
  }
  return contenders;
}

void Compilation::ForgetSearch() {
  report_.search_seconds = 0;
  report_.num_candidates = report_.num_variants = report_.num_distinct = report_.num_states = 0;
  report_.num_measured = report_.num_remeasured = report_.num_from_database = report_.num_failed = 0;
  report_.num_below_bound = 0;
  report_.budget_spent = false;
  report_.failures.clear();
  report_.choices.clear();
  dropped_.clear();
  searched_.clear();
}

/// `stuck` says why there is no cover, if there is none.
std::vector<ContenderModule> Compilation::SearchForm(const ModelForm& form, std::vector<ContenderModule> also,
                                                     std::string& stuck) {
  CompileOptions own = options_;  // what is left of the budget
  own.budget_seconds = std::max(0.0, SearchBudget() - report_.search_seconds);
  const Stopwatch stopwatch(report_.search_seconds);
  Phase("candidates");
  auto searched = std::make_unique<SearchedForm>(SearchedForm{form, selection_->Specs()});
  searched->candidates = std::make_unique<Candidates>(form.module.main(), searched->specs, report_.num_threads);
  const Candidates& candidates = *searched->candidates;
  const bool is_first = form.owners.empty();
  report_.num_candidates += static_cast<int64_t>(candidates.candidates().size());
  report_.num_variants += static_cast<int64_t>(candidates.variants().size());
  report_.num_distinct += static_cast<int64_t>(candidates.classes().size());
  searched->estimator = MakeEstimatorFor(candidates);
  searched->partitioner = std::make_unique<Partitioner>(candidates, *searched->estimator);
  CostEstimator& estimator = *searched->estimator;
  if (options_.progress != nullptr && estimator.KnowsWhatCompiles()) options_.progress->Costs(report_.num_distinct);
  Partitioner& partitioner = *searched->partitioner;
  if (leaves_out_unknown_) partitioner.LeaveOutUnknown(selection_->native());

  Phase("search");
  CoverPortfolio portfolio(partitioner, estimator, *selection_, own);
  EndToEndErrors errors(form.module, toolchains(), *database_, Fingerprint(), PlayOffSettings());
  CoverSearchState search{form, candidates, estimator, partitioner, portfolio, errors};
  FoundCovers found = FindCovers(search);
  if (builds_covers_ && options_.partition_for.empty() && IsStopped()) {
    report_.is_stopped = true;
    ReportSearch(search, found);
    std::vector<const NamedCover*> best;
    if (const NamedCover* one = BestSoFar(search, found)) best.push_back(one);
    std::vector<ContenderModule> so_far = is_first ? ContendersSoFar(search, best) : std::vector<ContenderModule>();
    if (Explains()) Keep(std::move(searched), portfolio, std::move(found));
    return so_far;
  }
  if (options_.tuning_seconds > 0 || options_.tuning_trials > 0) {
    found = TuneSchedules(search, std::move(found));
  }
  found = WithoutDeclined(search, std::move(found));
  const int64_t before = estimator.counts().measured;
  const std::vector<Cover> all = is_first ? AllCovers(search) : std::vector<Cover>();
  const std::vector<NamedPartitions> baselines = PartitionForCovers(search);
  // Searched again, so that compiling the model once more finds the same.
  if (estimator.counts().measured != before) found = FindCovers(search);
  estimator.CheckComplete();
  std::vector<ContenderModule> contenders = Partitioned(search, found, baselines, all, std::move(also));
  if (contenders.empty()) stuck = partitioner.ExplainStuck(found.stuck_at);
  ReportSearch(search, found);
  if (Explains()) Keep(std::move(searched), portfolio, std::move(found));
  return contenders;
}

/// Phase 4 alone: the choice of partitions that a file holds, of any form of the model.
ContenderModule Compilation::GivenContender(const std::filesystem::path& file, const std::string& name) const {
  const std::string text = ReadFile(file);
  const auto of_form = [&](const IRModule& module) -> ContenderModule {
    const DataflowGraph graph(module.main());
    auto [partitioned, seconds] = PartitionedFromJson(text, file.string(), module, graph, toolchains());
    const OwnedPartitions given =
        PartitioningFromJson(text, file.string(), graph, ChannelsLastEligible(graph), toolchains());
    return {name, false, false, std::move(partitioned), seconds, PartitioningToJson(graph, given.chosen)};
  };
  const auto form = std::ranges::find_if(
      forms_, [&](const ModelForm& one) { return IsPartitioningOf(text, DataflowGraph(one.module.main())); });
  return of_form(form == forms_.end() ? module_ : form->module);
}

std::vector<ContenderModule> Compilation::AlsoGiven() const {
  std::vector<ContenderModule> given;
  for (const std::filesystem::path& file : options_.also) {
    given.push_back(GivenContender(file, kGivenPrefix + file.stem().string()));
    given.back().is_extra = true;
    given.back().baselines = {given.back().name};
  }
  return given;
}

/// Searches until a pass measures nothing, and nothing that noise may have chosen is left in the best mix: its covers
/// then follow from known costs alone, and compiling the model again finds the same. A pass ends early where a
/// checkpoint is due, and is then begun again: what it has measured is known by then.
FoundCovers Compilation::FindCovers(CoverSearchState& search) {
  const bool searches = options_.partition_for.empty();
  const bool is_for_all = search.form.owners.empty();  // of other forms only the best mix by costs is a contender
  if (is_for_all && checkpoints_.is_due_at_once() && !IsStopped()) {
    checkpoints_.searches = true;
    const FoundCovers own = search.portfolio.OwnChoices();
    checkpoints_.searches = false;
    Checkpoint(search, own, 0);
  }
  for (bool is_first = true;; is_first = false) {
    int64_t before = 0;
    FoundCovers found;
    double seconds = 0;  // of a pass
    const auto pass = [&] {
      before = search.num_timed();
      checkpoints_.searches = is_for_all;
      seconds = SecondsOf([&] { found = search.portfolio.Search(is_first); });
      checkpoints_.searches = false;
    };
    for (pass(); is_for_all && checkpoints_.IsDue() && !IsStopped(); pass()) Checkpoint(search, found, seconds);
    if (IsStopped()) return found;
    if (searches && !found.covers.empty()) search.partitioner.BreakTies(found.covers.front().cover);
    if (search.num_timed() != before) continue;
    if (searches && is_for_all && options_.max_error) BoundPrecision(search, found);
    if (search.num_timed() != before) continue;
    if (searches && is_for_all && search.portfolio.is_evolutionary()) EvolveGraphLevel(search, found);
    return found;
  }
}

/// All covers when they are few and it is wanted, else none.
std::vector<Cover> Compilation::AllCovers(CoverSearchState& search) {
  if (options_.max_optimality_covers == 0 || !options_.partition_for.empty()) return {};
  const std::optional<std::vector<Cover>> all = search.partitioner.AllCovers(options_.max_optimality_covers);
  if (!all) {
    report_.optimality_loss_unknown =
        search.estimator.counts().skipped > 0
            ? "not known: the budget was spent"
            : fmt::format("not feasible: more than {} covers", options_.max_optimality_covers);
  }
  report_.num_covers = all ? static_cast<int64_t>(all->size()) : 0;
  return all.value_or(std::vector<Cover>());
}

/// The partitions that the passes of `partition_for_NAME` make of this form, for each toolchain that wants it. A
/// toolchain that fuses as FuseOps does has its functions instead.
std::vector<NamedPartitions> Compilation::PartitionForCovers(CoverSearchState& search) {
  std::vector<NamedPartitions> covers;
  if (!options_.partition_for.empty()) return covers;
  for (const Toolchain* toolchain : toolchains()) {
    if (toolchain->fusion_style() == FusionStyle::kTVMFusion || selection_->IsDeferred(*toolchain)) continue;
    if (!IsFormOf(search.form, *toolchain)) continue;
    Result<OwnedPartitions> partitions = PartitionForCover(search.partitioner, *toolchain, selection_->native(),
                                                           search.form.module, options_.pass_context);
    const std::string name = kPartitionFor + toolchain->name();
    if (partitions.ok()) {
      covers.push_back({name, std::move(*partitions)});
    } else {
      Contender& dropped = dropped_.emplace_back();
      dropped.name = name;
      dropped.is_single = true;
      dropped.failure = partitions.reason().text;
    }
  }
  return covers;
}

std::vector<ContenderModule> Compilation::Partitioned(CoverSearchState& search, const FoundCovers& found,
                                                      const std::vector<NamedPartitions>& baselines,
                                                      const std::vector<Cover>& all,
                                                      std::vector<ContenderModule> also) const {
  ContenderList contenders(search.partitioner, search.form.module);
  for (const NamedCover& one : found.covers) {
    NamedCover named = one;
    named.name = NameInForm(search.form, one);
    if (!named.name.empty()) contenders.Add(named);
  }
  for (const NamedPartitions& one : baselines) contenders.AddBaseline(one);
  const bool merges = options_.partition_for.empty() && search.form.owners.empty();
  if (merges && !found.covers.empty()) contenders.AddCoalesced(kCoalescedCover, found.covers[0].cover);
  for (size_t i = 0; i < all.size(); ++i) {
    contenders.Add({fmt::format("collage-cover-{}", i + 1), false, all[i]}, /*is_extra=*/true);
  }
  for (ContenderModule& given : also) contenders.AddGiven(std::move(given));
  return contenders.contenders();
}

/// Whether the covers of `toolchain` alone are those of this form: the one that it wants.
bool Compilation::IsFormOf(const ModelForm& form, const Toolchain& toolchain) const {
  if (form.IsOwnedBy(toolchain)) return true;
  return form.owners.empty() &&
         std::ranges::none_of(forms_, [&](const ModelForm& other) { return other.IsOwnedBy(toolchain); });
}

/// Returns the name of a cover as a contender; empty if it is none. A toolchain's own covers are those of the form that
/// it wants; of that form there is the best mix beside them.
std::string Compilation::NameInForm(const ModelForm& form, const NamedCover& cover) const {
  for (const Toolchain* toolchain : toolchains()) {
    const auto is_called = [&](const char* ending) { return cover.name == toolchain->name() + ending; };
    if (!cover.is_single || !(is_called("") || is_called(kOwnSearch) || is_called(kFuseOps))) continue;
    return IsFormOf(form, *toolchain) ? cover.name : "";
  }
  if (form.owners.empty()) return cover.name;
  return cover.name == kBestCover ? fmt::format("{}-for-{}", kBestCover, form.owners[0]->name()) : "";
}

void Compilation::ReportSearch(const CoverSearchState& search, const FoundCovers& found) {
  const EstimatorCounts& counts = search.estimator.counts();
  report_.num_states += found.num_states;
  report_.num_measured += counts.measured;
  report_.num_remeasured += counts.remeasured;
  report_.num_from_database += counts.from_database;
  report_.num_failed += counts.failed;
  report_.num_below_bound += counts.below_bound;
  report_.budget_spent = report_.budget_spent || counts.skipped > 0;
  for (const auto& [kind, failure] : search.estimator.failures()) {
    const auto [it, is_new] = report_.failures.emplace(kind, failure);
    if (!is_new) it->second.first += failure.first;
  }
  if (!search.form.owners.empty()) return;
  report_.certificate = found.certificate;
  report_.bounded = found.bounded;
  if (report_.bounded) {
    report_.bounded->num_built = search.errors.num_built();
    report_.bounded->seconds = search.errors.seconds();
  }
  if (found.covers.empty() || found.covers.front().name != kBestCover) return;  // no search, or none found a cover
  const Cover& best = found.covers.front().cover;
  if (best.num_unknown == 0) report_.choices = ExplainChoices(search.partitioner, best, search.portfolio.IsEager());
}

}  // namespace collage
