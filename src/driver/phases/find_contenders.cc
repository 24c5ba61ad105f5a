// find_contenders.cc: candidates, their costs, and the searches: which covers meet in the play-off.
#include <fmt/format.h>

#include <algorithm>

#include "collage/ir/structural.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "driver/compilation.h"
#include "driver/covers/coalesced_cover.h"
#include "driver/covers/partitioning_json.h"
#include "driver/phases/cover_search_state.h"
#include "support/file.h"
#include "support/machine.h"
#include "support/stopwatch.h"

namespace collage {
namespace {

/// A digest of a module's partitions and their code, whatever they are estimated to take.
std::string KeyOf(const IRModule& partitioned) {
  return StructuralHash(Rewrite(partitioned.main(), [](const Expr& expr) -> Expr {
    const auto inner = std::dynamic_pointer_cast<const FunctionNode>(expr);
    const bool is_partition = inner != nullptr && inner->attrs().Has(kAttrEstimate);
    return is_partition ? Expr(WithAttr(inner, kAttrEstimate, 0.0)) : expr;
  }));
}

/// Whether the library behind `spec` plans within its partitions: larger ones are what it is best at.
bool MergesWell(const PartitionSpec& spec) { return spec.toolchain->fusion_style() == FusionStyle::kArbitrary; }

/// Adds contenders, each distinct cover once.
class Contenders {
 public:
  Contenders(Partitioner& partitioner, const IRModule& module) : partitioner_(partitioner), module_(module) {}

  /// `is_extra`: no search chose it.
  void Add(const std::string& name, bool is_single, const Cover& cover, bool is_extra = false) {
    std::vector<VariantIndex> sorted = cover.variants;
    std::sort(sorted.begin(), sorted.end());
    auto [it, is_new] = seen_.emplace(std::move(sorted), contenders_.size());
    if (!is_new) {
      // A mix that is a single toolchain's cover goes by the toolchain's name.
      if (is_single && !contenders_[it->second].is_single) {
        contenders_[it->second].name = name;
        contenders_[it->second].is_single = true;
      }
      return;
    }
    const std::vector<ChosenPartition> chosen = partitioner_.ChosenOf(cover);
    std::optional<IRModule> partitioned = partitioner_.Apply(chosen, module_);
    if (!partitioned) {
      seen_.erase(it);
      return;
    }
    contenders_.push_back({name, is_single, is_extra, std::move(*partitioned), cover.seconds,
                           PartitioningToJson(partitioner_.candidates().graph(), chosen)});
  }

  /// `cover` with neighbours of one toolchain merged, if that changes it. A merged partition was not measured: what it
  /// takes, the play-off finds out.
  void AddCoalesced(const Cover& cover) {
    const std::vector<ChosenPartition> chosen = partitioner_.ChosenOf(cover);
    const OwnedPartitions merged = Coalesced(partitioner_.candidates(), chosen, MergesWell);
    if (merged.chosen.size() == chosen.size()) return;
    std::optional<IRModule> partitioned = partitioner_.Apply(merged.chosen, module_);
    if (!partitioned) return;
    AddModule({kCoalescedCover, false, false, std::move(*partitioned), cover.seconds,
               PartitioningToJson(partitioner_.candidates().graph(), merged.chosen)});
  }

  /// A partitioning that the user gave. A mix that is the same goes by its name.
  void AddGiven(ContenderModule given) {
    const std::string name = given.name;
    ContenderModule* same = AddModule(std::move(given));
    if (same != nullptr && !same->is_single) same->name = name;
  }

  const std::vector<ContenderModule>& contenders() const { return contenders_; }

 private:
  /// Adds `one`, unless there is the same already: then it returns that.
  ContenderModule* AddModule(ContenderModule one) {
    while (keys_.size() < contenders_.size()) keys_.push_back(KeyOf(contenders_[keys_.size()].module));
    const auto same = std::ranges::find(keys_, KeyOf(one.module));
    if (same != keys_.end()) return &contenders_[static_cast<size_t>(same - keys_.begin())];
    contenders_.push_back(std::move(one));
    return nullptr;
  }

  Partitioner& partitioner_;
  const IRModule& module_;
  std::vector<ContenderModule> contenders_;
  std::vector<std::string> keys_;  ///< KeyOf the first contenders
  std::map<std::vector<VariantIndex>, size_t> seen_;
};

}  // namespace

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
}

/// `stuck` says why there is no cover, if there is none.
std::vector<ContenderModule> Compilation::SearchForm(const ModelForm& form, std::vector<ContenderModule> also,
                                                     std::string& stuck) {
  CompileOptions own = options_;  // what is left of the budget
  own.budget_seconds = std::max(0.0, own.budget_seconds - report_.search_seconds);
  const Stopwatch stopwatch(report_.search_seconds);
  Phase("candidates");
  const std::vector<PartitionSpec> specs = selection_->Specs();
  const Candidates candidates(form.module.main(), specs, report_.num_threads);
  const bool is_first = form.owners.empty();
  report_.num_candidates += static_cast<int64_t>(candidates.candidates().size());
  report_.num_variants += static_cast<int64_t>(candidates.variants().size());
  report_.num_distinct += static_cast<int64_t>(candidates.classes().size());
  if (options_.progress != nullptr) options_.progress->Costs(report_.num_distinct);
  const std::unique_ptr<CostEstimator> estimator = MakeEstimatorFor(candidates);
  Partitioner partitioner(candidates, *estimator);
  if (leaves_out_unknown_) partitioner.LeaveOutUnknown(selection_->native());

  Phase("search");
  CoverPortfolio portfolio(partitioner, *estimator, *selection_, own);
  EndToEndErrors errors(form.module, toolchains(), *database_, ThisMachine().fingerprint, PlayOffSettings());
  CoverSearchState search{form, candidates, *estimator, partitioner, portfolio, errors};
  FoundCovers found = FindCovers(search);
  if (options_.tuning_seconds > 0 || options_.tuning_trials > 0) {
    TuneSchedules(search, found);
    found = FindCovers(search);
  }
  const int64_t before = estimator->counts().measured;
  const std::vector<Cover> all = is_first ? AllCovers(search) : std::vector<Cover>();
  // Searched again, so that compiling the model once more finds the same.
  if (estimator->counts().measured != before) found = FindCovers(search);
  estimator->CheckComplete();
  std::vector<ContenderModule> contenders = Partitioned(search, found, all, std::move(also));
  if (contenders.empty()) stuck = partitioner.ExplainStuck(found.stuck_at);
  ReportSearch(search, found);
  return contenders;
}

/// Phase 4 alone: the choice of partitions that a file holds, of any form of the model.
ContenderModule Compilation::GivenContender(const std::filesystem::path& file, const std::string& name) const {
  const std::string text = ReadFile(file);
  const auto of_form = [&](const IRModule& module) -> ContenderModule {
    auto [partitioned, seconds] =
        PartitionedFromJson(text, file.string(), module, DataflowGraph(module.main()), toolchains());
    return {name, false, false, std::move(partitioned), seconds, text};
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
  }
  return given;
}

/// Searches until a pass measures nothing, and nothing that noise may have chosen is left in the best mix: its covers
/// then follow from known costs alone, and compiling the model again finds the same.
FoundCovers Compilation::FindCovers(CoverSearchState& search) {
  const bool searches = options_.partition_for.empty();
  const bool is_for_all = search.form.owners.empty();  // of other forms only the best mix by costs is a contender
  for (bool is_first = true;; is_first = false) {
    const int64_t before = search.num_timed();
    FoundCovers found = search.portfolio.Search(is_first);
    if (searches && !found.covers.empty()) search.partitioner.BreakTies(found.covers.front().cover);
    if (search.num_timed() != before) continue;
    if (searches && is_for_all && options_.max_error) BoundPrecision(search, found);
    if (search.num_timed() != before) continue;
    if (searches && is_for_all && search.portfolio.is_evolutionary()) Evolve(search, found);
    return found;
  }
}

/// Tunes schedules of partitions in covers that could still win.
void Compilation::TuneSchedules(CoverSearchState& search, const FoundCovers& found) {
  if (!search.estimator.TriesSchedules()) {
    throw Error(ErrorCategory::kInput, fmt::format("estimator '{}' tries no schedules", options_.estimator), "",
                "leave --tuning-budget out, or measure");
  }
  Phase("tuning");
  std::vector<Cover> covers;
  for (const NamedCover& one : found.covers) covers.push_back(one.cover);
  report_.tuning =
      search.partitioner.TuneSchedules(covers, {options_.tuning_seconds, options_.tuning_trials, options_.should_stop});
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

std::vector<ContenderModule> Compilation::Partitioned(CoverSearchState& search, const FoundCovers& found,
                                                      const std::vector<Cover>& all,
                                                      std::vector<ContenderModule> also) const {
  Contenders contenders(search.partitioner, search.form.module);
  for (const NamedCover& one : found.covers) {
    const std::string name = NameInForm(search.form, one);
    if (!name.empty()) contenders.Add(name, one.is_single, one.cover);
  }
  const bool merges = options_.partition_for.empty() && search.form.owners.empty();
  if (merges && !found.covers.empty()) contenders.AddCoalesced(found.covers[0].cover);
  for (size_t i = 0; i < all.size(); ++i) {
    contenders.Add(fmt::format("collage-cover-{}", i + 1), false, all[i], /*is_extra=*/true);
  }
  for (ContenderModule& given : also) contenders.AddGiven(std::move(given));
  return contenders.contenders();
}

/// Returns the name of a cover as a contender; empty if it is none. A toolchain's own covers are those of the form that
/// it wants; of that form there is the best mix beside them.
std::string Compilation::NameInForm(const ModelForm& form, const NamedCover& cover) const {
  const auto is_of = [&](const Toolchain& toolchain) {
    return cover.is_single && (cover.name == toolchain.name() || cover.name == toolchain.name() + kOwnSearch);
  };
  for (const ModelForm& other : forms_) {
    for (const Toolchain* owner : other.owners) {
      if (is_of(*owner)) return form.IsOwnedBy(*owner) ? cover.name : "";
    }
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
}

}  // namespace collage
