// explain_candidates.cc: rows for candidates, one cost for equal ones.
#include "driver/explanation/explain_candidates.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "driver/covers/partitioning_json.h"
#include "driver/explanation/describe_graph.h"
#include "search/least_seconds_with.h"
#include "search/renumbered_costs.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

using Json = nlohmann::json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A time as far as it is known.
std::optional<double> Known(double seconds) {
  return seconds > 0 && seconds < kInfinity ? std::optional(Rounded(seconds)) : std::nullopt;
}

ExplainedCost CostOf(Partitioner& partitioner, VariantIndex variant) {
  ExplainedCost cost;
  const Work& work = partitioner.WorkOf(variant);
  cost.multiply_adds = work.multiply_adds;
  cost.bytes = work.constant_bytes + work.boundary_bytes;
  const bool is_known = partitioner.IsAtHand(variant);
  const double seconds = is_known ? partitioner.Exact(variant) : partitioner.LowerBound(variant);
  if (seconds == kInfinity) {
    cost.state = ExplainedCost::State::kFailed;
    cost.reason = partitioner.WhyInvalid(variant);
    return cost;
  }
  cost.seconds = Rounded(seconds);
  cost.least_seconds = Known(partitioner.LeastOfAny(variant));
  const TuningRecord* record = is_known ? partitioner.RecordOf(variant) : nullptr;
  if (record == nullptr || !record->ok) return cost;
  cost.state =
      partitioner.IsKnownToCompile(variant) ? ExplainedCost::State::kMeasured : ExplainedCost::State::kEstimated;
  cost.p10 = Known(record->p10);
  cost.p25 = Known(record->p25);
  cost.p50 = Known(record->p50);
  cost.p75 = Known(record->p75);
  cost.p90 = Known(record->p90);
  cost.half_width = Known(record->half_width);
  cost.samples = record->num_samples;
  cost.error = Rounded(record->max_error);
  cost.schedule = record->schedule;
  for (const TuningRecord& trial : partitioner.TrialsOf(variant)) {
    cost.trials.push_back({trial.schedule, trial.ok ? Known(trial.p50) : std::nullopt, trial.ok ? "" : trial.reason});
  }
  return cost;
}

/// Costs as far as they are known, for bounds.
class AsKnown : public RenumberedCosts {
 public:
  AsKnown(Partitioner& partitioner, const OriginalVariants& original) : RenumberedCosts(partitioner, original) {}
  double Exact(VariantIndex variant) override { return LowerBound(variant); }
  bool FindsOut() const override { return false; }
  double Convert(int, Format, Format) override { return 0; }
};

}  // namespace

std::vector<std::string> NamesOf(const std::vector<Layout>& layouts) {
  std::vector<std::string> names;
  for (const Layout layout : layouts) names.emplace_back(ToString(layout));
  return names;
}

int CandidateTable::ToolchainOf(const std::string& name) {
  auto& toolchains = explanation_.toolchains;
  const auto found = std::ranges::find(toolchains, name, &ExplainedToolchain::name);
  if (found != toolchains.end()) return static_cast<int>(found - toolchains.begin());
  toolchains.push_back({name, RegisteredName(name), ""});
  return static_cast<int>(toolchains.size()) - 1;
}

int CandidateTable::Add(ExplainedCandidate candidate) {
  const Key key(candidate.toolchain, candidate.nodes, candidate.inputs, candidate.outputs, candidate.rule);
  const auto [number, is_new] = numbers_.emplace(key, static_cast<int>(explanation_.candidates.size()));
  if (is_new) explanation_.candidates.push_back(std::move(candidate));
  return number->second;
}

ExplainedCandidate CandidateTable::Describe(const Candidates& candidates, VariantIndex variant) {
  const CandidatePartition& partition = candidates.CandidateOf(variant);
  const BoundaryLayouts& layouts = candidates.variant(variant).layouts;
  ExplainedCandidate described;
  described.toolchain = ToolchainOf(partition.toolchain->name());
  described.rule = partition.rule_name;
  described.nodes = partition.sub_graph.members();
  described.inputs = NamesOf(layouts.inputs);
  described.outputs = NamesOf(layouts.outputs);
  // A toolchain with a pattern table finds them again.
  if (!partition.sub_graph.nested.empty() && partition.toolchain->PatternTable().empty()) {
    described.nested = NestedToJson(partition.sub_graph.nested);
  }
  return described;
}

void CandidateTable::AddSearched(Partitioner& partitioner, double best_seconds, size_t most) {
  const Candidates& candidates = partitioner.candidates();
  std::vector<VariantIndex> kept;
  for (const VariantIndex v : candidates.variants().indices()) kept.push_back(v);
  if (kept.size() > most) {
    OriginalVariants all;
    for (const VariantIndex v : kept) all.push_back(v);
    AsKnown costs(partitioner, all);
    const IndexedVector<VariantIndex, double> least =
        LeastSecondsWith(partitioner.Problem(), costs, [&](VariantIndex v) { return partitioner.LowerBound(v); });
    std::erase_if(kept, [&](VariantIndex v) { return !partitioner.IsAtHand(v) && least[v] >= best_seconds; });
    if (kept.size() > most) {
      std::ranges::stable_sort(kept, {}, [&](VariantIndex v) { return std::pair(!partitioner.IsAtHand(v), least[v]); });
      kept.resize(most);
      std::ranges::sort(kept);
    }
  }
  explanation_.candidates_left_out = static_cast<int64_t>(candidates.variants().size() - kept.size());
  for (const VariantIndex v : kept) NumberOf(partitioner, v);
}

int CandidateTable::NumberOf(Partitioner& partitioner, VariantIndex variant) {
  const auto known = number_of_variant_.find(variant);
  if (known != number_of_variant_.end()) return known->second;
  ExplainedCandidate described = Describe(partitioner.candidates(), variant);
  const auto [cost, is_new] =
      cost_of_class_.emplace(partitioner.ClassOf(variant), static_cast<int>(explanation_.costs.size()));
  if (is_new) explanation_.costs.push_back(CostOf(partitioner, variant));
  described.cost = cost->second;
  const int number = Add(std::move(described));
  number_of_variant_.emplace(variant, number);
  variant_at_.emplace(number, variant);
  return number;
}

int CandidateTable::NumberOf(const Json& partition) {
  ExplainedCandidate described;
  described.toolchain = ToolchainOf(partition.at("toolchain").get<std::string>());
  described.rule = partition.value("rule", "");
  described.nodes = partition.at("inside").get<std::vector<int>>();
  described.inputs = partition.at("inputs").get<std::vector<std::string>>();
  described.outputs = partition.at("outputs").get<std::vector<std::string>>();
  if (partition.contains("nested")) described.nested = partition.at("nested");
  return Add(std::move(described));
}

std::optional<VariantIndex> CandidateTable::VariantAt(int number) const {
  const auto found = variant_at_.find(number);
  return found == variant_at_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace collage
