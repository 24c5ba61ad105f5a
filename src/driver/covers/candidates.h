// candidates.h: phases 1 and 2 for one function (RFC 0.81): the partitions that toolchains could compute, in all
// layouts at their boundaries.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "collage/ir/module.h"
#include "collage/target/toolchain.h"
#include "cost/machine/roofline.h"
#include "cost/runner/candidate_source.h"
#include "partition/extract.h"
#include "partition/partition_spec.h"
#include "search/find_covers.h"

namespace collage {

/// The candidates of a function, each in every choice of layouts that its toolchain offers: its *variants*, numbered
/// from 0, which are the handles of this CandidateSource. Immutable. Its arguments must outlive it.
class Candidates : public CandidateSource {
 public:
  /// Finds the candidates of `specs` in `function`: those that several specs of one name find are taken once. With
  /// Boundaries::kExact every one has one variant, in plain layouts.
  Candidates(const Function& function, const std::vector<PartitionSpec>& specs, int num_threads,
             Boundaries boundaries = Boundaries::kTensors);

  /// Variants of one class are equal: the same structure in the same layouts by specs of one name.
  struct VariantClass {
    std::string workload;  ///< digest of the partition's structure, constants by shape
    Work work;
    VariantIndex first;  ///< a variant that is one
  };

  const DataflowGraph& graph() const { return graph_; }
  const std::vector<PartitionSpec>& specs() const { return specs_; }
  /// By node: whether its value may be channels-last at a boundary.
  const std::vector<bool>& eligible() const { return eligible_; }
  const CandidateList& candidates() const { return candidates_; }
  const VariantList& variants() const { return variants_; }
  const std::vector<VariantClass>& classes() const { return classes_; }
  /// The number of a variant's class.
  const IndexedVector<VariantIndex, int>& class_of() const { return class_of_; }
  /// Toolchains that have candidates.
  const std::vector<const Toolchain*>& toolchains() const { return toolchains_; }

  const CandidatePartition& at(CandidateIndex candidate) const { return candidates_[candidate]; }
  const CandidateVariant& variant(VariantIndex variant) const { return variants_[variant]; }
  const CandidatePartition& CandidateOf(VariantIndex variant) const { return at(this->variant(variant).candidate); }
  const Toolchain* ToolchainOf(CandidateIndex candidate) const { return at(candidate).toolchain; }

  /// The choices of layouts that a candidate's toolchain offers at the boundary of `extracted`, which is the candidate,
  /// and that make each value in the scope it is planned for; none if it takes its calls one by one, but not as this
  /// partition.
  std::vector<BoundaryLayouts> LayoutsOf(const CandidatePartition& candidate, const ExtractedFunction& extracted) const;

  /// Whether a candidate is one of those that are tried first: single operators, and what no other candidate of the
  /// same toolchain holds. A cover of these is found soon; the others refine it.
  bool IsPrimary(CandidateIndex candidate) const { return is_primary_[candidate]; }

  /// Variants that compute the same operators in the same layouts as `variant`, by any toolchain, itself included;
  /// ascending.
  const std::vector<VariantIndex>& SameWorkAs(VariantIndex variant) const;

  /// Specs whose rules found more candidates than they may return.
  const std::vector<std::string>& capped() const { return capped_; }

  /// Why toolchains refused operators: (toolchain, operator) → reason.
  const std::map<std::pair<std::string, std::string>, std::string>& refusals() const { return refusals_; }

  std::pair<PartitionRequest, const Toolchain*> Find(CandidateHandle variant) const override;
  std::pair<const DataflowGraph&, const SubGraph&> FindSubGraph(CandidateHandle variant) const override;

 private:
  void AddCandidates(const PartitionSpec& spec);
  void AddVariants(CandidatePartition candidate);
  bool FitsPlannedMemory(int node, Memory memory) const;
  void MarkPrimary();
  std::vector<int> OperatorsOf(const CandidatePartition& candidate) const;

  DataflowGraph graph_;
  const std::vector<PartitionSpec>& specs_;
  std::vector<bool> eligible_;
  int num_threads_;
  CandidateList candidates_;
  VariantList variants_;
  IndexedVector<CandidateIndex, bool> is_primary_;
  std::vector<const Toolchain*> toolchains_;
  /// Variants by the operators that they compute and in which layouts.
  std::map<std::pair<std::vector<int>, BoundaryLayouts>, std::vector<VariantIndex>> by_work_;
  IndexedVector<VariantIndex, int> class_of_;
  std::vector<VariantClass> classes_;
  std::map<std::tuple<std::string, BoundaryLayouts, std::string>, int> class_numbers_;
  std::set<std::pair<std::string, std::vector<int>>> taken_;  ///< names of specs, and sub-graphs as KeyOf has them
  std::vector<std::string> capped_;
  std::map<std::pair<std::string, std::string>, std::string> refusals_;
};

}  // namespace collage
