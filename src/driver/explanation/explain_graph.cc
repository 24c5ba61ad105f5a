// explain_graph.cc: one function for each part of an explanation.
#include "driver/explanation/explain_graph.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "collage/ir/visitor.h"
#include "driver/covers/alternative_finder.h"
#include "driver/covers/partitioning_json.h"
#include "driver/explanation/describe_graph.h"
#include "driver/explanation/explain_candidates.h"
#include "driver/phases/equal_constants.h"
#include "ir/place.h"
#include "support/stopwatch.h"
#include "target/annotations.h"

namespace collage {
namespace {

using Json = nlohmann::json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Alternatives of the partitions that take most are found first; a large graph has no time for all.
constexpr double kMostSeconds = 5;
// Rows that keep an explanation of a large model below some hundred kilobytes.
constexpr size_t kMostCandidates = 5000;

/// For each partition of a module, in the order of RewritePartitions, its number among the kernels of a plan.
std::vector<int> KernelNumbers(const IRModule& module, size_t num_partitions) {
  std::vector<int> numbers(num_partitions, -1);
  int kernel = 0;
  PostOrderInScope(module.main()->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    const FunctionNode* function = call == nullptr ? nullptr : As<FunctionNode>(call->callee());
    if (function == nullptr || function->attrs().IntOr(kAttrPrimitive, 0) == 0) return;
    const std::string symbol = function->attrs().StringOr("global_symbol", "");
    const size_t number = std::stoul(symbol.substr(symbol.rfind('_') + 1));
    if (number < numbers.size()) numbers[number] = kernel;
    ++kernel;
  });
  return numbers;
}

/// Explains one graph.
class GraphExplainer {
 public:
  GraphExplainer(const Function& function, SearchedForm* searched, const EndedPlayOff& play_off,
                 const std::map<std::string, std::string>& versions)
      : graph_(function), searched_(searched), play_off_(play_off), versions_(versions), table_(explanation_) {}

  GraphExplanation Explain() {
    explanation_.hash = GraphDigest(graph_);
    explanation_.winner = play_off_.winner.name;
    explanation_.nodes = DescribeNodes(graph_);
    explanation_.results = ResultsOf(graph_);
    if (searched_ != nullptr) {
      searched_->estimator->SetBudget(0);
      AddRates();
      table_.AddSearched(partitioner(), BestSeconds(), kMostCandidates);
    }
    AddContenders();
    AddPartitions();
    if (searched_ != nullptr) {
      AddCovers();
      AddPenalties();
      AddConversions();
      AddGaps();
    }
    for (ExplainedToolchain& toolchain : explanation_.toolchains) {
      const auto version = versions_.find(toolchain.registered);
      if (version != versions_.end()) toolchain.version = version->second;
    }
    return std::move(explanation_);
  }

 private:
  Partitioner& partitioner() const { return *searched_->partitioner; }
  const Candidates& candidates() const { return *searched_->candidates; }

  double BestSeconds() const {
    double best = kInfinity;
    for (const NamedCover& one : searched_->found.covers) {
      if (one.cover.num_unknown == 0 && one.cover.seconds > 0) best = std::min(best, one.cover.seconds);
    }
    return best;
  }

  void AddRates() {
    const MachineRates rates = searched_->estimator->Rates();
    const auto [near, shared, memory] = rates.bytes;
    explanation_.rates = {Rounded(rates.multiply_adds), Rounded(near), Rounded(shared), Rounded(memory)};
  }

  void AddContenders() {
    for (size_t i = 0; i < play_off_.modules.size(); ++i) {
      const ContenderModule& module = play_off_.modules[i];
      const Contender& ran = play_off_.contenders[i];
      ExplainedContender contender{.name = module.name, .baselines = module.baselines};
      contender.rounds = {ran.first_rounds, ran.final_rounds};
      if (IsPartitioningOf(module.partitioning, graph_)) contender.partitions = NumbersOf(module);
      explanation_.contenders.push_back(std::move(contender));
    }
  }

  std::vector<int> NumbersOf(const ContenderModule& module) {
    const Json json = Json::parse(module.partitioning);
    std::vector<int> numbers;
    for (const Json& partition : json.at("partitions")) numbers.push_back(table_.NumberOf(partition));
    return numbers;
  }

  /// The winner's partitions, in the order of kernels.
  void AddPartitions() {
    const std::vector<int> numbers = NumbersOf(play_off_.winner);
    const std::vector<int> kernels = KernelNumbers(play_off_.winner.module, numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) {
      explanation_.partitions.push_back(PartitionOf(numbers[i]));
      if (kernels[i] >= 0) explanation_.partitions.back().kernel = kernels[i];
    }
    AddAlternatives(numbers);
    std::ranges::stable_sort(explanation_.partitions, {},
                             [](const ExplainedPartition& one) { return one.kernel.value_or(0); });
    Renumber(kernels);
  }

  ExplainedPartition PartitionOf(int number) const {
    const ExplainedCandidate& candidate = explanation_.candidates[static_cast<size_t>(number)];
    ExplainedPartition partition;
    partition.candidate = number;
    partition.operators = SubGraph(graph_, candidate.nodes).OperatorLabel(graph_);
    for (const int node : candidate.nodes) {
      if (graph_.OpAt(node) == nullptr) continue;
      partition.nodes.push_back(node);
      if (partition.first_node.empty()) partition.first_node = PlaceOf(graph_.node(node).expr->span());
    }
    if (candidate.cost) partition.seconds = explanation_.costs[static_cast<size_t>(*candidate.cost)].seconds;
    return partition;
  }

  /// Numbers in `replaces` were in the order of the cover.
  void Renumber(const std::vector<int>& kernels) {
    std::vector<int> place(kernels.size());
    std::vector<size_t> order(kernels.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t i) { return std::max(kernels[i], 0); });
    for (size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<int>(i);
    for (ExplainedPartition& partition : explanation_.partitions) {
      for (ExplainedAlternative& one : partition.alternatives) {
        for (int& number : one.replaces) number = place[static_cast<size_t>(number)];
        std::ranges::sort(one.replaces);
      }
    }
  }

  /// The winner as a cover; nothing where a partition is no candidate.
  std::optional<Cover> CoverOf(const std::vector<int>& numbers) const {
    Cover cover;
    for (const int number : numbers) {
      const std::optional<VariantIndex> variant = table_.VariantAt(number);
      if (!variant) return std::nullopt;
      cover.variants.push_back(*variant);
    }
    return cover;
  }

  void AddAlternatives(const std::vector<int>& numbers) {
    if (searched_ == nullptr) {
      explanation_.no_alternatives = "the partitions were given: nothing was searched";
      return;
    }
    const std::optional<Cover> cover = CoverOf(numbers);
    if (!cover) {
      explanation_.no_alternatives = "the winner has partitions that are no candidates of the search";
      return;
    }
    const auto& covers = searched_->found.covers;
    explanation_.best_mix =
        !covers.empty() && covers.front().name == kBestCover && IsSame(covers.front().cover, *cover);
    AlternativeFinder finder(partitioner(), *cover, searched_->allowed);
    if (!finder.IsExplained()) {
      explanation_.no_alternatives = "costs of the winner's partitions are not known";
      return;
    }
    std::vector<size_t> dearest(numbers.size());
    std::iota(dearest.begin(), dearest.end(), size_t{0});
    std::ranges::stable_sort(dearest, std::greater(),
                             [&](size_t i) { return explanation_.partitions[i].seconds.value_or(0); });
    winner_drift_ = DriftOf(finder);
    NumberWeights();
    const double end = SteadySeconds() + kMostSeconds;
    for (const size_t i : dearest) {
      AddPenalties(finder, i, explanation_.partitions[i]);
      explanation_.partitions[i].is_skipped = SteadySeconds() > end;
      if (!explanation_.partitions[i].is_skipped) AddAlternatives(finder, i, explanation_.partitions[i]);
    }
  }

  static bool IsSame(const Cover& a, const Cover& b) {
    return std::set(a.variants.begin(), a.variants.end()) == std::set(b.variants.begin(), b.variants.end());
  }

  void AddPenalties(const AlternativeFinder& finder, size_t number, ExplainedPartition& partition) const {
    if (partition.seconds) partition.share = Rounded(*partition.seconds / finder.seconds());
    const CoverPenalties& penalties = finder.penalties()[number];
    partition.transition_seconds = Rounded(penalties.transition);
    partition.switch_seconds = Rounded(penalties.toolchain_switch);
    for (const CoverConversion& one : penalties.conversions) {
      partition.conversion_seconds += one.seconds;
      partition.conversions.push_back(ConversionOf(one));
    }
    partition.conversion_seconds = Rounded(partition.conversion_seconds);
  }

  void AddAlternatives(AlternativeFinder& finder, size_t number, ExplainedPartition& partition) {
    AlternativeFinder::Ways ways = finder.Within(number);
    for (const CoverAlternative& one : ways.alternatives) {
      partition.alternatives.push_back(AlternativeOf(one, ExplainedAlternative::Scope::kSame));
    }
    for (const CoverAlternative& one : finder.Around(number)) {
      partition.alternatives.push_back(AlternativeOf(one, ExplainedAlternative::Scope::kWider));
    }
    std::ranges::stable_sort(partition.alternatives, {}, [](const ExplainedAlternative& one) {
      return std::pair(one.at_least, one.extra_seconds);
    });
    for (const auto& [toolchain, reason] : ways.refusals) {
      partition.refused.push_back({table_.ToolchainOf(toolchain->name()), reason});
    }
    std::ranges::sort(partition.refused, {}, &ExplainedRefusal::toolchain);
  }

  ExplainedAlternative AlternativeOf(const CoverAlternative& found, ExplainedAlternative::Scope scope) {
    ExplainedAlternative one;
    one.scope = scope;
    if (found.toolchain != nullptr) one.toolchain = table_.ToolchainOf(found.toolchain->name());
    for (const VariantIndex v : found.variants) one.candidates.push_back(table_.NumberOf(partitioner(), v));
    for (const size_t replaced : found.replaces) one.replaces.push_back(static_cast<int>(replaced));
    one.extra_seconds = Rounded(found.extra_seconds);
    one.own_seconds = Rounded(found.own_seconds);
    one.replaced_seconds = Rounded(found.replaced_seconds);
    one.penalty_seconds = Rounded(found.extra_seconds - (found.own_seconds - found.replaced_seconds));
    for (const CoverConversion& conversion : found.conversions) one.conversions.push_back(ConversionOf(conversion));
    one.at_least = found.is_bound;
    SetInterval(found, one);
    return one;
  }

  /// The 95 % interval of the difference: what each cost may be off by, as independent errors. Costs are of partitions
  /// alone. Within the model those replaced may take as much less, or more, as the winner took than its costs add up
  /// to; and weights of which other partitions read the same copy may have to be fetched, for both.
  void SetInterval(const CoverAlternative& found, ExplainedAlternative& one) const {
    double squares = 0;
    const auto add = [&](int number) {
      const ExplainedCandidate& candidate = explanation_.candidates[static_cast<size_t>(number)];
      if (!candidate.cost) return;
      const ExplainedCost& cost = explanation_.costs[static_cast<size_t>(*candidate.cost)];
      const double seconds = cost.seconds.value_or(0);
      const double noise = (seconds < kShortSeconds ? kShortNoise : kCostNoise) * seconds;
      squares += std::pow(std::max(noise, cost.half_width.value_or(0)), 2);
    };
    for (const int number : one.candidates) add(number);
    for (const int replaced : one.replaces) add(explanation_.partitions[static_cast<size_t>(replaced)].candidate);
    for (const CoverConversion& conversion : found.conversions) squares += std::pow(kCostNoise * conversion.seconds, 2);
    const double noise = std::sqrt(squares);
    const double drift = found.replaced_seconds * winner_drift_;
    one.low_seconds = Rounded(found.extra_seconds - noise - std::max(drift, 0.0));
    if (found.is_bound) return;
    const double rate = explanation_.rates.memory_bytes;
    // A copy of its own is fetched, and pushes the one of the others out of the cache.
    const double fetch = rate > 0 ? 2 * static_cast<double>(SharedWeightBytes(one.replaces)) / rate : 0;
    one.high_seconds = Rounded(found.extra_seconds + noise + std::max(-drift, 0.0) + fetch);
  }

  /// The share by which the winner took longer than its costs add up to; 0 where one of them is unknown.
  double DriftOf(const AlternativeFinder& finder) const {
    for (size_t i = 0; i < play_off_.modules.size(); ++i) {
      if (play_off_.modules[i].name != play_off_.winner.name || finder.seconds() <= 0) continue;
      if (play_off_.contenders[i].p50 > 0) return play_off_.contenders[i].p50 / finder.seconds() - 1;
    }
    return 0;
  }

  void NumberWeights() {
    for (const ExplainedPartition& partition : explanation_.partitions) {
      std::set<size_t>& weights = weights_.emplace_back();
      for (const int node : partition.nodes) {
        for (const int input : graph_.node(node).inputs) {
          const ConstantNode* constant = As<ConstantNode>(graph_.node(input).expr);
          if (constant != nullptr) weights.insert(equal_.NumberOf(constant->value()));
        }
      }
      for (const size_t weight : weights) ++readers_[weight];
    }
  }

  /// Bytes of weights that partitions read which `replaced` has not got, and some that it has.
  int64_t SharedWeightBytes(const std::vector<int>& replaced) const {
    std::map<size_t, int> read;
    for (const int number : replaced) {
      for (const size_t weight : weights_[static_cast<size_t>(number)]) ++read[weight];
    }
    int64_t bytes = 0;
    for (const auto& [weight, count] : read) {
      if (count < readers_.at(weight)) bytes += equal_.BytesOf(weight);
    }
    return bytes;
  }

  ExplainedConversion ConversionOf(const CoverConversion& conversion) const {
    const BoundaryValue value = partitioner().Problem().ValueAt(conversion.value);
    ExplainedConversion one;
    one.node = value.node;
    if (value.field >= 0) one.field = value.field;
    one.from = ToString(static_cast<Layout>(conversion.from));
    one.to = ToString(static_cast<Layout>(conversion.to));
    one.seconds = Rounded(conversion.seconds);
    one.at_least = !partitioner().IsConversionAtHand(conversion.value, conversion.from, conversion.to);
    return one;
  }

  void AddCovers() {
    for (const NamedCover& one : searched_->found.covers) {
      ExplainedCover cover{.name = one.name, .seconds = Rounded(one.cover.seconds), .unknown = one.cover.num_unknown};
      for (const VariantIndex v : one.cover.variants) cover.partitions.push_back(table_.NumberOf(partitioner(), v));
      explanation_.covers.push_back(std::move(cover));
    }
    for (const SearchStep& step : searched_->steps) {
      ExplainedProgress& progress = explanation_.progress.emplace_back();
      progress.seconds = Rounded(step.at_seconds);
      progress.measured = step.num_measured;
      if (step.best_seconds > 0 && step.best_seconds < kInfinity) progress.best_seconds = Rounded(step.best_seconds);
      if (step.least_seconds > 0 && step.least_seconds < kInfinity)
        progress.least_seconds = Rounded(step.least_seconds);
    }
  }

  void AddPenalties() {
    explanation_.penalties.transition_seconds = Rounded(searched_->estimator->TransitionSeconds());
    for (const Toolchain* from : candidates().toolchains()) {
      for (const Toolchain* to : candidates().toolchains()) {
        if (from == to) continue;
        const double seconds = searched_->estimator->SwitchSeconds(*from, *to);
        if (seconds == 0) continue;
        explanation_.penalties.switches.push_back(
            {table_.ToolchainOf(from->name()), table_.ToolchainOf(to->name()), Rounded(seconds)});
      }
    }
  }

  /// Prices, as far as they are known, of all changes of formats that two candidates could make necessary.
  void AddConversions() {
    std::set<FormatUse> made, wanted;
    for (const CoverVariant& variant : partitioner().Problem().variants) {
      made.insert(variant.makes.begin(), variant.makes.end());
      wanted.insert(variant.wants.begin(), variant.wants.end());
    }
    for (const auto& [value, _] : partitioner().Problem().values) made.insert({value, 0});
    for (const FormatUse& from : made) {
      for (auto to = wanted.lower_bound({from.value, 0}); to != wanted.end() && to->value == from.value; ++to) {
        if (to->format == from.format) continue;
        if (!partitioner().IsConversionAtHand(from.value, from.format, to->format)) continue;
        const double seconds = partitioner().Convert(from.value, from.format, to->format);
        explanation_.conversions.push_back(ConversionOf({from.value, from.format, to->format, seconds}));
      }
    }
  }

  /// For each spec, the nodes in no candidate that can be run, by the reason.
  void AddGaps() {
    std::map<std::tuple<int, std::string, std::string>, std::set<int>> gaps;
    for (const PartitionSpec& spec : candidates().specs()) AddGaps(spec, gaps);
    for (const auto& [key, nodes] : gaps) {
      explanation_.gaps.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), {nodes.begin(), nodes.end()}});
    }
  }

  void AddGaps(const PartitionSpec& spec, std::map<std::tuple<int, std::string, std::string>, std::set<int>>& gaps) {
    const int toolchain = table_.ToolchainOf(spec.toolchain->name());
    std::map<int, std::string> failed;  // node → why its last candidate cannot be run
    std::set<int> computed;
    for (const VariantIndex v : candidates().variants().indices()) {
      if (candidates().CandidateOf(v).spec != &spec) continue;
      const std::vector<int> nodes = partitioner().NodesAt(partitioner().Problem().variants[v].covers);
      if (!partitioner().IsInvalid(v)) {
        computed.insert(nodes.begin(), nodes.end());
      } else {
        for (const int node : nodes) failed[node] = partitioner().WhyInvalid(v);
      }
    }
    for (const int node : partitioner().Problem().nodes) {
      if (computed.contains(node)) continue;
      const auto why = failed.find(node);
      const std::string refusal = partitioner().RefusalOf(spec, graph_.LabelAt(node));
      const std::string kind = why != failed.end() ? "failed" : refusal.empty() ? "no_rule" : "declined";
      const std::string reason = why != failed.end() ? why->second
                                 : refusal.empty()   ? "its rule finds no candidate with it"
                                                     : refusal;
      gaps[{toolchain, kind, reason}].insert(node);
    }
  }

  // A candidate's cost differs by as much from one measurement to the next, and from its time within a model
  // (docs/results.md, "Repeatability").
  static constexpr double kCostNoise = 0.05;
  static constexpr double kShortNoise = 0.1;
  static constexpr double kShortSeconds = 100e-6;

  DataflowGraph graph_;
  SearchedForm* searched_;
  const EndedPlayOff& play_off_;
  const std::map<std::string, std::string>& versions_;
  GraphExplanation explanation_;
  CandidateTable table_;
  double winner_drift_ = 0;
  EqualConstants equal_;
  std::vector<std::set<size_t>> weights_;  ///< numbers of the constants that each partition reads
  std::map<size_t, int> readers_;          ///< how many partitions read a constant
};

}  // namespace

GraphExplanation ExplainGraph(const Function& function, SearchedForm* searched, const EndedPlayOff& play_off,
                              const std::map<std::string, std::string>& versions) {
  return GraphExplainer(function, searched, play_off, versions).Explain();
}

}  // namespace collage
