// combine_rule.cc: the closure of sub-candidates under the combiners. Each new candidate meets every earlier one that
// it touches, once; who touches is found through indexes by entry and exit nodes.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "partition/rules/registered_rule.h"
#include "partition/rules/rule_kinds.h"
#include "support/sort_unique.h"

namespace collage {
namespace {

// Limit for rules read from text, which mean every way of combining: it only prevents running out of memory.
constexpr int kMaxReadCandidates = 1'000'000;
// Parallel branches have as many unions as the product of their lengths: a graph of any length may have this many.
constexpr size_t kCandidatesPerNode = 4;
constexpr size_t kMinCandidates = 20'000;

struct KeyHash {
  size_t operator()(const std::vector<int>& key) const {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (int member : key) hash = ((hash << 7 | hash >> 57) ^ static_cast<uint64_t>(member)) * 0xff51afd7ed558ccdu;
    return hash ^ (hash >> 32);
  }
};

/// One run of the rule over one graph.
class Combination {
 public:
  Combination(const DataflowGraph& graph, const Toolchain& toolchain, const CombineOptions& options, RuleLog& log)
      : graph_(graph), toolchain_(toolchain), options_(options), log_(log) {}

  std::vector<CandidatePartition> Run(std::vector<CandidatePartition> base) {
    // Sub-candidates all count: without them a graph may have no cover.
    max_candidates_ = std::max(base.size(), options_.max_candidates > 0
                                                ? options_.max_candidates
                                                : std::max(kMinCandidates, kCandidatesPerNode * graph_.size()));
    for (CandidatePartition& candidate : base) Add(std::move(candidate));
    // If anything joins, each union grows from one sub-candidate by one at a time: in reverse dataflow order, each step
    // has the exits of the whole.
    const bool grows = options_.join_anything && options_.kinds.empty() && options_.only_valid;
    const size_t num_seeds = all_.size();
    for (size_t i = 0; grows && i < num_seeds; ++i) Index(i);
    std::deque<RegisteredFunction::Caller> callers;
    for (const auto& function : options_.registered) callers.emplace_back(*function, graph_, toolchain_);
    size_t i = 0;
    do {
      for (; i < all_.size(); ++i) {
        if (!grows || (i >= num_seeds && options_.tuple_args)) Index(i);
        JoinNeighbours(i);
        if (options_.tuple_projections) AddProjections(i);
        if (options_.constants) AddConstants(i);
        if (options_.tuple_args) AddTuples(i);
      }
      for (RegisteredFunction::Caller& caller : callers) AddRegistered(caller);
    } while (i < all_.size());
    return {std::make_move_iterator(all_.begin()), std::make_move_iterator(all_.end())};
  }

 private:
  void Add(CandidatePartition candidate) {
    if (!seen_.insert(KeyOf(candidate.sub_graph)).second) return;
    if (all_.size() < max_candidates_) {
      all_.push_back(std::move(candidate));
    } else {
      log_.candidates_capped = true;
    }
  }

  void Index(size_t i) {
    for (int entry : all_[i].sub_graph.entry()) by_entry_[entry].push_back(i);
    for (int exit : all_[i].sub_graph.exit()) by_exit_[exit].push_back(i);
  }

  bool IsGlue(int node) const {
    const ExprKind kind = graph_.node(node).expr->kind();
    return options_.join_anything && options_.through_tuples &&
           (kind == ExprKind::kTuple || kind == ExprKind::kTupleGetItem);
  }

  /// Nodes next to the candidate on one side, seen through tuples and projections.
  std::vector<int> Neighbours(const SubGraph& sub_graph, bool downstream) const {
    std::vector<int> work = downstream ? sub_graph.output() : sub_graph.input();
    std::vector<int> result;
    std::unordered_set<int> seen;
    while (!work.empty()) {
      const int node = work.back();
      work.pop_back();
      if (!seen.insert(node).second) continue;
      if (!IsGlue(node)) {
        result.push_back(node);
        continue;
      }
      const std::vector<int>& further = downstream ? graph_.node(node).outputs : graph_.node(node).inputs;
      work.insert(work.end(), further.begin(), further.end());
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  void JoinNeighbours(size_t i) {
    for (const bool downstream : {true, false}) {
      const auto& index = downstream ? by_entry_ : by_exit_;
      for (int node : Neighbours(all_[i].sub_graph, downstream)) {
        auto it = index.find(node);
        if (it == index.end()) continue;
        for (size_t k = 0; k < it->second.size(); ++k) {
          const size_t j = it->second[k];
          downstream ? Join(all_[i], all_[j]) : Join(all_[j], all_[i]);
        }
      }
    }
  }

  bool Allow(OpPatternKind up, OpPatternKind down) const {
    return std::ranges::any_of(options_.kinds,
                               [&](const CombinerKinds& kinds) { return up <= kinds.up && down <= kinds.down; });
  }

  /// Whether every operator of a sub-graph of kind B gives the shape of all that it computes with, constants aside:
  /// then it takes each element from the same element, as one of kind E does.
  bool KeepsShapes(const SubGraph& sub_graph) const {
    return std::ranges::all_of(sub_graph.members(), [&](int index) {
      if (graph_.KindAt(index) != OpPatternKind::kBroadcast) return true;
      const TensorTypeNode* result = AsTensorType(graph_.node(index).expr->checked_type());
      return result != nullptr && std::ranges::all_of(graph_.node(index).inputs, [&](int input) {
               if (graph_.CanInline(input) || graph_.IsConstant(input)) return true;
               const TensorTypeNode* type = AsTensorType(graph_.node(input).expr->checked_type());
               return type != nullptr && type->shape() == result->shape();
             });
    });
  }

  /// By kinds as they are or, where these do not allow it, with B as E where shapes agree (RFC 0.7, "TODO").
  bool MayCombine(const SubGraph& up, const SubGraph& down) const {
    using Kind = OpPatternKind;
    if (options_.join_anything || Allow(up.kind(), down.kind())) return true;
    const auto at_best = [](Kind kind) { return kind == Kind::kBroadcast ? Kind::kElemWise : kind; };
    if (!Allow(at_best(up.kind()), at_best(down.kind()))) return false;
    const auto by_shapes = [&](const SubGraph& one) {
      return one.kind() == Kind::kBroadcast && KeepsShapes(one) ? Kind::kElemWise : one.kind();
    };
    return Allow(by_shapes(up), by_shapes(down));
  }

  void Join(const CandidatePartition& up, const CandidatePartition& down) {
    if (!MayCombine(up.sub_graph, down.sub_graph)) return;
    if (options_.max_depth > 0 && up.sub_graph.depth() + down.sub_graph.depth() > options_.max_depth) return;
    if (Overlap(graph_, up.sub_graph, down.sub_graph)) return;
    AddUnion(up, down, {});
  }

  static std::vector<NestedSubGraph> JoinedNested(const SubGraph& up, const SubGraph& down) {
    std::vector<NestedSubGraph> nested = up.nested;
    AddNested(nested, down.nested);
    return nested;
  }

  void AddUnion(const CandidatePartition& up, const CandidatePartition& down, std::vector<int> between) {
    std::vector<int> members = between;
    members.insert(members.end(), up.sub_graph.members().begin(), up.sub_graph.members().end());
    members.insert(members.end(), down.sub_graph.members().begin(), down.sub_graph.members().end());
    SortUnique(members);
    if (options_.join_anything && options_.through_tuples) AddGlue(members, between);
    if (!tried_.insert(KeyOf(std::move(members), JoinedNested(up.sub_graph, down.sub_graph))).second) return;
    AddIfValid({up.rule_name + "+" + down.rule_name,
                DisjointUnion(graph_, up.sub_graph, down.sub_graph, std::move(between)), &toolchain_});
  }

  void AddIfValid(CandidatePartition candidate) {
    if (!options_.only_valid) {
      if (candidate.sub_graph.CheckConvex(graph_).ok()) Add(std::move(candidate));
      return;
    }
    SubGraphConfig limits = options_.limits;
    limits.allow_taps = limits.allow_taps || limits.max_exits == 0;
    if (candidate.sub_graph.CheckValid(graph_, limits).ok()) Add(std::move(candidate));
  }

  /// Adds the tuples and projections on paths between members to both lists.
  void AddGlue(std::vector<int>& members, std::vector<int>& between) const {
    std::unordered_set<int> inside(members.begin(), members.end());
    std::vector<int> reached;
    std::unordered_set<int> seen;
    std::vector<int> work = members;
    while (!work.empty()) {
      const int node = work.back();
      work.pop_back();
      for (int output : graph_.node(node).outputs) {
        if (!IsGlue(output) || inside.contains(output) || !seen.insert(output).second) continue;
        reached.push_back(output);
        work.push_back(output);
      }
    }
    std::sort(reached.rbegin(), reached.rend());  // users before what they use
    for (int glue : reached) {
      const std::vector<int>& outputs = graph_.node(glue).outputs;
      if (std::none_of(outputs.begin(), outputs.end(), [&](int output) { return inside.contains(output); })) continue;
      inside.insert(glue);
      members.push_back(glue);
      between.push_back(glue);
    }
    std::sort(members.begin(), members.end());
  }

  void AddProjections(size_t i) {
    const std::vector<int> outputs = all_[i].sub_graph.output();
    for (int output : outputs) {
      if (graph_.node(output).expr->kind() == ExprKind::kTupleGetItem) AddNodes(i, {output}, "proj");
    }
  }

  void AddConstants(size_t i) {
    std::vector<int> constants;
    for (int input : all_[i].sub_graph.input()) {
      if (graph_.IsConstant(input)) constants.push_back(input);
    }
    if (!constants.empty()) AddNodes(i, std::move(constants), "const");
  }

  void AddNodes(size_t i, std::vector<int> nodes, const char* name) {
    const SubGraph& sub_graph = all_[i].sub_graph;
    nodes.insert(nodes.end(), sub_graph.members().begin(), sub_graph.members().end());
    std::sort(nodes.begin(), nodes.end());
    if (!tried_.insert(KeyOf(nodes, sub_graph.nested)).second) return;
    SubGraph larger(graph_, std::move(nodes));
    larger.nested = sub_graph.nested;
    AddIfValid({all_[i].rule_name + "+" + name, std::move(larger), &toolchain_});
  }

  /// Adds what a function makes of all that is known; nothing where it knows all of that.
  void AddRegistered(RegisteredFunction::Caller& caller) {
    if (caller.num_told() == all_.size()) return;
    for (size_t i = caller.num_told(); i < all_.size(); ++i) caller.Tell(all_[i]);
    for (CandidatePartition& candidate : caller.Ask()) {
      if (tried_.insert(KeyOf(candidate.sub_graph)).second) AddIfValid(std::move(candidate));
    }
  }

  // ---- TupleArg ----

  void AddTuples(size_t i) {
    const std::vector<int> inputs = all_[i].sub_graph.input();
    const std::vector<int> outputs = all_[i].sub_graph.output();
    for (int tuple : inputs) AddTuple(i, tuple, std::nullopt);
    for (int tuple : outputs) {
      if (graph_.node(tuple).expr->kind() != ExprKind::kTuple) continue;
      for (int consumer : graph_.node(tuple).outputs) {
        auto it = by_entry_.find(consumer);
        if (it == by_entry_.end()) continue;
        const std::vector<size_t> consumers = it->second;
        for (size_t j : consumers) AddTuple(j, tuple, i);
      }
    }
  }

  /// The consumer with the tuple and every choice of makers of its fields; those with `maker` if one is given.
  void AddTuple(size_t consumer, int tuple, std::optional<size_t> maker) {
    const DataflowGraph::Node& node = graph_.node(tuple);
    if (node.expr->kind() != ExprKind::kTuple || node.inputs.empty()) return;
    if (all_[consumer].sub_graph.kind() > OpPatternKind::kInjective) return;
    std::vector<int> fields = node.inputs;
    SortUnique(fields);
    std::vector<std::vector<size_t>> makers;
    size_t num_choices = 1;
    for (int field : fields) {
      makers.push_back(MakersOf(field, maker));
      num_choices = std::min(num_choices * makers.back().size(), options_.max_tuple_choices + 1);
    }
    if (num_choices > options_.max_tuple_choices) {
      log_.candidates_capped = true;
      num_choices = options_.max_tuple_choices;
    }
    for (size_t choice = 0; choice < num_choices; ++choice) AddTupleChoice(consumer, tuple, makers, choice);
  }

  /// Injective candidates with exit `field`; only `maker` if that is one of them.
  std::vector<size_t> MakersOf(int field, std::optional<size_t> maker) {
    std::vector<size_t> makers;
    for (size_t one : by_exit_[field]) {
      if (all_[one].sub_graph.kind() > OpPatternKind::kInjective) continue;
      if (one == maker) return {one};
      makers.push_back(one);
    }
    return makers;
  }

  /// `choice` is a number whose digits pick a maker for each field.
  void AddTupleChoice(size_t consumer, int tuple, const std::vector<std::vector<size_t>>& makers, size_t choice) {
    CandidatePartition joined = all_[consumer];
    std::vector<int> between{tuple};
    for (const std::vector<size_t>& of_field : makers) {
      const CandidatePartition& maker = all_[of_field[choice % of_field.size()]];
      choice /= of_field.size();
      if (std::includes(joined.sub_graph.members().begin(), joined.sub_graph.members().end(),
                        maker.sub_graph.members().begin(), maker.sub_graph.members().end())) {
        continue;  // it makes two of the fields
      }
      if (Overlap(graph_, joined.sub_graph, maker.sub_graph)) return;
      joined.sub_graph = DisjointUnion(graph_, maker.sub_graph, joined.sub_graph, between);
      joined.rule_name = maker.rule_name + "+" + joined.rule_name;
    }
    if (tried_.insert(KeyOf(joined.sub_graph)).second) AddIfValid(std::move(joined));
  }

  const DataflowGraph& graph_;
  const Toolchain& toolchain_;
  const CombineOptions& options_;
  RuleLog& log_;
  size_t max_candidates_ = 0;
  std::deque<CandidatePartition> all_;                          // stable references while it grows
  std::unordered_set<std::vector<int>, KeyHash> seen_, tried_;  ///< KeyOf
  std::unordered_map<int, std::vector<size_t>> by_entry_, by_exit_;
};

class CombinePartitionRule : public PartitionRule {
 public:
  CombinePartitionRule(CombineOptions options, PartitionRulePtr sub_rule, std::string name)
      : options_(std::move(options)), sub_rule_(std::move(sub_rule)), name_(std::move(name)) {}

  std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain,
                                                RuleLog& log) const override {
    std::vector<CandidatePartition> candidates =
        Combination(graph, toolchain, options_, log).Run(sub_rule_->AllCandidates(graph, toolchain, log));
    for (CandidatePartition& candidate : candidates) candidate.rule_name = NestedName(name_, candidate.rule_name);
    return candidates;
  }

  RuleJson ToJson() const override {
    RuleJson json = RuleHead("Combine", name_);
    json["sub_rule"] = sub_rule_->ToJson();
    RuleJson combiners = RuleJson::array();
    RuleJson kinds = RuleJson::array();
    for (const CombinerKinds& pair : options_.kinds) {
      kinds.push_back(fmt::format("{}->{}", KindLetter(pair.up), KindLetter(pair.down)));
    }
    if (!kinds.empty()) combiners.push_back({{"combiner", "AllSimple"}, {"kinds", kinds}});
    const auto add = [&](bool is_on, const char* combiner) {
      if (is_on) combiners.push_back({{"combiner", combiner}});
    };
    add(options_.tuple_args, "TupleArg");
    add(options_.tuple_projections, "TupleProj");
    add(options_.constants, "Constant");
    add(options_.join_anything, "JoinAnything");
    for (const auto& function : options_.registered) {
      combiners.push_back({{"combiner", "Registered"}});
      function->AddTo(combiners.back());
    }
    json["combiner_rules"] = combiners;
    json["max_depth"] = options_.max_depth;
    if (options_.only_valid) json["config"] = collage::ToJson(options_.limits);
    if (options_.through_tuples) json["through_tuples"] = true;
    json["max_candidates"] = options_.max_candidates;
    return json;
  }

 private:
  CombineOptions options_;
  PartitionRulePtr sub_rule_;
  std::string name_;
};

OpPatternKind ReadKind(const JsonReader& json, char letter) {
  for (const OpPatternKind kind :
       {OpPatternKind::kElemWise, OpPatternKind::kBroadcast, OpPatternKind::kInjective, OpPatternKind::kCommReduce,
        OpPatternKind::kOutEWiseFusable, OpPatternKind::kTuple, OpPatternKind::kOpaque}) {
    if (KindLetter(kind) == letter) return kind;
  }
  json.Fail(fmt::format("'{}' is no kind of operator", letter), "kinds are E, B, I, R, A, T, O");
}

/// "A->B".
CombinerKinds ReadKinds(const JsonReader& json) {
  const std::string text = json.String();
  if (text.size() != 4 || text.substr(1, 2) != "->") {
    json.Fail(fmt::format("malformed kinds '{}'", text), "write upstream and downstream kind, 'A->B'");
  }
  return {ReadKind(json, text[0]), ReadKind(json, text[3])};
}

void ReadCombiner(const JsonReader& json, CombineOptions& options) {
  const JsonReader combiner = json.At("combiner");
  const std::string name = combiner.String();
  std::vector<std::string> fields{"combiner"};
  if (name == "AllSimple") fields.emplace_back("kinds");
  if (name == "Registered") fields.insert(fields.end(), {"function", "options"});
  json.AllowOnly(fields);
  if (name == "AllSimple") {
    for (const JsonReader& kinds : json.At("kinds").Items()) options.kinds.push_back(ReadKinds(kinds));
  } else if (name == "TupleArg") {
    options.tuple_args = true;
  } else if (name == "TupleProj") {
    options.tuple_projections = true;
  } else if (name == "Constant") {
    options.constants = true;
  } else if (name == "JoinAnything") {
    options.join_anything = true;
  } else if (name == "Registered") {
    options.registered.push_back(std::make_shared<const RegisteredFunction>(RegisteredFunction::Read(json)));
  } else {
    combiner.Fail(fmt::format("there is no combiner '{}'", name),
                  "combiners are AllSimple, TupleArg, TupleProj, Constant, JoinAnything, Registered");
  }
}

PartitionRulePtr ReadCombine(const JsonReader& json, std::string name) {
  CombineOptions options{.max_depth = json.IntOr("max_depth", 0, 0, INT_MAX), .only_valid = json.Has("config")};
  if (options.only_valid) options.limits = ReadSubGraphConfig(json.At("config"));
  options.through_tuples = json.BoolOr("through_tuples", false);
  options.max_tuple_choices = kMaxReadCandidates;
  options.max_candidates = json.IntOr("max_candidates", kMaxReadCandidates, 0, INT_MAX);
  for (const JsonReader& combiner : json.At("combiner_rules").Items()) ReadCombiner(combiner, options);
  return CombineRule(std::move(options), ReadSubRule(json), std::move(name));
}

}  // namespace

const RuleKind kCombineKind{
    "Combine", {"sub_rule", "combiner_rules", "max_depth", "config", "through_tuples", "max_candidates"}, ReadCombine};

PartitionRulePtr CombineRule(CombineOptions options, PartitionRulePtr sub_rule, std::string name) {
  return std::make_unique<CombinePartitionRule>(std::move(options), std::move(sub_rule), std::move(name));
}

}  // namespace collage
