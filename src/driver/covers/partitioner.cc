// partitioner.cc: costs of candidates, and covers by them.
#include "driver/covers/partitioner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "collage/ir/infer_type.h"
#include "driver/covers/goal_problem.h"
#include "ir/place.h"
#include "search/all_covers.h"
#include "search/cover_problem.h"
#include "search/renumbered_costs.h"

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Partitioner::Partitioner(const Candidates& candidates, CostEstimator& estimator)
    : candidates_(candidates),
      estimator_(estimator),
      class_of_(candidates.class_of()),
      refusals_(candidates.refusals()) {
  if (!estimator.TellsPlacesApart()) {
    for (const Candidates::VariantClass& of : candidates.classes()) classes_.push_back({&of, of.first});
    return;
  }
  for (VariantIndex variant : candidates.variants().indices()) {
    const int equal = class_of_[variant];
    classes_.push_back({&candidates.classes()[static_cast<size_t>(equal)], variant});
  }
  std::iota(class_of_.begin(), class_of_.end(), 0);
}

void Partitioner::LeaveOutUnknown(const Toolchain* certain) {
  leaves_out_unknown_ = true;
  certain_ = certain;
}

CostQuery Partitioner::QueryFor(const Costed& of) const {
  const CandidatePartition& candidate = candidates_.CandidateOf(of.first);
  return {of.of->workload,
          candidates_.variant(of.first).layouts,
          of.of->work,
          *candidate.toolchain,
          CandidateHandle{of.first.number()},
          candidate.sub_graph.OperatorLabel(candidates_.graph()),
          candidate.spec->name};
}

double Partitioner::LowerBound(VariantIndex variant) {
  const Costed& of = ClassAt(variant);
  return of.exact ? *of.exact : estimator_.LowerBound(QueryFor(of));
}

double Partitioner::Exact(VariantIndex variant) {
  Costed& of = ClassAt(variant);
  if (!of.exact) Learn(of, estimator_.Estimate(QueryFor(of)));
  return of.exact ? *of.exact : kInfinity;
}

bool Partitioner::IsInvalid(VariantIndex variant) const { return ClassAt(variant).exact == kInfinity; }

bool Partitioner::IsKnownToCompile(VariantIndex variant) const {
  return ClassAt(variant).exact && estimator_.KnowsWhatCompiles();
}

void Partitioner::Decline(VariantIndex variant, const std::string& reason) {
  Costed& of = ClassAt(variant);
  const CostQuery query = QueryFor(of);
  of.exact = kInfinity;
  refusals_.emplace(std::pair(query.target, query.label), reason);
  estimator_.CountFailure(query, reason);
}

std::string Partitioner::WhyInvalid(VariantIndex variant) const {
  const CandidatePartition& candidate = candidates_.CandidateOf(variant);
  const auto refusal =
      refusals_.find(std::pair(candidate.spec->name, candidate.sub_graph.OperatorLabel(candidates_.graph())));
  return refusal == refusals_.end() ? "its cost is infinite" : refusal->second;
}

std::string Partitioner::RefusalOf(const PartitionSpec& spec, const std::string& label) const {
  const auto refusal = refusals_.find(std::pair(spec.name, label));
  return refusal == refusals_.end() ? "" : refusal->second;
}

const TuningRecord* Partitioner::RecordOf(VariantIndex variant) const {
  const Costed& of = ClassAt(variant);
  return of.exact ? &of.record : nullptr;
}

double Partitioner::LeastOfAny(VariantIndex variant) { return estimator_.LeastOfSchedules(QueryFor(ClassAt(variant))); }

bool Partitioner::IsAtHand(VariantIndex variant) {
  const Costed& of = ClassAt(variant);
  return of.exact || estimator_.IsAtHand(QueryFor(of));
}

void Partitioner::Prepare(std::span<const VariantIndex> variants) {
  std::vector<Costed*> wanted;
  std::vector<CostQuery> queries;
  for (VariantIndex variant : variants) {
    Costed& of = ClassAt(variant);
    if (of.exact || std::find(wanted.begin(), wanted.end(), &of) != wanted.end()) continue;
    wanted.push_back(&of);
    queries.push_back(QueryFor(of));
  }
  if (queries.size() < 2) return;  // nothing is won by asking early
  const std::vector<TuningRecord> records = estimator_.EstimateAll(queries);
  for (size_t i = 0; i < records.size(); ++i) Learn(*wanted[i], records[i]);
}

/// Skipped costs stay unknown, unless unknown ones are left out: they may be measured when there is more time.
void Partitioner::Learn(Costed& of, const TuningRecord& record) {
  const CandidatePartition& candidate = candidates_.CandidateOf(of.first);
  const bool is_left_out = record.is_skipped && leaves_out_unknown_ && candidate.toolchain != certain_;
  if (!record.is_skipped) of.exact = record.ok ? estimator_.CostOf(record) : kInfinity;
  if (is_left_out) of.exact = kInfinity;
  of.record = record;
  if (record.ok) {
    of.schedule = record.schedule;
    of.error = record.max_error;
  }
  if (record.ok) return;
  refusals_.emplace(std::pair(candidate.spec->name, candidate.sub_graph.OperatorLabel(candidates_.graph())),
                    record.reason);
}

/// The variant and those that do the same elsewhere at nearly the same cost, ascending.
std::vector<VariantIndex> Partitioner::RivalsOf(VariantIndex variant) const {
  // Medians of the same candidate differ by as much from one worker to the next.
  constexpr double kNear = 0.05;
  const auto exact = [&](VariantIndex v) { return ClassAt(v).exact; };
  const double seconds = *exact(variant);
  std::vector<VariantIndex> rivals;
  for (VariantIndex other : candidates_.SameWorkAs(variant)) {
    if (exact(other) && std::abs(*exact(other) - seconds) <= kNear * seconds) rivals.push_back(other);
  }
  return rivals;
}

void Partitioner::BreakTies(const Cover& cover) {
  // Partitions with a smaller share of a cover's time are not worth being compared with rivals.
  constexpr double kLeastShare = 1e-3;
  std::set<VariantIndex> done;  // of each class the first
  for (VariantIndex variant : cover.variants) {
    const Costed& of = ClassAt(variant);
    if (!of.exact || *of.exact < kLeastShare * cover.seconds || !done.insert(of.first).second) continue;
    const std::vector<VariantIndex> rivals = RivalsOf(variant);
    if (rivals.size() < 2) continue;
    std::vector<CostQuery> queries;
    for (VariantIndex rival : rivals) queries.push_back(QueryFor(ClassAt(rival)));
    const std::vector<TuningRecord> records = estimator_.BreakTies(queries);
    for (size_t i = 0; i < records.size(); ++i) Learn(ClassAt(rivals[i]), records[i]);
  }
}

double Partitioner::LeastOf(VariantIndex variant) {
  const double known = LowerBound(variant);
  if (known == kInfinity || !candidates_.CandidateOf(variant).toolchain->has_schedules()) return known;
  return std::min(known, estimator_.LeastOfSchedules(QueryFor(ClassAt(variant))));
}

/// A task for each class of a toolchain with schedules whose cost is known; `task_of` gets its number by class, -1 for
/// others.
std::vector<ScheduleTask> Partitioner::ScheduleTasks(std::vector<int>& task_of) {
  std::vector<ScheduleTask> tasks;
  for (const Costed& of : classes_) {
    const bool is_task =
        of.exact.value_or(kInfinity) < kInfinity && candidates_.CandidateOf(of.first).toolchain->has_schedules();
    task_of.push_back(is_task ? static_cast<int>(tasks.size()) : -1);
    if (is_task) tasks.push_back({QueryFor(of), estimator_.Estimate(QueryFor(of))});
  }
  return tasks;
}

TuningReport Partitioner::TuneSchedules(const std::vector<TuningGoal>& goals, const ScheduleLimits& limits) {
  std::vector<GoalProblem> problems;
  for (const TuningGoal& goal : goals) problems.emplace_back(*this, goal, estimator_.Noise());
  std::vector<int> task_of;
  std::vector<ScheduleTask> tasks = ScheduleTasks(task_of);
  const auto learn = [&](const std::vector<ScheduleTask>& all) {
    for (size_t number = 0; number < classes_.size(); ++number) {
      if (task_of[number] >= 0) Learn(classes_[number], all[static_cast<size_t>(task_of[number])].record);
    }
  };
  const auto revalue = [&](std::vector<ScheduleTask>& all) {
    learn(all);
    for (ScheduleTask& task : all) {
      task.can_win = false;
      task.gain = 0;
    }
    for (GoalProblem& problem : problems) {
      std::vector<double> gains(all.size());
      for (const auto& [variant, gain] : problem.Gains()) {
        const int number = task_of[static_cast<size_t>(class_of_[variant])];
        if (number < 0) continue;
        all[static_cast<size_t>(number)].can_win = true;
        gains[static_cast<size_t>(number)] += gain;
      }
      for (size_t i = 0; i < all.size(); ++i) all[i].gain = std::max(all[i].gain, gains[i]);
    }
  };
  const TuningReport report = collage::TuneSchedules(estimator_, tasks, limits, revalue);
  learn(tasks);
  return report;
}

const TensorTypeNode& Partitioner::TypeOf(int value) {
  const BoundaryValue made = Problem().ValueAt(value);
  const Type& node_type = candidates_.graph().node(made.node).expr->checked_type();
  return *AsTensorType(made.field < 0 ? node_type : AsTupleType(node_type)->fields()[made.field]);
}

double Partitioner::Convert(int value, Format from, Format to) {
  const TensorTypeNode& type = TypeOf(value);
  return estimator_.ConvertSeconds(type.static_shape(), type.dtype(), static_cast<Layout>(from),
                                   static_cast<Layout>(to));
}

bool Partitioner::IsConversionAtHand(int value, Format from, Format to) {
  const TensorTypeNode& type = TypeOf(value);
  return estimator_.IsConversionAtHand(type.static_shape(), type.dtype(), static_cast<Layout>(from),
                                       static_cast<Layout>(to));
}

/// To the host there is none.
double Partitioner::Transition(VariantIndex variant) {
  return candidates_.CandidateOf(variant).spec->is_host() ? 0 : estimator_.TransitionSeconds();
}

int Partitioner::PlaceOf(VariantIndex variant) {
  const auto it = std::find(candidates_.toolchains().begin(), candidates_.toolchains().end(),
                            candidates_.CandidateOf(variant).toolchain);
  return static_cast<int>(it - candidates_.toolchains().begin());
}

double Partitioner::SwitchPenalty(int from, int to) {
  if (from == to) return 0;
  return estimator_.SwitchSeconds(*candidates_.toolchains()[static_cast<size_t>(from)],
                                  *candidates_.toolchains()[static_cast<size_t>(to)]);
}

const CoverProblem& Partitioner::Problem() {
  if (!problem_) {
    problem_ =
        MakeCoverProblem(candidates_.graph(), candidates_.candidates(), candidates_.variants(), candidates_.eligible());
  }
  return *problem_;
}

SearchResult Partitioner::Search(const std::function<bool(CandidateIndex candidate)>& allowed,
                                 const SearchOptions& options) {
  OriginalVariants original;
  VariantList variants;
  for (VariantIndex v : candidates_.variants().indices()) {
    const CandidateVariant& variant = candidates_.variants()[v];
    if (!allowed(variant.candidate)) continue;
    original.push_back(v);
    variants.push_back(variant);
  }
  RenumberedCosts costs(*this, original);
  SearchOptions named = options;
  named.toolchain_name = [&](VariantIndex variant) {
    return candidates_.ToolchainOf(variants[variant].candidate)->name();
  };
  SearchResult result = FindCovers(Problem().Of(original), candidates_.candidates(), variants, costs, named);
  for (Cover& cover : result.covers) Renumber(cover, original);
  return result;
}

std::optional<std::vector<Cover>> Partitioner::AllCovers(int max_covers) {
  const CoverProblem& problem = Problem();
  std::vector<Cover> covers;
  const auto can_run = [&](VariantIndex variant) { return ClassAt(variant).exact.value_or(0) < kInfinity; };
  const auto add = [&](const std::vector<VariantIndex>& variants) {
    if (IsCompatible(variants)) covers.push_back({variants, 0, 0});
  };
  if (!ForEachCover(problem, can_run, {.max_covers = max_covers}, add)) return std::nullopt;
  IndexedVector<VariantIndex, double> exact(candidates_.variants().size(), kInfinity);
  for (const Cover& cover : covers) {
    Prepare(cover.variants);
    for (VariantIndex variant : cover.variants) {
      exact[variant] = Exact(variant);
      if (!ClassAt(variant).exact) return std::nullopt;
    }
  }
  for (Cover& cover : covers) cover.seconds = CoverSeconds(problem, cover.variants, exact, *this);
  std::erase_if(covers, [](const Cover& cover) { return cover.seconds == kInfinity; });
  return covers;
}

double Partitioner::SecondsOf(const Cover& cover) {
  IndexedVector<VariantIndex, double> exact(candidates_.variants().size(), kInfinity);
  for (const VariantIndex variant : cover.variants) exact[variant] = LowerBound(variant);
  return CoverSeconds(Problem(), cover.variants, exact, *this);
}

bool Partitioner::IsCompatible(const std::vector<VariantIndex>& variants) const {
  std::set<const Toolchain*> met;
  for (VariantIndex variant : variants) met.insert(candidates_.CandidateOf(variant).toolchain);
  return CompatibleSets(std::vector(met.begin(), met.end())).size() == 1;
}

std::vector<ChosenPartition> Partitioner::ChosenOf(const Cover& cover) const {
  std::vector<ChosenPartition> chosen;
  for (VariantIndex variant : cover.variants) {
    const CandidateVariant& v = candidates_.variant(variant);
    const Costed& of = ClassAt(variant);
    const double seconds = of.exact.value_or(0);
    chosen.push_back({&candidates_.at(v.candidate), v.layouts, seconds < kInfinity ? seconds : 0, of.schedule});
  }
  return chosen;
}

std::optional<IRModule> Partitioner::Apply(const std::vector<ChosenPartition>& chosen, const IRModule& module) const {
  std::optional<Function> main = RewritePartitions(candidates_.graph(), chosen);
  if (!main) return std::nullopt;
  IRModule result = module;
  result.Set("main", *main);
  return InferTypes(std::move(result));
}

std::string Partitioner::WhyNot(int node, const PartitionSpec& spec) {
  const std::string why = WhyNoneRuns(node, spec, [this](VariantIndex variant) { return Exact(variant) != kInfinity; });
  return why.empty() ? "its candidates leave other nodes without cover" : why;
}

std::string Partitioner::WhyNoneRuns(int node, const PartitionSpec& spec,
                                     const std::function<bool(VariantIndex variant)>& can_run) const {
  const DataflowGraph& graph = candidates_.graph();
  std::string why;
  for (const VariantIndex variant : candidates_.variants().indices()) {
    const CandidatePartition& candidate = candidates_.CandidateOf(variant);
    if (candidate.spec->name != spec.name || !candidate.sub_graph.inside().Contains(node)) continue;
    if (can_run(variant)) return "";
    why = RefusalOf(spec, candidate.sub_graph.OperatorLabel(graph));
    if (why.empty()) why = "its candidates have infinite cost";
  }
  if (why.empty()) why = RefusalOf(spec, graph.LabelAt(node));
  return why.empty() ? "its rule finds no candidate with it" : why;
}

std::string Partitioner::ExplainStuck(const std::vector<int>& nodes) const {
  constexpr size_t kShown = 5;
  std::string text;
  std::set<std::string> explained;
  for (int node : nodes) {
    const std::string label = candidates_.graph().LabelAt(node);
    if (!explained.insert(label).second || explained.size() > kShown) continue;
    const Span& span = candidates_.graph().node(node).expr->span();
    text += fmt::format("{}'{}' ({}{})", text.empty() ? "" : "; ", label, span.line > 0 ? "" : "node ",
                        collage::PlaceOf(span));
    bool is_refused = false;
    for (const auto& [key, reason] : refusals_) {
      if (key.second != label) continue;
      text += fmt::format(", {}: {}", key.first, reason);
      is_refused = true;
    }
    if (is_refused) continue;
    const bool has_candidates = std::ranges::any_of(candidates_.candidates(), [&](const CandidatePartition& candidate) {
      return candidate.sub_graph.inside().Contains(node);
    });
    text += has_candidates ? ", its candidates cannot be run or leave others uncovered"
                           : ", no rule finds a candidate with it";
  }
  return text;
}

}  // namespace collage
