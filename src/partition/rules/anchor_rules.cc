// anchor_rules.cc: unions of candidates by their anchors (RFC 0.7, "anchor operators"): one behind the other, such as
// two convolutions fused into one kernel, or side by side, such as the three products of attention that read one value.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "collage/ir/structural.h"
#include "partition/rules/rule_kinds.h"

namespace collage {
namespace {

using Candidates = std::vector<CandidatePartition>;

/// The anchors inside: calls of `anchor`, or of any operator of kind A when that is empty.
std::vector<int> AnchorsOf(const DataflowGraph& graph, const SubGraph& sub_graph, const std::string& anchor) {
  std::vector<int> anchors;
  for (int index : sub_graph.members()) {
    const OpDef* op = graph.OpAt(index);
    if (op == nullptr) continue;
    if (anchor.empty() ? graph.KindAt(index) == OpPatternKind::kOutEWiseFusable : op->name == anchor) {
      anchors.push_back(index);
    }
  }
  return anchors;
}

/// Both rules: sub-candidates, and unions of those with anchors, each set of nodes once.
class AnchorUnions {
 public:
  AnchorUnions(const DataflowGraph& graph, const AnchorOptions& options, Candidates base, RuleLog& log)
      : graph_(graph), options_(options), log_(log) {
    for (CandidatePartition& candidate : base) Add(std::move(candidate));
    num_base_ = all_.size();
  }

  /// Each union grows by one sub-candidate at a time that it touches.
  Candidates Vertical() {
    std::map<int, std::vector<size_t>> by_entry, by_exit;
    for (size_t i = 0; i < num_base_; ++i) {
      if (anchors_[i].empty()) continue;
      for (int entry : all_[i].sub_graph.entry()) by_entry[entry].push_back(i);
      for (int exit : all_[i].sub_graph.exit()) by_exit[exit].push_back(i);
    }
    for (size_t i = 0; i < all_.size(); ++i) {
      if (anchors_[i].empty()) continue;
      const std::vector<int> outputs = all_[i].sub_graph.output(), inputs = all_[i].sub_graph.input();
      for (int output : outputs) {
        if (const auto it = by_entry.find(output); it != by_entry.end()) JoinAll(i, it->second);
      }
      for (int input : inputs) {
        if (const auto it = by_exit.find(input); it != by_exit.end()) JoinAll(i, it->second);
      }
    }
    return std::move(all_);
  }

  /// Sub-candidates with one anchor each, all calls of one operator with the same attributes that read one value.
  Candidates Horizontal() {
    std::map<int, std::vector<size_t>> by_value;
    for (size_t i = 0; i < num_base_; ++i) {
      if (anchors_[i].size() != 1) continue;
      const std::vector<int>& inputs = graph_.node(anchors_[i][0]).inputs;
      for (int value : std::set<int>(inputs.begin(), inputs.end())) {
        if (!graph_.CanInline(value) && !graph_.IsConstant(value)) by_value[value].push_back(i);
      }
    }
    for (const auto& [value, readers] : by_value) {
      std::vector<std::pair<size_t, size_t>> work;  // a union, and the first reader that it may still take
      for (size_t k = 0; k < readers.size(); ++k) work.emplace_back(readers[k], k + 1);
      while (!work.empty()) {
        const auto [number, from] = work.back();
        work.pop_back();
        for (size_t k = from; k < readers.size(); ++k) {
          if (!AreAlike(anchors_[number][0], anchors_[readers[k]][0])) continue;
          const size_t before = all_.size();
          Join(number, readers[k]);
          if (all_.size() > before) work.emplace_back(before, k + 1);
        }
      }
    }
    return std::move(all_);
  }

 private:
  void Add(CandidatePartition candidate) {
    if (!seen_.insert(KeyOf(candidate.sub_graph)).second) return;
    if (all_.size() >= options_.max_candidates) {
      log_.candidates_capped = true;
      return;
    }
    anchors_.push_back(AnchorsOf(graph_, candidate.sub_graph, options_.anchor));
    all_.push_back(std::move(candidate));
  }

  void JoinAll(size_t number, const std::vector<size_t>& others) {
    for (size_t other : others) Join(number, other);
  }

  void Join(size_t a, size_t b) {
    if (std::ssize(anchors_[a]) + std::ssize(anchors_[b]) > options_.max_anchors) return;
    if (Overlap(graph_, all_[a].sub_graph, all_[b].sub_graph)) return;
    CandidatePartition joined{all_[a].rule_name + "+" + all_[b].rule_name,
                              DisjointUnion(graph_, all_[a].sub_graph, all_[b].sub_graph), all_[a].toolchain};
    if (joined.sub_graph.CheckRunnable(graph_).ok()) Add(std::move(joined));
  }

  bool AreAlike(int a, int b) const {
    const CallNode& x = *As<CallNode>(graph_.node(a).expr);
    const CallNode& y = *As<CallNode>(graph_.node(b).expr);
    return x.op() == y.op() && x.attrs() == y.attrs();
  }

  const DataflowGraph& graph_;
  const AnchorOptions& options_;
  RuleLog& log_;
  Candidates all_;
  std::vector<std::vector<int>> anchors_;  ///< of each candidate
  std::set<std::vector<int>> seen_;
  size_t num_base_ = 0;
};

class AnchorPartitionRule : public PartitionRule {
 public:
  AnchorPartitionRule(bool is_vertical, AnchorOptions options, PartitionRulePtr sub_rule, std::string name)
      : is_vertical_(is_vertical),
        options_(std::move(options)),
        sub_rule_(std::move(sub_rule)),
        name_(std::move(name)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    AnchorUnions unions(graph, options_, sub_rule_->AllCandidates(graph, toolchain, log), log);
    Candidates candidates = is_vertical_ ? unions.Vertical() : unions.Horizontal();
    for (CandidatePartition& candidate : candidates) candidate.rule_name = NestedName(name_, candidate.rule_name);
    return candidates;
  }

  RuleJson ToJson() const override {
    RuleJson json = RuleHead(is_vertical_ ? "VerticalAnchors" : "HorizontalAnchors", name_);
    if (!options_.anchor.empty()) json["anchor"] = options_.anchor;
    json["max_anchors"] = options_.max_anchors;
    json["sub_rule"] = sub_rule_->ToJson();
    return json;
  }

 private:
  bool is_vertical_;
  AnchorOptions options_;
  PartitionRulePtr sub_rule_;
  std::string name_;
};

AnchorOptions ReadOptions(const JsonReader& json, int max_anchors) {
  AnchorOptions options{.anchor = json.StringOr("anchor", ""),
                        .max_anchors = json.IntOr("max_anchors", max_anchors, 1, INT_MAX)};
  if (!options.anchor.empty() && FindOp(options.anchor) == nullptr) {
    json.At("anchor").Fail(fmt::format("there is no operator '{}'", options.anchor));
  }
  return options;
}

}  // namespace

const RuleKind kVerticalAnchorsKind{
    "VerticalAnchors", {"anchor", "max_anchors", "sub_rule"}, [](const JsonReader& json, std::string name) {
      return VerticalAnchorsRule(ReadOptions(json, 2), ReadSubRule(json), std::move(name));
    }};
const RuleKind kHorizontalAnchorsKind{
    "HorizontalAnchors", {"anchor", "max_anchors", "sub_rule"}, [](const JsonReader& json, std::string name) {
      return HorizontalAnchorsRule(ReadOptions(json, 3), ReadSubRule(json), std::move(name));
    }};

PartitionRulePtr VerticalAnchorsRule(AnchorOptions options, PartitionRulePtr sub_rule, std::string name) {
  return std::make_unique<AnchorPartitionRule>(true, std::move(options), std::move(sub_rule), std::move(name));
}
PartitionRulePtr HorizontalAnchorsRule(AnchorOptions options, PartitionRulePtr sub_rule, std::string name) {
  return std::make_unique<AnchorPartitionRule>(false, std::move(options), std::move(sub_rule), std::move(name));
}

}  // namespace collage
