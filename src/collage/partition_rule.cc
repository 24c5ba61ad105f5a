// partition_rule.cc: base and combinator rules.
#include "collage/partition_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace collage {
namespace {

using Candidates = std::vector<CandidatePartition>;

void Refuse(RuleLog& log, const std::string& label, const Reason& reason) {
  if (log.on_refusal) log.on_refusal(label, reason);
}

class DFPatternPartitionRule : public PartitionRule {
 public:
  DFPatternPartitionRule(std::string name, DFPatternPtr pattern, std::function<Result<void>(const Function&)> predicate)
      : name_(std::move(name)), pattern_(std::move(pattern)), predicate_(std::move(predicate)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates result;
    for (int root = 0; root < static_cast<int>(graph.size()); ++root) {
      MatchPattern(graph, *pattern_, root, [&](const std::vector<int>& inside) {
        SubGraph sub_graph(graph, inside);
        // A match whose inner nodes are used elsewhere could only be run by computing them twice.
        const Result<void> valid = sub_graph.CheckValid(graph, {.max_exits = 1});
        if (!valid.ok()) return;
        if (predicate_) {
          const Result<void> supported = predicate_(Extract(graph, sub_graph).function);
          if (!supported.ok()) return Refuse(log, sub_graph.Label(graph), supported.reason());
        }
        result.push_back({name_, std::move(sub_graph), &toolchain});
      });
    }
    return result;
  }

 private:
  std::string name_;
  DFPatternPtr pattern_;
  std::function<Result<void>(const Function&)> predicate_;
};

class OpPredicatePartitionRule : public PartitionRule {
 public:
  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates result;
    for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
      if (graph.OpAt(index) == nullptr) continue;
      const Result<void> supported = toolchain.SupportsCall(*As<CallNode>(graph.node(index).expr));
      if (!supported.ok()) {
        Refuse(log, graph.LabelAt(index), supported.reason());
        continue;
      }
      result.push_back({graph.LabelAt(index), SubGraph(graph, {index}), &toolchain});
    }
    return result;
  }
};

class OpCallByKindPartitionRule : public PartitionRule {
 public:
  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates all = OpPredicatePartitionRule().AllCandidates(graph, toolchain, log);
    return all;  // opaque operators are kept: they run alone, nothing combines with them
  }
};

class CompositePartitionRule : public PartitionRule {
 public:
  CompositePartitionRule(std::string name, PartitionRulePtr sub_rule)
      : name_(std::move(name)), sub_rule_(std::move(sub_rule)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates candidates = sub_rule_->AllCandidates(graph, toolchain, log);
    for (CandidatePartition& candidate : candidates) {
      candidate.rule_name = name_;
      candidate.sub_graph.nested = {{candidate.sub_graph.members(), {{"Composite", name_}}}};
    }
    return candidates;
  }

 private:
  std::string name_;
  PartitionRulePtr sub_rule_;
};

class UnionPartitionRule : public PartitionRule {
 public:
  explicit UnionPartitionRule(std::vector<PartitionRulePtr> sub_rules) : sub_rules_(std::move(sub_rules)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates result;
    for (const PartitionRulePtr& rule : sub_rules_) {
      Candidates candidates = rule->AllCandidates(graph, toolchain, log);
      std::move(candidates.begin(), candidates.end(), std::back_inserter(result));
    }
    return result;
  }

 private:
  std::vector<PartitionRulePtr> sub_rules_;
};

class CombinePartitionRule : public PartitionRule {
 public:
  CombinePartitionRule(CombineOptions options, PartitionRulePtr sub_rule)
      : options_(std::move(options)), sub_rule_(std::move(sub_rule)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    const Candidates base = sub_rule_->AllCandidates(graph, toolchain, log);
    std::unordered_map<int, std::vector<size_t>> base_at;  // node → sub-candidates with that node inside
    for (size_t i = 0; i < base.size(); ++i) {
      for (int index : base[i].sub_graph.members()) base_at[index].push_back(i);
    }
    std::unordered_set<IndexSet, IndexSetHash> seen;
    std::deque<CandidatePartition> result;  // stable references while it grows
    const auto add = [&](CandidatePartition candidate) {
      if (result.size() >= options_.max_candidates) {
        log.candidates_capped = true;
        return;
      }
      if (seen.insert(candidate.sub_graph.inside()).second) result.push_back(std::move(candidate));
    };
    for (const CandidatePartition& candidate : base) add(candidate);
    for (size_t i = 0; i < result.size(); ++i) {
      const SubGraph& current = result[i].sub_graph;
      for (const Neighbour& neighbour : Neighbours(graph, current)) {
        auto it = base_at.find(neighbour.node);
        if (it == base_at.end()) continue;
        for (size_t other : it->second) {
          std::optional<SubGraph> joined = Join(graph, current, base[other].sub_graph, neighbour);
          if (joined) add({result[i].rule_name + "+" + base[other].rule_name, std::move(*joined), &toolchain});
        }
      }
    }
    return {std::make_move_iterator(result.begin()), std::make_move_iterator(result.end())};
  }

 private:
  /// A node next to a sub-graph, with the tuples and projections that lie between.
  struct Neighbour {
    int node;
    bool is_downstream;
    std::vector<int> between;
  };

  bool IsGlue(const DataflowGraph& graph, int index) const {
    const ExprKind kind = graph.node(index).expr->kind();
    return options_.take_tuples && (kind == ExprKind::kTuple || kind == ExprKind::kTupleGetItem);
  }

  std::vector<Neighbour> Neighbours(const DataflowGraph& graph, const SubGraph& sub_graph) const {
    std::vector<Neighbour> result;
    for (int output : sub_graph.output()) {
      if (!IsGlue(graph, output)) {
        result.push_back({output, true, {}});
        continue;
      }
      for (int next : graph.node(output).outputs) result.push_back({next, true, {output}});
    }
    for (int input : sub_graph.input()) {
      if (!IsGlue(graph, input)) {
        result.push_back({input, false, {}});
        continue;
      }
      for (int previous : graph.node(input).inputs) result.push_back({previous, false, {input}});
    }
    return result;
  }

  bool MayCombine(OpPatternKind up, OpPatternKind down) const {
    return std::any_of(options_.kinds.begin(), options_.kinds.end(),
                       [&](const CombinerKinds& kinds) { return up <= kinds.up && down <= kinds.down; });
  }

  std::optional<SubGraph> Join(const DataflowGraph& graph, const SubGraph& current, const SubGraph& other,
                               const Neighbour& neighbour) const {
    if (!current.inside().AreDisjoint(other.inside())) return std::nullopt;
    const OpPatternKind up = neighbour.is_downstream ? current.kind() : other.kind();
    const OpPatternKind down = neighbour.is_downstream ? other.kind() : current.kind();
    if (!MayCombine(up, down)) return std::nullopt;
    std::vector<int> inside = current.members();
    inside.insert(inside.end(), other.members().begin(), other.members().end());
    for (int glue : neighbour.between) {
      if (!current.inside().Contains(glue)) inside.push_back(glue);
    }
    SubGraph joined(graph, std::move(inside));
    joined.nested = current.nested;
    joined.nested.insert(joined.nested.end(), other.nested.begin(), other.nested.end());
    if (!joined.CheckValid(graph, options_.limits).ok()) return std::nullopt;
    return joined;
  }

  CombineOptions options_;
  PartitionRulePtr sub_rule_;
};

class OnlyValidPartitionRule : public PartitionRule {
 public:
  OnlyValidPartitionRule(SubGraphConfig config, PartitionRulePtr sub_rule)
      : config_(config), sub_rule_(std::move(sub_rule)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates candidates = sub_rule_->AllCandidates(graph, toolchain, log);
    std::erase_if(candidates, [&](const CandidatePartition& candidate) {
      return !candidate.sub_graph.CheckValid(graph, config_).ok();
    });
    return candidates;
  }

 private:
  SubGraphConfig config_;
  PartitionRulePtr sub_rule_;
};

class MaximalPartitionRule : public PartitionRule {
 public:
  explicit MaximalPartitionRule(PartitionRulePtr sub_rule) : sub_rule_(std::move(sub_rule)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates candidates = sub_rule_->AllCandidates(graph, toolchain, log);
    std::vector<char> supported(graph.size());
    for (const CandidatePartition& candidate : candidates) {
      for (int index : candidate.sub_graph.members()) supported[static_cast<size_t>(index)] = 1;
    }
    for (std::vector<int>& region : Regions(graph, supported)) {
      SubGraph sub_graph(graph, std::move(region));
      if (!sub_graph.CheckValid(graph, {.allow_taps = true}).ok()) continue;
      const bool known = std::any_of(candidates.begin(), candidates.end(), [&](const CandidatePartition& candidate) {
        return candidate.sub_graph.inside() == sub_graph.inside();
      });
      if (!known) candidates.push_back({"maximal", std::move(sub_graph), &toolchain});
    }
    return candidates;
  }

 private:
  /// Each supported node gets the generation of its latest region: a node joins a region unless one of its inputs comes
  /// from a later generation, or through an unsupported node from the same; so no region depends on itself.
  static std::vector<std::vector<int>> Regions(const DataflowGraph& graph, const std::vector<char>& supported) {
    std::vector<int> generation(graph.size(), 0);
    int last = 0;
    for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
      const auto i = static_cast<size_t>(index);
      const bool inside = supported[i] != 0 || IsGlueInside(graph, index, supported);
      for (int input : graph.node(index).inputs) {
        if (graph.CanInline(input)) continue;
        const auto from = static_cast<size_t>(input);
        const bool from_inside = supported[from] != 0 || IsGlueInside(graph, input, supported);
        const bool leaves = from_inside && !inside;
        generation[i] = std::max(generation[i], generation[from] + (leaves ? 1 : 0));
      }
      last = std::max(last, generation[i]);
    }
    std::vector<std::vector<int>> regions(static_cast<size_t>(last) + 1);
    for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
      const auto i = static_cast<size_t>(index);
      if (supported[i] != 0 || IsGlueInside(graph, index, supported)) {
        regions[static_cast<size_t>(generation[i])].push_back(index);
      }
    }
    std::erase_if(regions, [](const std::vector<int>& region) { return region.empty(); });
    return regions;
  }

  /// A tuple or projection all of whose neighbours are supported calls.
  static bool IsGlueInside(const DataflowGraph& graph, int index, const std::vector<char>& supported) {
    const ExprKind kind = graph.node(index).expr->kind();
    if (kind != ExprKind::kTuple && kind != ExprKind::kTupleGetItem) return false;
    if (graph.node(index).is_external) return false;
    const auto in = [&](int other) {
      return supported[static_cast<size_t>(other)] != 0 || graph.CanInline(other) ||
             graph.node(other).expr->kind() == ExprKind::kTupleGetItem;
    };
    const auto& node = graph.node(index);
    return std::all_of(node.inputs.begin(), node.inputs.end(), in) &&
           (kind == ExprKind::kTupleGetItem || std::all_of(node.outputs.begin(), node.outputs.end(), in));
  }

  PartitionRulePtr sub_rule_;
};

}  // namespace

PartitionRulePtr DFPatternRule(std::string name, DFPatternPtr pattern,
                               std::function<Result<void>(const Function&)> predicate) {
  return std::make_unique<DFPatternPartitionRule>(std::move(name), std::move(pattern), std::move(predicate));
}
PartitionRulePtr OpPredicateRule() { return std::make_unique<OpPredicatePartitionRule>(); }
PartitionRulePtr OpCallByKindRule() { return std::make_unique<OpCallByKindPartitionRule>(); }
PartitionRulePtr CompositeRule(std::string name, PartitionRulePtr sub_rule) {
  return std::make_unique<CompositePartitionRule>(std::move(name), std::move(sub_rule));
}
PartitionRulePtr UnionRule(std::vector<PartitionRulePtr> sub_rules) {
  return std::make_unique<UnionPartitionRule>(std::move(sub_rules));
}
PartitionRulePtr CombineRule(CombineOptions options, PartitionRulePtr sub_rule) {
  return std::make_unique<CombinePartitionRule>(std::move(options), std::move(sub_rule));
}
PartitionRulePtr OnlyValidRule(SubGraphConfig config, PartitionRulePtr sub_rule) {
  return std::make_unique<OnlyValidPartitionRule>(config, std::move(sub_rule));
}
PartitionRulePtr MaximalRule(PartitionRulePtr sub_rule) {
  return std::make_unique<MaximalPartitionRule>(std::move(sub_rule));
}

PartitionRulePtr GatherPartitionRule(const Toolchain& toolchain) {
  using Kind = OpPatternKind;
  PartitionRulePtr base;
  const std::vector<PatternTableEntry> table = toolchain.PatternTable();
  if (table.empty()) {
    base = toolchain.is_native() ? OpCallByKindRule() : OpPredicateRule();
  } else {
    std::vector<PartitionRulePtr> rows;
    for (const PatternTableEntry& entry : table) {
      rows.push_back(CompositeRule(entry.name, DFPatternRule(entry.name, ParsePattern(entry.pattern), entry.predicate)));
    }
    base = UnionRule(std::move(rows));
  }
  const SubGraphConfig limits{.max_exits = 1, .max_depth = toolchain.max_depth()};
  CombineOptions options{.limits = limits};
  switch (toolchain.fusion_style()) {
    case FusionStyle::kNoFusion: return OnlyValidRule({.max_exits = 1}, std::move(base));
    case FusionStyle::kTVMFusion:
      options.kinds = {{Kind::kOutEWiseFusable, Kind::kBroadcast},
                       {Kind::kBroadcast, Kind::kCommReduce},
                       {Kind::kInjective, Kind::kInjective}};
      break;
    case FusionStyle::kArbitrary:
      options.kinds = {{Kind::kOpaque, Kind::kOpaque}};
      options.take_tuples = true;
      break;
  }
  PartitionRulePtr rule = CombineRule(std::move(options), std::move(base));
  if (!toolchain.wants_maximal()) return rule;
  return MaximalRule(std::move(rule));
}

}  // namespace collage
