// explain_candidates.h: candidates and their costs as explanations have them, and the numbers by which these refer to
// them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "driver/covers/partitioner.h"
#include "driver/explanation/graph_explanation.h"
#include "partition/rewrite.h"

namespace collage {

/// Fills toolchains, candidates and costs of an explanation. Measures nothing.
class CandidateTable {
 public:
  /// `explanation` must outlive it.
  explicit CandidateTable(GraphExplanation& explanation) : explanation_(explanation) {}

  /// The number of a toolchain's configuration by its name; new ones are added.
  int ToolchainOf(const std::string& name);

  /// Adds the candidates of a search. At most `most` are kept: those of unknown cost that could be in no cheap cover
  /// are left out first. `best_seconds`: the cost of the best cover.
  void AddSearched(Partitioner& partitioner, double best_seconds, size_t most);

  /// The number of a partition in a text of PartitioningToJson; a new one is added without a cost.
  int NumberOf(const nlohmann::json& partition);

  /// The number of a variant, which is added if it was left out.
  int NumberOf(Partitioner& partitioner, VariantIndex variant);
  /// The variant at a number; nothing for partitions that are no candidates.
  std::optional<VariantIndex> VariantAt(int number) const;

 private:
  /// Toolchain, nodes, inputs, outputs, rule.
  using Key = std::tuple<int, std::vector<int>, std::vector<std::string>, std::vector<std::string>, std::string>;

  int Add(ExplainedCandidate candidate);
  ExplainedCandidate Describe(const Candidates& candidates, VariantIndex variant);

  GraphExplanation& explanation_;
  std::map<Key, int> numbers_;
  std::map<VariantIndex, int> number_of_variant_;
  std::map<int, VariantIndex> variant_at_;
  std::map<int, int> cost_of_class_;  ///< Partitioner::ClassOf → index of costs
};

/// Names of layouts.
std::vector<std::string> NamesOf(const std::vector<Layout>& layouts);

}  // namespace collage
