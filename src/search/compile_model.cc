// compile_model.cc: the main job: import, candidates, search, play-off.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>

#include "backends/builtin_toolchains.h"
#include "collage/extract.h"
#include "collage/rewrite.h"
#include "collage/compile.h"
#include "collage/frontend/onnx.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "cost/estimator.h"
#include "search/find_covers.h"
#include "search/layout_analysis.h"
#include "search/play_off.h"
#include "support/machine.h"

namespace collage {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Calling one more kernel: a virtual call and its arguments, see benchmarks/overhead.
constexpr double kTransitionSeconds = 50e-9;
// Memory that a worker may take beyond what the compiler holds.
constexpr int64_t kWorkerMemoryBytes = int64_t{12} << 30;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// The model's candidates of all toolchains and layouts, and their costs from the estimator.
class Partitioner : public CoverCosts {
 public:
  Partitioner(const IRModule& module, std::vector<const Toolchain*> toolchains, CompileReport& report)
      : graph_(module.main()), eligible_(ChannelsLastEligible(graph_)), report_(report) {
    for (const Toolchain* toolchain : toolchains) AddCandidates(*toolchain);
    MarkPrimary();
    report_.num_candidates = static_cast<int64_t>(candidates_.size());
    report_.num_variants = static_cast<int64_t>(variants_.size());
  }

  void SetEstimator(CostEstimator* estimator) { estimator_ = estimator; }

  const DataflowGraph& graph() const { return graph_; }
  const Toolchain* ToolchainOf(int candidate) const { return candidates_[static_cast<size_t>(candidate)].toolchain; }

  /// What the worker asks for by variant number.
  std::pair<PartitionRequest, const Toolchain*> Find(int64_t variant) const {
    const CandidateVariant& v = variants_.at(static_cast<size_t>(variant));
    const CandidatePartition& candidate = candidates_[static_cast<size_t>(v.candidate)];
    return {{Extract(graph_, candidate.sub_graph).function, v.layouts, report_.num_threads}, candidate.toolchain};
  }

  double LowerBound(int) override { return 0; }

  double Exact(int variant) override {
    if (auto it = exact_.find(variant); it != exact_.end()) return it->second;
    const auto [request, toolchain] = Find(variant);
    const CandidateVariant& v = variants_[static_cast<size_t>(variant)];
    const TuningRecord record = estimator_->Estimate(
        {request, *toolchain, variant, candidates_[static_cast<size_t>(v.candidate)].sub_graph.OperatorLabel(graph_)});
    if (record.is_skipped) return kInfinity;  // may be measured when there is more time
    return exact_[variant] = record.ok ? record.p50 : kInfinity;
  }

  /// Whether candidate `index` is of those that are tried first: single operators, and what no other candidate of the same
  /// toolchain holds. A cover of these is found soon; the others refine it.
  bool IsPrimary(int index) const { return is_primary_[static_cast<size_t>(index)]; }

  double Convert(int node, Layout from, Layout to) override {
    const TensorTypeNode* type = AsTensorType(graph_.node(node).expr->checked_type());
    return estimator_->ConvertSeconds(type->static_shape(), type->dtype(), from, to);
  }

  double Transition() override { return kTransitionSeconds; }

  /// Covers by candidates of `allowed` toolchains.
  SearchResult Search(const std::function<bool(int candidate)>& allowed, const SearchOptions& options) {
    std::vector<int> original;
    std::vector<CandidateVariant> variants;
    for (size_t v = 0; v < variants_.size(); ++v) {
      if (!allowed(variants_[v].candidate)) continue;
      original.push_back(static_cast<int>(v));
      variants.push_back(variants_[v]);
    }
    Renumbered costs(*this, original);
    SearchResult result = FindCovers(graph_, candidates_, variants, eligible_, costs, options);
    for (Cover& cover : result.covers) {
      for (int& variant : cover.variants) variant = original[static_cast<size_t>(variant)];
    }
    return result;
  }

  /// The partitioned module of a cover; nothing when its partitions depend on each other in a circle.
  std::optional<IRModule> Apply(const Cover& cover, const IRModule& module) {
    std::vector<ChosenPartition> chosen;
    for (int variant : cover.variants) {
      const CandidateVariant& v = variants_[static_cast<size_t>(variant)];
      auto known = exact_.find(variant);
      const double seconds = known == exact_.end() || known->second == kInfinity ? 0 : known->second;
      chosen.push_back({&candidates_[static_cast<size_t>(v.candidate)], v.layouts, seconds});
    }
    std::optional<Function> main = RewritePartitions(graph_, chosen);
    if (!main) return std::nullopt;
    IRModule result = module;
    result.Set("main", *main);
    return InferTypes(std::move(result));
  }

  /// The cover that a toolchain's own partitioning would give: its largest candidates first, what it cannot take by the
  /// fall-back toolchain, layouts as the toolchain likes them best. Needs no measurement. Nothing when nodes stay open.
  std::optional<Cover> GreedyCover(const Toolchain& toolchain, const Toolchain* fall_back) {
    std::vector<int> order;
    for (size_t v = 0; v < variants_.size(); ++v) {
      const CandidatePartition& candidate = candidates_[static_cast<size_t>(variants_[v].candidate)];
      if (candidate.toolchain == &toolchain || candidate.toolchain == fall_back) order.push_back(static_cast<int>(v));
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      const CandidatePartition& x = candidates_[static_cast<size_t>(variants_[static_cast<size_t>(a)].candidate)];
      const CandidatePartition& y = candidates_[static_cast<size_t>(variants_[static_cast<size_t>(b)].candidate)];
      const bool x_own = x.toolchain == &toolchain;
      const bool y_own = y.toolchain == &toolchain;
      if (x_own != y_own) return x_own;
      return x.sub_graph.members().size() > y.sub_graph.members().size();
    });
    IndexSet left(graph_.size());
    for (int index = 0; index < static_cast<int>(graph_.size()); ++index) {
      if (graph_.OpAt(index) != nullptr && !graph_.OpAt(index)->is_reshape) left.Add(index);
    }
    const IndexSet all = left;
    Cover cover;
    for (int variant : order) {
      const SubGraph& sub_graph = candidates_[static_cast<size_t>(variants_[static_cast<size_t>(variant)].candidate)].sub_graph;
      const IndexSet covers = sub_graph.inside() & all;
      if (covers.IsZero() || !covers.IsSubset(left)) continue;
      cover.variants.push_back(variant);
      left = left - covers;
    }
    if (!left.IsZero()) return std::nullopt;
    return cover;
  }

  /// "node 12 'nn.lrn': native: …" for nodes that no candidate covers.
  std::string ExplainStuck(const std::vector<int>& nodes) const {
    std::string text;
    for (size_t i = 0; i < nodes.size() && i < 5; ++i) {
      const int node = nodes[i];
      text += fmt::format("{}'{}' ({})", text.empty() ? "" : "; ", graph_.LabelAt(node), graph_.node(node).expr->span().source);
      for (const auto& [key, reason] : refusals_) {
        if (key.second == graph_.LabelAt(node)) text += fmt::format(", {}: {}", key.first, reason);
      }
    }
    return text;
  }

 private:
  /// Costs by positions in a selection of the variants.
  class Renumbered : public CoverCosts {
   public:
    Renumbered(Partitioner& all, const std::vector<int>& original) : all_(all), original_(original) {}
    double LowerBound(int variant) override { return all_.LowerBound(original_[static_cast<size_t>(variant)]); }
    double Exact(int variant) override { return all_.Exact(original_[static_cast<size_t>(variant)]); }
    double Convert(int node, Layout from, Layout to) override { return all_.Convert(node, from, to); }
    double Transition() override { return all_.Transition(); }

   private:
    Partitioner& all_;
    const std::vector<int>& original_;
  };

  void MarkPrimary() {
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
               larger.sub_graph.members().size() > own.members().size() && own.inside().IsSubset(larger.sub_graph.inside());
      });
      is_primary_.push_back(is_single || !is_inside);
    }
  }

  void AddCandidates(const Toolchain& toolchain) {
    RuleLog log;
    log.on_refusal = [&](const std::string& label, const Reason& reason) {
      refusals_.emplace(std::pair(toolchain.name(), label), reason.text);
    };
    std::vector<CandidatePartition> found = GatherPartitionRule(toolchain)->AllCandidates(graph_, toolchain, log);
    for (CandidatePartition& candidate : found) AddVariants(std::move(candidate));
  }

  void AddVariants(CandidatePartition candidate) {
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
    candidates_.push_back(std::move(candidate));
    for (const BoundaryLayouts& layouts : choices) {
      variants_.push_back({static_cast<int>(candidates_.size()) - 1, layouts});
    }
  }

  DataflowGraph graph_;
  std::vector<bool> eligible_;
  CompileReport& report_;
  std::vector<CandidatePartition> candidates_;
  std::vector<CandidateVariant> variants_;
  std::vector<bool> is_primary_;
  CostEstimator* estimator_ = nullptr;
  std::unordered_map<int, double> exact_;
  std::map<std::pair<std::string, std::string>, std::string> refusals_;
};

void RegisterBuiltinToolchains() {
  static std::once_flag once;
  std::call_once(once, [] { AddBuiltinToolchains(ToolchainRegistry::Global()); });
}

bool Named(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The toolchains that take part; throws when a required one does not.
std::vector<const Toolchain*> ChooseToolchains(const CompileOptions& options, const CompileReport& report) {
  const ToolchainRegistry& registry = ToolchainRegistry::Global();
  for (const std::vector<std::string>* names : {&options.toolchains, &options.require}) {
    for (const std::string& name : *names) {
      if (registry.Find(name) != nullptr) continue;
      std::string known;
      for (const Toolchain* toolchain : registry.All()) known += (known.empty() ? "" : ", ") + toolchain->name();
      throw Error(ErrorCategory::kInput, fmt::format("there is no toolchain '{}'", name), "", "there are: " + known);
    }
  }
  std::vector<const Toolchain*> chosen;
  for (const ToolchainReport& probed : report.toolchains) {
    if (!probed.available && (Named(options.require, probed.name) || Named(options.toolchains, probed.name))) {
      throw Error(ErrorCategory::kUnavailable, fmt::format("toolchain '{}' is not available: {}", probed.name, probed.reason),
                  "", probed.hint);
    }
    const Toolchain* toolchain = registry.Find(probed.name);
    const bool wanted = options.toolchains.empty() || Named(options.toolchains, probed.name) || toolchain->is_native();
    if (probed.available && wanted) chosen.push_back(toolchain);
  }
  if (chosen.empty()) throw Error(ErrorCategory::kUnavailable, "no toolchain is available", "", "see collage targets");
  return chosen;
}

void DescribeModel(const IRModule& module, CompileReport& report) {
  PostOrder(module.main(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call != nullptr && call->op() != nullptr) ++report.num_operators;
    if (const ConstantNode* constant = As<ConstantNode>(expr)) report.num_parameters += constant->value().num_elements();
  });
}

/// Adds entrants, each distinct cover once.
class Field {
 public:
  Field(Partitioner& partitioner, const IRModule& module) : partitioner_(partitioner), module_(module) {}

  void Add(const std::string& name, bool is_single, const Cover& cover) {
    std::vector<int> sorted = cover.variants;
    std::sort(sorted.begin(), sorted.end());
    auto [it, is_new] = seen_.emplace(std::move(sorted), entrants_.size());
    if (!is_new) {
      // A mix that is a single toolchain's cover goes by the toolchain's name.
      if (is_single) entrants_[it->second].is_single = true;
      return;
    }
    std::optional<IRModule> partitioned = partitioner_.Apply(cover, module_);
    if (!partitioned) {
      seen_.erase(it);
      return;
    }
    entrants_.push_back({name, is_single, std::move(*partitioned), cover.seconds});
  }

  const std::vector<Entrant>& entrants() const { return entrants_; }

 private:
  Partitioner& partitioner_;
  const IRModule& module_;
  std::vector<Entrant> entrants_;
  std::map<std::vector<int>, size_t> seen_;
};

}  // namespace

std::vector<ToolchainReport> ProbeToolchains() {
  RegisterBuiltinToolchains();
  std::vector<ToolchainReport> reports;
  for (const Toolchain* toolchain : ToolchainRegistry::Global().All()) {
    const Availability availability = toolchain->Probe();
    reports.push_back({toolchain->name(), availability.available, availability.version, availability.reason,
                       availability.hint});
  }
  return reports;
}

CompileReport CompileModel(const std::filesystem::path& model, const CompileOptions& options) {
  const auto started = Clock::now();
  CompileReport report;
  const auto phase = [&](const char* name) {
    if (options.progress != nullptr) options.progress->Phase(name);
  };
  report.model = model.filename().string();
  report.output = options.output;
  report.machine = ThisMachine().cpu;
  report.num_threads = options.num_threads > 0 ? options.num_threads : AvailableProcessors();
  SetNumThreads(report.num_threads);
  report.toolchains = ProbeToolchains();
  const std::vector<const Toolchain*> toolchains = ChooseToolchains(options, report);

  phase("import");
  const IRModule module = PrepareForPartitioning(ImportOnnx(model, {options.shapes}));
  DescribeModel(module, report);
  TuningDatabase database(options.database.empty() ? TuningDatabase::DefaultPath() : options.database);
  if (options.progress != nullptr) {
    for (const std::string& notice : database.notices()) options.progress->Warn(notice);
  }
  report.import_seconds = SecondsSince(started);

  phase("candidates");
  const auto search_started = Clock::now();
  Partitioner partitioner(module, toolchains, report);
  MeasuringEstimator::Options estimating;
  estimating.num_threads = report.num_threads;
  estimating.machine = ThisMachine().fingerprint;
  estimating.limits.timeout = std::chrono::milliseconds(static_cast<int64_t>(options.candidate_timeout_seconds * 1000));
  estimating.limits.memory_bytes = kWorkerMemoryBytes;
  estimating.budget_seconds = options.budget_seconds;
  for (const ToolchainReport& toolchain : report.toolchains) estimating.versions[toolchain.name] = toolchain.version;
  MeasuringEstimator estimator(
      database, [&](int64_t job) { return partitioner.Find(job); }, estimating,
      [&](const EstimatorCounts& counts, const std::string& label) {
        if (options.progress != nullptr) options.progress->Measuring(counts.measured, counts.from_database, label);
      });
  partitioner.SetEstimator(&estimator);

  phase("search");
  Field field(partitioner, module);
  // First among few candidates, then among all: when time runs out there is a cover, and what is measured serves both.
  constexpr double kFirstShare = 0.6;
  estimator.SetBudget(options.budget_seconds * kFirstShare);
  const SearchResult primary = partitioner.Search([&](int candidate) { return partitioner.IsPrimary(candidate); },
                                                  {.num_covers = options.num_covers});
  estimator.SetBudget(options.budget_seconds);
  const SearchResult best = partitioner.Search([](int) { return true; }, {.num_covers = options.num_covers});
  report.num_states = primary.num_states + best.num_states;
  for (size_t i = 0; i < best.covers.size(); ++i) {
    field.Add(i == 0 ? "collage" : fmt::format("collage-{}", i + 1), false, best.covers[i]);
  }
  if (!primary.covers.empty()) field.Add("collage-primary", false, primary.covers[0]);
  const Toolchain* native = ToolchainRegistry::Global().Native();
  for (const Toolchain* toolchain : toolchains) {
    // The toolchain's own best cover by measurement, and what its greedy partitioning gives.
    const SearchResult own = partitioner.Search(
        [&](int candidate) { return partitioner.ToolchainOf(candidate) == toolchain; }, {});
    if (!own.covers.empty()) field.Add(toolchain->name() + "-search", true, own.covers[0]);
    if (const std::optional<Cover> greedy = partitioner.GreedyCover(*toolchain, native)) {
      field.Add(toolchain->name(), true, *greedy);
    }
  }
  if (field.entrants().empty()) {
    throw Error(ErrorCategory::kUnsupported, "no toolchain covers the model: " + partitioner.ExplainStuck(best.stuck_at),
                model.string());
  }
  report.num_measured = estimator.counts().measured;
  report.num_from_database = estimator.counts().from_database;
  report.num_failed = estimator.counts().failed;
  report.budget_spent = estimator.budget_spent();
  report.failures = estimator.failures();
  report.search_seconds = SecondsSince(search_started);

  phase("play-off");
  const auto play_off_started = Clock::now();
  PlayOffOptions play_off;
  play_off.num_threads = report.num_threads;
  play_off.limits = estimating.limits;
  play_off.limits.timeout = std::max(play_off.limits.timeout, std::chrono::milliseconds(120'000));
  play_off.limits.memory_bytes = 0;
  play_off.output = options.output;
  play_off.metadata_json = nlohmann::json{{"model", report.model}, {"machine", report.machine}}.dump();
  PlayOffResult result = RunPlayOff(module, field.entrants(), database, ThisMachine().fingerprint, play_off, options.progress);
  report.contestants = std::move(result.contestants);
  report.winner = report.contestants[static_cast<size_t>(result.winner)].name;
  report.output_bytes = result.output_bytes;
  report.play_off_seconds = SecondsSince(play_off_started);
  for (const Contestant& contestant : report.contestants) {
    if (contestant.name == "collage" && contestant.failure.empty()) {
      report.additive_error_seconds = contestant.p50 - contestant.estimated_seconds;
    }
  }
  report.total_seconds = SecondsSince(started);
  return report;
}

}  // namespace collage
