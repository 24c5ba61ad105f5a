// inspect.h: what Collage sees in a graph, what a rule finds, what a search would choose, without measuring anything.
// The commands `collage parse|dataflow|subgraph|candidates|rewrite|partition` print these reports; formats of rules,
// targets and costs are in docs/inspection.md.
//
// Nodes are numbered by post-dfs index: parameters first, then depth first (a call: its operator, then its arguments;
// a let: value, variable, body; an if: condition, branches; a match: data, then each clause's variables and body),
// shared nodes once, the function last.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collage/estimate.h"
#include "collage/ir/module.h"
#include "collage/support/json_text.h"

namespace collage {

struct DataflowNodeReport {
  int index = 0;
  std::string label;               ///< "%x", "`add" (operator), "add" (its call), "const", "tuple", "proj", "let" …
  std::vector<int> inputs;         ///< in order, `add(x, x)` has x twice
  std::vector<int> outputs;        ///< ascending
  std::optional<int> basic_block;  ///< innermost function, if or match that holds the node; none: the function itself
  bool is_external = false;        ///< the function's result
  std::optional<int> dominator_parent;  ///< immediate post-dominator; none for the function and for what is not used
};
std::vector<DataflowNodeReport> InspectDataflow(const Function& function);

struct SubGraphReport {
  std::vector<int> entry, exit, input, output;
  int depth = 0;
  char kind = 'O';
  std::string label;
  bool is_valid = false;
  std::string why_invalid;
};
/// Reports on the sub-graph of nodes `inside`. `config` is {"max_exits", "allow_taps", "max_depth"}. Throws kInput for
/// indices that are not in the graph.
SubGraphReport InspectSubGraph(const Function& function, const std::vector<int>& inside, const JsonText& config);

struct CandidateReport {
  std::vector<int> inside;
  std::string rule_name;
  std::string label;
  char kind = 'O';
  int depth = 0;
};
/// Returns the candidates of a rule, each set of nodes once.
std::vector<CandidateReport> InspectCandidates(const Function& function, const JsonText& rule);

/// Names the toolchain of candidates: "acme:external" has a Compiler attribute, "acme" is native.
struct TargetName {
  std::string name;
  bool is_external = false;
};
/// Throws kInput for malformed text.
TargetName ParseTargetName(const std::string& text);

/// The function with all of a rule's candidates applied in parallel. Throws kInput when candidates overlap or cannot be
/// put in order.
Function RewriteByRule(const Function& function, const JsonText& rule, const TargetName& target);

struct PartitionReport {
  std::string target;
  std::string rule_name;
  std::vector<int> inside;
  std::vector<std::string> ops;  ///< operators called inside, in order
  double cost = 0;
};
struct CoverReport {
  double cost = 0;
  std::optional<double> next_best_cost;     ///< the second least total over covers
  std::vector<PartitionReport> partitions;  ///< by their first node
  std::vector<int> host;                    ///< nodes left to the host
  int64_t num_states = 0;
  int64_t num_candidates = 0;
  int64_t num_costs = 0;    ///< costs that the search asked for
  bool is_exact = false;    ///< the search cut nothing off
  int64_t num_dropped = 0;  ///< states that it dropped
  double least_cost = 0;    ///< proven: no cover of these candidates costs less
  Function rewritten;       ///< null unless asked for
};
/// The least-cost cover of a function by targets with rules, at costs that are given instead of measured: by the
/// formula of `costs`, or by `estimate` in its place if that is given; overrides hold either way. `targets` is a list
/// of {"name", "external", "rule"}, and of targets of registered toolchains as text, which find candidates as these do
/// and only take nodes that are planned for their device (pass PlanDevices) or for none. A plain graph for registered
/// targets alone is partitioned as pass CollagePartition does; in all other cases the host must cover what no target
/// does. Throws kUnsupported when there is no cover, naming nodes, their operators, and why each target declines;
/// kInput for an estimate below zero.
CoverReport PartitionByGivenCosts(const Function& function, const JsonText& targets, const JsonText& costs,
                                  bool rewrite = false, CandidateCost estimate = nullptr);

}  // namespace collage
