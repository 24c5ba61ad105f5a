// support_report.cc: candidates of every toolchain's own table or predicate, turned round: by call what took it, or why
// nothing did.
#include "collage/support_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "ir/place.h"
#include "partition/partition_rule.h"
#include "program/regions.h"

namespace collage {
namespace {

bool IsCounted(const DataflowGraph& graph, int index) {
  return graph.OpAt(index) != nullptr && !graph.node(index).is_in_primitive;
}

std::vector<int> CallsIn(const DataflowGraph& graph, const SubGraph& sub_graph) {
  std::vector<int> calls;
  for (int index : sub_graph.members()) {
    if (IsCounted(graph, index)) calls.push_back(index);
  }
  return calls;
}

/// The operators that a pattern names, and how many parts it has.
int CollectOperators(const DFPattern& pattern, std::set<std::string>& operators) {
  if (!pattern.op.empty() && pattern.kind != DFPattern::Kind::kVar) operators.insert(pattern.op);
  int size = 1;
  for (const auto& arg : pattern.args) size += CollectOperators(*arg, operators);
  return size;
}

/// For each operator the smallest row of a pattern table that names it, for who asks why none holds it.
class PatternIndex {
 public:
  explicit PatternIndex(const Toolchain& toolchain) : table_(toolchain.PatternTable()) {
    for (const PatternTableEntry& row : table_) {
      std::set<std::string> operators;
      const int size = CollectOperators(*ParsePattern(row.pattern), operators);
      for (const std::string& op : operators) {
        const auto [it, is_new] = smallest_.emplace(op, Row{&row, size});
        if (!is_new && size < it->second.size) it->second = {&row, size};
      }
    }
  }

  bool is_empty() const { return table_.empty(); }

  std::string WhyNone(const std::string& op) const {
    const auto it = smallest_.find(op);
    if (it == smallest_.end()) return fmt::format("no pattern holds '{}'", op);
    return fmt::format("no pattern holds it here; the smallest with '{}' is {}: {}", op, it->second.row->name,
                       it->second.row->pattern);
  }

 private:
  struct Row {
    const PatternTableEntry* row;
    int size;
  };
  std::vector<PatternTableEntry> table_;
  std::map<std::string, Row> smallest_;
};

/// Findings about one call.
struct CallSupport {
  bool is_alone = false;
  std::set<std::string> patterns;
  // Reason of the smallest match that a predicate refused; else of the smallest match that is no partition.
  std::string reason;
  std::string pattern;
  std::pair<bool, size_t> rank{true, 0};  ///< whether it is no partition, calls in it; 0 calls: none was matched

  bool is_taken() const { return is_alone || !patterns.empty(); }
  bool is_matched() const { return rank.second > 0; }

  void Refuse(const Refusal& refusal, size_t size) {
    const std::pair<bool, size_t> other(refusal.reason.origin == "sub-graph", size);
    if (is_matched() && rank <= other) return;
    rank = other;
    reason = (rank.first ? "what its pattern matches is no partition: " : "") + refusal.reason.text;
    pattern = refusal.rule_name;
  }
};

/// Adds up the calls of graphs for one toolchain.
class SupportCounter {
 public:
  explicit SupportCounter(const Toolchain& toolchain) : toolchain_(toolchain), patterns_(toolchain) {}

  void Add(const DataflowGraph& graph) {
    std::vector<CallSupport> calls(graph.size());
    RuleLog log;
    log.on_refused_match = [&](const Refusal& refusal) {
      if (refusal.sub_graph == nullptr) return;
      const std::vector<int> refused = CallsIn(graph, *refusal.sub_graph);
      for (int index : refused) calls[static_cast<size_t>(index)].Refuse(refusal, refused.size());
    };
    const PartitionRulePtr rule = patterns_.is_empty() ? OpPredicateRule() : PatternTableRule(toolchain_);
    for (const CandidatePartition& candidate : rule->AllCandidates(graph, toolchain_, log)) {
      const std::vector<int> taken = CallsIn(graph, candidate.sub_graph);
      for (int index : taken) {
        CallSupport& call = calls[static_cast<size_t>(index)];
        call.is_alone = call.is_alone || taken.size() == 1;
        call.patterns.insert(candidate.rule_name);
      }
    }
    for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
      if (IsCounted(graph, index)) Count(graph, index, calls[static_cast<size_t>(index)]);
    }
  }

  ToolchainSupport Report(const ToolchainReport& probed) {
    ToolchainSupport report{probed, num_taken_, {}};
    for (auto& [op, support] : operators_) {
      std::ranges::stable_sort(support.refused, std::greater<>(), &RefusedCalls::num_calls);
      report.operators.push_back(std::move(support));
    }
    return report;
  }

 private:
  void Count(const DataflowGraph& graph, int index, const CallSupport& call) {
    const std::string op = graph.LabelAt(index);
    OperatorSupport& support = operators_[op];
    support.op = op;
    ++support.num_calls;
    if (call.is_taken()) {
      ++num_taken_;
      ++(call.is_alone ? support.num_alone : support.num_in_patterns);
      if (patterns_.is_empty()) return;
      for (const std::string& pattern : call.patterns) ++support.patterns[pattern];
      return;
    }
    std::string reason = call.is_matched() ? call.reason : patterns_.WhyNone(op);
    if (reason.empty()) reason = "its predicate gives no reason";
    const std::string pattern = call.is_matched() && !patterns_.is_empty() ? call.pattern : "";
    for (RefusedCalls& known : support.refused) {
      if (known.reason != reason || known.pattern != pattern) continue;
      ++known.num_calls;
      return;
    }
    support.refused.push_back({reason, pattern, 1, PlaceOf(graph.node(index).expr->span())});
  }

  const Toolchain& toolchain_;
  PatternIndex patterns_;
  int64_t num_taken_ = 0;
  std::map<std::string, OperatorSupport> operators_;
};

/// The graphs that would be compiled, and how many calls are in none of them.
struct Graphs {
  std::vector<std::unique_ptr<DataflowGraph>> graphs;
  int64_t num_outside = 0;
};

int64_t CountCalls(const DataflowGraph& graph) {
  int64_t count = 0;
  for (int index = 0; index < static_cast<int>(graph.size()); ++index) count += IsCounted(graph, index) ? 1 : 0;
  return count;
}

Graphs FindGraphs(const IRModule& given) {
  Graphs found;
  const IRModule module = RunPasses({"ToGraphNormalForm"}, InferTypes(given));
  if (!IsProgram(module)) {
    found.graphs.push_back(std::make_unique<DataflowGraph>(PrepareForPartitioning(module).main()));
    return found;
  }
  const ProgramRegions program = FindRegions(PrepareForPartitioning(module));
  for (const Function& region : program.regions) {
    const IRModule prepared = PrepareForPartitioning(IRModule::FromFunction(region));
    found.graphs.push_back(std::make_unique<DataflowGraph>(prepared.main()));
  }
  for (const auto& [name, function] : program.module.functions())
    found.num_outside += CountCalls(DataflowGraph(function));
  return found;
}

}  // namespace

SupportReport DescribeSupport(const IRModule& module, const std::vector<std::string>& toolchains) {
  const std::vector<ToolchainReport> probed = ProbeToolchains();
  for (const std::string& name : toolchains) ToolchainRegistry::Global().Get(name);  // throws when there is none
  const Graphs found = FindGraphs(module);
  SupportReport report;
  report.num_outside = found.num_outside;
  for (const auto& graph : found.graphs) report.num_calls += CountCalls(*graph);
  for (const ToolchainReport& one : probed) {
    if (!toolchains.empty() && std::ranges::find(toolchains, one.name) == toolchains.end()) continue;
    SupportCounter counter(*ToolchainRegistry::Global().Find(one.name));
    for (const auto& graph : found.graphs) counter.Add(*graph);
    report.toolchains.push_back(counter.Report(one));
  }
  return report;
}

}  // namespace collage
