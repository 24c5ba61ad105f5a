// given_costs.h: costs of candidates by a formula, so that choices can be tried out and tested exactly.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collage/estimate.h"
#include "collage/support/json_text.h"
#include "partition/cost.h"
#include "partition/sub_graph.h"

namespace collage {

/// {"op_cost", "fusion_benefit", "unsupported", "overrides", "transition_penalty", "conversion", "copy", "copy_byte",
/// "coalesce"}, all optional.
///
/// A candidate costs what an override with its target and exactly its nodes says; infinity when it holds an operator
/// that its target does not support; else, over its operator calls from the highest index down, k = 0, 1, …: the
/// operator's cost for the target (1 unless given) × fusion_benefit^k. The host costs nothing. An estimate, if there is
/// one, takes the formula's place.
class GivenCosts {
 public:
  explicit GivenCosts(const JsonText& json, CandidateCost estimate = nullptr);

  /// Returns the cost of `sub_graph` as a candidate of `target`.
  Cost CostOf(const std::string& target, const DataflowGraph& graph, const SubGraph& sub_graph) const;
  /// Why a candidate's cost is infinite.
  std::string WhyInfinite(const std::string& target, const DataflowGraph& graph, const SubGraph& sub_graph) const;
  /// Once per chosen candidate that is not the host's.
  double transition_penalty() const { return transition_penalty_; }
  /// To change the layout of a value, where values have several.
  double conversion() const { return conversion_; }
  /// To copy so many bytes from one memory to another.
  double CopySeconds(double bytes) const { return copy_ + bytes * copy_byte_; }
  /// Whether no estimate takes the formula's place.
  bool is_table() const { return estimate_ == nullptr; }
  /// Whether places in a graph matter: equal candidates may differ in cost.
  bool has_overrides() const { return !overrides_.empty(); }
  /// The targets that anything is said of.
  std::set<std::string> Targets() const;
  /// Whether chosen partitions of one target that touch become one afterwards.
  bool coalesce() const { return coalesce_; }

 private:
  Cost OpCost(const std::string& target, const std::string& op) const;
  Cost Estimated(const std::string& target, const DataflowGraph& graph, const SubGraph& sub_graph) const;

  CandidateCost estimate_;
  /// By target and function: structurally equal ones are asked for once.
  mutable std::map<std::pair<std::string, std::string>, Cost> estimated_;
  std::map<std::string, std::map<std::string, Cost>> op_costs_;  ///< target → operator or "*" → cost
  std::map<std::string, std::set<std::string>> unsupported_;
  std::map<std::pair<std::string, std::vector<int>>, Cost> overrides_;
  double fusion_benefit_ = 1;
  double transition_penalty_ = 0;
  double conversion_ = 0;
  double copy_ = 0;       ///< for each copy
  double copy_byte_ = 0;  ///< and for each byte of it
  bool coalesce_ = false;
};

}  // namespace collage
