// partitioner.cc: candidates, their costs, and covers of one function.
#include "driver/partitioner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "collage/ir/infer_type.h"
#include "collage/ir/structural.h"
#include "driver/layout_analysis.h"
#include "driver/partitioning_json.h"
#include "partition/extract.h"
#include "partition/rewrite.h"
#include "search/all_covers.h"
#include "search/cover_problem.h"
#include "search/renumbered_costs.h"

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Names of Composites that no greedy row of the toolchain's pattern table has.
std::set<std::string> NamesOfRowsLeftOut(const Toolchain& toolchain) {
  std::set<std::string> names;
  std::set<std::string> greedy;
  for (const PatternTableEntry& entry : toolchain.PatternTable()) (entry.is_greedy ? greedy : names).insert(entry.name);
  for (const std::string& name : greedy) names.erase(name);
  return names;
}

/// Whether a Composite of one of these names is in `sub_graph`.
bool HoldsComposite(const SubGraph& sub_graph, const std::set<std::string>& names) {
  return std::any_of(sub_graph.nested.begin(), sub_graph.nested.end(), [&](const NestedSubGraph& nested) {
    return names.contains(nested.attrs.StringOr("Composite", ""));
  });
}

/// Pairs of a value and its reader that is to be computed in the registers of what makes it: element-wise behind an
/// anchor, or what makes narrower integers.
using ReadersOfRegisters = std::set<std::pair<int, int>>;

/// Adds those of which `sub_graph` has the reader, and what makes the value if `both_inside`; else not, nor anything
/// else that the reader reads.
void AddReaders(const DataflowGraph& graph, const SubGraph& sub_graph, bool both_inside, ReadersOfRegisters& pairs) {
  const auto is_made_inside = [&](int input) {
    return graph.OpAt(input) != nullptr && sub_graph.inside().Contains(input);
  };
  for (const int reader : sub_graph.members()) {
    if (graph.OpAt(reader) == nullptr || graph.KindAt(reader) > OpPatternKind::kBroadcast) continue;
    const std::vector<int>& inputs = graph.node(reader).inputs;
    if (std::ranges::any_of(inputs, is_made_inside) != both_inside) continue;
    for (const int input : inputs) {
      if (graph.OpAt(input) == nullptr || is_made_inside(input) != both_inside) continue;
      const bool is_anchor = graph.KindAt(input) == OpPatternKind::kOutEWiseFusable;
      if (is_anchor || graph.OpAt(reader)->name == "qnn.quantize") pairs.emplace(input, reader);
    }
  }
}

/// Whether `sub_graph` begins with a reader of `pairs`.
bool TakesFromRegisters(const DataflowGraph& graph, const SubGraph& sub_graph, const ReadersOfRegisters& pairs) {
  ReadersOfRegisters taken;
  AddReaders(graph, sub_graph, /*both_inside=*/false, taken);
  return std::ranges::any_of(taken, [&](const std::pair<int, int>& pair) { return pairs.contains(pair); });
}

}  // namespace

Partitioner::Partitioner(const IRModule& module, const std::vector<const Toolchain*>& toolchains, int num_threads,
                         const std::map<const Toolchain*, PartitionRulePtr>& rules)
    : graph_(module.main()), eligible_(ChannelsLastEligible(graph_)), num_threads_(num_threads) {
  for (const Toolchain* toolchain : toolchains) {
    const auto given = rules.find(toolchain);
    AddCandidates(*toolchain, given == rules.end() ? *GatherPartitionRule(*toolchain) : *given->second);
  }
  MarkPrimary();
}

std::pair<PartitionRequest, const Toolchain*> Partitioner::Find(int64_t variant) const {
  const CandidateVariant& v = variants_.at(static_cast<size_t>(variant));
  const CandidatePartition& candidate = candidates_[static_cast<size_t>(v.candidate)];
  return {{Extract(graph_, candidate.sub_graph).function, v.layouts, num_threads_}, candidate.toolchain};
}

void Partitioner::SetEstimator(CostEstimator* estimator) {
  estimator_ = estimator;
  if (!estimator->TellsPlacesApart()) return;
  std::vector<VariantClass> each;
  for (int variant = 0; variant < static_cast<int>(variants_.size()); ++variant) {
    each.push_back(ClassAt(variant));
    each.back().first = variant;
  }
  classes_ = std::move(each);
  std::iota(class_of_.begin(), class_of_.end(), 0);
}

void Partitioner::LeaveOutUnknown(const Toolchain* certain) {
  leaves_out_unknown_ = true;
  certain_ = certain;
}

CostQuery Partitioner::QueryFor(const VariantClass& of) const {
  const CandidatePartition& candidate = CandidateOf(of.first);
  return {of.workload, variants_[static_cast<size_t>(of.first)].layouts, of.work, *candidate.toolchain,
          of.first,    candidate.sub_graph.OperatorLabel(graph_)};
}

double Partitioner::LowerBound(int variant) {
  const VariantClass& of = ClassAt(variant);
  return of.exact ? *of.exact : estimator_->LowerBound(QueryFor(of));
}

double Partitioner::Exact(int variant) {
  VariantClass& of = ClassAt(variant);
  if (!of.exact) Learn(of, estimator_->Estimate(QueryFor(of)));
  return of.exact ? *of.exact : kInfinity;
}

bool Partitioner::IsAtHand(int variant) {
  const VariantClass& of = ClassAt(variant);
  return of.exact || estimator_->IsAtHand(QueryFor(of));
}

void Partitioner::Prepare(std::span<const int> variants) {
  std::vector<VariantClass*> wanted;
  std::vector<CostQuery> queries;
  for (int variant : variants) {
    VariantClass& of = ClassAt(variant);
    if (of.exact || std::find(wanted.begin(), wanted.end(), &of) != wanted.end()) continue;
    wanted.push_back(&of);
    queries.push_back(QueryFor(of));
  }
  if (queries.size() < 2) return;  // nothing is won by asking early
  const std::vector<TuningRecord> records = estimator_->EstimateAll(queries);
  for (size_t i = 0; i < records.size(); ++i) Learn(*wanted[i], records[i]);
}

/// What was skipped stays unknown, unless that is left out: it may be measured when there is more time.
void Partitioner::Learn(VariantClass& of, const TuningRecord& record) {
  const CandidatePartition& candidate = CandidateOf(of.first);
  const bool is_left_out = record.is_skipped && leaves_out_unknown_ && candidate.toolchain != certain_;
  if (!record.is_skipped) of.exact = record.ok ? estimator_->CostOf(record) : kInfinity;
  if (is_left_out) of.exact = kInfinity;
  if (record.ok) {
    of.schedule = record.schedule;
    of.error = record.max_error;
  }
  if (record.ok) return;
  refusals_.emplace(std::pair(candidate.toolchain->name(), candidate.sub_graph.OperatorLabel(graph_)), record.reason);
}

/// What a candidate computes: some toolchains' take constants in, others' leave them to who compiles them.
std::vector<int> Partitioner::OperatorsOf(const CandidatePartition& candidate) const {
  std::vector<int> operators;
  for (int member : candidate.sub_graph.members()) {
    if (graph_.OpAt(member) != nullptr) operators.push_back(member);
  }
  return operators;
}

/// The variant and those that do the same elsewhere at nearly the same cost, ascending.
std::vector<int> Partitioner::RivalsOf(int variant) const {
  // Medians of the same candidate differ by as much from one worker to the next.
  constexpr double kNear = 0.05;
  const auto exact = [&](int v) { return classes_[static_cast<size_t>(class_of_[static_cast<size_t>(v)])].exact; };
  const double seconds = *exact(variant);
  std::vector<int> rivals;
  for (int other : by_place_.at({OperatorsOf(CandidateOf(variant)), variants_[static_cast<size_t>(variant)].layouts})) {
    if (exact(other) && std::abs(*exact(other) - seconds) <= kNear * seconds) rivals.push_back(other);
  }
  return rivals;
}

void Partitioner::Settle(const Cover& cover) {
  // What makes no more of the whole than this is not worth the time.
  constexpr double kLeastShare = 1e-3;
  std::set<int> done;  // classes
  for (int variant : cover.variants) {
    const VariantClass& of = ClassAt(variant);
    if (!of.exact || *of.exact < kLeastShare * cover.seconds || !done.insert(of.first).second) continue;
    const std::vector<int> rivals = RivalsOf(variant);
    if (rivals.size() < 2) continue;
    std::vector<CostQuery> queries;
    for (int rival : rivals) queries.push_back(QueryFor(ClassAt(rival)));
    const std::vector<TuningRecord> records = estimator_->Settle(queries);
    for (size_t i = 0; i < records.size(); ++i) Learn(ClassAt(rivals[i]), records[i]);
  }
}

TuningReport Partitioner::TuneSchedules(const std::vector<Cover>& covers, const ScheduleLimits& limits) {
  // What is dearer by more does not win with other schedules.
  constexpr double kMostDear = 1.3;
  const auto sum = [&](const Cover& cover) {
    double seconds = 0;
    for (int variant : cover.variants) seconds += ClassAt(variant).exact.value_or(kInfinity);
    return seconds;
  };
  double least = kInfinity;
  for (const Cover& cover : covers) least = std::min(least, sum(cover));
  std::map<int, double> shares;  // class → of the cover in which it takes the most
  for (const Cover& cover : covers) {
    const double all = sum(cover);
    if (all == kInfinity || all > least * kMostDear) continue;
    std::map<int, double> own;
    for (int variant : cover.variants) {
      const VariantClass& of = ClassAt(variant);
      if (!CandidateOf(variant).toolchain->has_schedules()) continue;
      own[class_of_[static_cast<size_t>(variant)]] += *of.exact / all;
    }
    for (const auto& [number, share] : own) shares[number] = std::max(shares[number], share);
  }
  std::vector<ScheduleTask> tasks;
  for (const auto& [number, share] : shares) {
    const VariantClass& of = classes_[static_cast<size_t>(number)];
    tasks.push_back({QueryFor(of), share, estimator_->Estimate(QueryFor(of))});
  }
  const TuningReport report = collage::TuneSchedules(*estimator_, tasks, limits);
  size_t i = 0;
  for (const auto& [number, share] : shares) Learn(classes_[static_cast<size_t>(number)], tasks[i++].record);
  return report;
}

double Partitioner::Convert(int value, Format from, Format to) {
  const TensorTypeNode* type = AsTensorType(graph_.node(value).expr->checked_type());
  return estimator_->ConvertSeconds(type->static_shape(), type->dtype(), static_cast<Layout>(from),
                                    static_cast<Layout>(to));
}

double Partitioner::Transition(int) { return estimator_->HopSeconds(); }

int Partitioner::PlaceOf(int variant) {
  const auto it = std::find(places_.begin(), places_.end(), CandidateOf(variant).toolchain);
  return static_cast<int>(it - places_.begin());
}

double Partitioner::Handover(int from, int to) {
  if (from == to) return 0;
  return estimator_->HandoverSeconds(*places_[static_cast<size_t>(from)], *places_[static_cast<size_t>(to)]);
}

/// Of all variants. Made once: it needs each candidate's boundary, which means building its function.
const CoverProblem& Partitioner::Problem() {
  if (!problem_) problem_ = MakeCoverProblem(graph_, candidates_, variants_, eligible_);
  return *problem_;
}

SearchResult Partitioner::Search(const std::function<bool(int candidate)>& allowed, const SearchOptions& options) {
  std::vector<int> original;
  std::vector<CandidateVariant> variants;
  for (size_t v = 0; v < variants_.size(); ++v) {
    if (!allowed(variants_[v].candidate)) continue;
    original.push_back(static_cast<int>(v));
    variants.push_back(variants_[v]);
  }
  RenumberedCosts costs(*this, original);
  SearchOptions named = options;
  named.toolchain_name = [&](int variant) {
    return candidates_[static_cast<size_t>(variants[static_cast<size_t>(variant)].candidate)].toolchain->name();
  };
  SearchResult result = FindCovers(Problem().Of(original), candidates_, variants, costs, named);
  for (Cover& cover : result.covers) Renumber(cover, original);
  return result;
}

std::optional<std::vector<Cover>> Partitioner::AllCovers(int max_covers) {
  const CoverProblem& problem = Problem();
  std::vector<Cover> covers;
  const auto can_run = [&](int variant) { return ClassAt(variant).exact.value_or(0) < kInfinity; };
  const auto add = [&](const std::vector<int>& variants) {
    if (IsCompatible(variants)) covers.push_back({variants, 0, 0});
  };
  if (!ForEachCover(problem, can_run, {.max_covers = max_covers}, add)) return std::nullopt;
  std::vector<double> exact(variants_.size(), kInfinity);
  for (const Cover& cover : covers) {
    Prepare(cover.variants);
    for (int variant : cover.variants) {
      exact[static_cast<size_t>(variant)] = Exact(variant);
      if (!ClassAt(variant).exact) return std::nullopt;
    }
  }
  for (Cover& cover : covers) cover.seconds = CoverSeconds(problem, cover.variants, exact, *this);
  std::erase_if(covers, [](const Cover& cover) { return cover.seconds == kInfinity; });
  return covers;
}

bool Partitioner::IsCompatible(const std::vector<int>& variants) const {
  std::set<const Toolchain*> met;
  for (int variant : variants) met.insert(CandidateOf(variant).toolchain);
  return CompatibleSets(std::vector(met.begin(), met.end())).size() == 1;
}

std::optional<Cover> Partitioner::GreedyCover(const Toolchain& toolchain, const Toolchain* fall_back,
                                              std::vector<int>* open) {
  if (fall_back != nullptr && WhyIncompatible(toolchain, *fall_back)) fall_back = nullptr;
  const std::set<std::string> left_out = NamesOfRowsLeftOut(toolchain);
  std::vector<int> order;
  std::vector<int> turn(variants_.size());  // variant → 0: its own, 1: the fall-back's, 2: its own, left out
  // What takes from another partition what can be computed in its registers has more operators, and the wider value
  // that it reads has to be stored.
  std::vector<bool> takes(variants_.size());
  ReadersOfRegisters together;
  for (const CandidatePartition& candidate : candidates_) {
    if (candidate.toolchain != &toolchain) continue;
    AddReaders(graph_, candidate.sub_graph, /*both_inside=*/true, together);
  }
  for (size_t v = 0; v < variants_.size(); ++v) {
    const CandidatePartition& candidate = CandidateOf(static_cast<int>(v));
    if (candidate.toolchain != &toolchain && candidate.toolchain != fall_back) continue;
    // What is gained by keeping values as narrower types depends on the neighbours, of which nothing is known here.
    if (KeepsNarrow(variants_[v].layouts)) continue;
    turn[v] = candidate.toolchain != &toolchain ? 1 : HoldsComposite(candidate.sub_graph, left_out) ? 2 : 0;
    takes[v] = turn[v] == 0 && TakesFromRegisters(graph_, candidate.sub_graph, together);
    order.push_back(static_cast<int>(v));
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const int x_turn = turn[static_cast<size_t>(a)];
    const int y_turn = turn[static_cast<size_t>(b)];
    if (x_turn != y_turn) return x_turn < y_turn;
    if (takes[static_cast<size_t>(a)] != takes[static_cast<size_t>(b)]) return !takes[static_cast<size_t>(a)];
    return CandidateOf(a).sub_graph.members().size() > CandidateOf(b).sub_graph.members().size();
  });
  for (;;) {
    IndexSet left(graph_.size());
    for (int index = 0; index < static_cast<int>(graph_.size()); ++index) {
      if (graph_.OpAt(index) != nullptr && !graph_.OpAt(index)->is_reshape) left.Add(index);
    }
    Cover cover = TakeGreedily(order, left);
    if (!left.IsZero()) {
      if (open != nullptr) {
        for (int node : left.Members()) open->push_back(node);
      }
      return std::nullopt;
    }
    Prepare(cover.variants);
    for (int variant : cover.variants) Exact(variant);
    const size_t num_before = order.size();
    std::erase_if(order, [&](int variant) { return ClassAt(variant).exact == kInfinity; });
    if (order.size() == num_before) return cover;
  }
}

/// Takes each variant in turn that fits what is left, and takes its nodes out of `left`.
Cover Partitioner::TakeGreedily(const std::vector<int>& order, IndexSet& left) const {
  const IndexSet all = left;
  Cover cover;
  for (int variant : order) {
    const IndexSet covers = CandidateOf(variant).sub_graph.inside() & all;
    if (covers.IsZero() || !covers.IsSubset(left)) continue;
    cover.variants.push_back(variant);
    left = left - covers;
  }
  return cover;
}

std::vector<ChosenPartition> Partitioner::ChosenOf(const Cover& cover) const {
  std::vector<ChosenPartition> chosen;
  for (int variant : cover.variants) {
    const CandidateVariant& v = variants_[static_cast<size_t>(variant)];
    const VariantClass& of = classes_[static_cast<size_t>(class_of_[static_cast<size_t>(variant)])];
    const double seconds = of.exact.value_or(0);
    chosen.push_back(
        {&candidates_[static_cast<size_t>(v.candidate)], v.layouts, seconds < kInfinity ? seconds : 0, of.schedule});
  }
  return chosen;
}

std::optional<IRModule> Partitioner::Apply(const Cover& cover, const IRModule& module) const {
  std::optional<Function> main = RewritePartitions(graph_, ChosenOf(cover));
  if (!main) return std::nullopt;
  IRModule result = module;
  result.Set("main", *main);
  return InferTypes(std::move(result));
}

std::string Partitioner::ToJson(const Cover& cover) const { return PartitioningToJson(graph_, ChosenOf(cover)); }

std::pair<IRModule, double> Partitioner::ApplyJson(std::string_view text, const std::string& where,
                                                   const std::vector<const Toolchain*>& toolchains,
                                                   const IRModule& module) const {
  const RestoredPartitioning restored = PartitioningFromJson(text, where, graph_, eligible_, toolchains);
  double seconds = 0;
  for (const ChosenPartition& partition : restored.chosen) seconds += partition.estimated_seconds;
  IRModule result = module;
  result.Set("main", *RewritePartitions(graph_, restored.chosen));
  return {InferTypes(std::move(result)), seconds};
}

std::string Partitioner::ExplainStuck(const std::vector<int>& nodes) const {
  constexpr size_t kShown = 5;
  std::string text;
  std::set<std::string> explained;
  for (int node : nodes) {
    const std::string label = graph_.LabelAt(node);
    if (!explained.insert(label).second || explained.size() > kShown) continue;
    text += fmt::format("{}'{}' (node {})", text.empty() ? "" : "; ", label, graph_.node(node).expr->span().source);
    for (const auto& [key, reason] : refusals_) {
      if (key.second == label) text += fmt::format(", {}: {}", key.first, reason);
    }
  }
  return text;
}

void Partitioner::MarkPrimary() {
  std::unordered_map<int, std::vector<int>> holding;  // operator node → candidates that hold it
  for (size_t i = 0; i < candidates_.size(); ++i) {
    for (int member : candidates_[i].sub_graph.members()) holding[member].push_back(static_cast<int>(i));
  }
  for (const CandidatePartition& candidate : candidates_) {
    const SubGraph& own = candidate.sub_graph;
    const bool is_single = own.depth() == 1;
    const std::vector<int>& others = holding[own.first()];
    const bool is_inside = std::any_of(others.begin(), others.end(), [&](int other) {
      const CandidatePartition& larger = candidates_[static_cast<size_t>(other)];
      return larger.toolchain == candidate.toolchain && larger.rule_name != "maximal" &&
             larger.sub_graph.members().size() > own.members().size() &&
             own.inside().IsSubset(larger.sub_graph.inside());
    });
    is_primary_.push_back(is_single || !is_inside);
  }
}

void Partitioner::AddCandidates(const Toolchain& toolchain, const PartitionRule& rule) {
  RuleLog log;
  log.on_refusal = [&](const std::string& label, const Reason& reason) {
    refusals_.emplace(std::pair(toolchain.name(), label), reason.text);
  };
  for (CandidatePartition& candidate : rule.AllCandidates(graph_, toolchain, log)) {
    // What a rule of the user's finds may be anything; what computes nothing, or cannot be run in one go, is no use.
    const std::vector<int>& members = candidate.sub_graph.members();
    const bool computes = std::any_of(members.begin(), members.end(), [&](int index) {
      return graph_.OpAt(index) != nullptr && !graph_.node(index).is_in_primitive;
    });
    if (computes && candidate.sub_graph.CheckRunnable(graph_).ok()) AddVariants(std::move(candidate));
  }
}

void Partitioner::AddVariants(CandidatePartition candidate) {
  const ExtractedFunction extracted = Extract(graph_, candidate.sub_graph);
  const auto eligible = [&](const std::vector<BoundaryValue>& values) {
    std::vector<bool> result;
    for (const BoundaryValue& value : values) {
      result.push_back(value.field < 0 && eligible_[static_cast<size_t>(value.node)]);
    }
    return result;
  };
  const std::vector<BoundaryLayouts> choices = candidate.toolchain->Layouts(
      extracted.function, eligible(extracted.boundary.inputs), eligible(extracted.boundary.outputs));
  if (choices.empty()) return;  // calls that it supports one by one, but not as this partition
  if (std::find(places_.begin(), places_.end(), candidate.toolchain) == places_.end()) {
    places_.push_back(candidate.toolchain);
  }
  const std::string workload = StructuralHash(extracted.function, {.constants_by_shape = true});
  for (const BoundaryLayouts& layouts : choices) {
    const auto [number, is_new] =
        class_numbers_.emplace(std::tuple(workload, layouts, candidate.toolchain), static_cast<int>(classes_.size()));
    if (is_new) {
      classes_.push_back({workload, WorkOf(extracted.function, layouts), static_cast<int>(variants_.size()), {}});
    }
    class_of_.push_back(number->second);
    by_place_[{OperatorsOf(candidate), layouts}].push_back(static_cast<int>(variants_.size()));
    variants_.push_back({static_cast<int>(candidates_.size()), layouts});
  }
  candidates_.push_back(std::move(candidate));
}

}  // namespace collage
