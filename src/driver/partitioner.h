// partitioner.h: phases 1 to 4 for one function (RFC 0.81, "Phase 1" to "Phase 4"): candidates of all toolchains in all
// layouts at their boundaries, their costs from an estimator, the covers that searches find, and the module of a cover.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "collage/ir/module.h"
#include "collage/target/toolchain.h"
#include "cost/estimator/estimator.h"
#include "driver/schedule_tuning.h"
#include "partition/partition_rule.h"
#include "partition/rewrite.h"
#include "search/cover_problem.h"

namespace collage {

/// The model's candidates and their costs. What it is made of must outlive it.
class Partitioner : public CoverCosts {
 public:
  /// Finds the candidates of `toolchains` in @main of `module`: by the rule in `rules`, else by the toolchain's own.
  Partitioner(const IRModule& module, const std::vector<const Toolchain*>& toolchains, int num_threads,
              const std::map<const Toolchain*, PartitionRulePtr>& rules = {});

  /// Must be set before anything asks for a cost.
  void SetEstimator(CostEstimator* estimator);

  size_t num_candidates() const { return candidates_.size(); }
  size_t num_variants() const { return variants_.size(); }
  /// Of variants that are not equal to others: what may have to be estimated at most.
  size_t num_distinct() const { return classes_.size(); }
  const CandidatePartition& candidate(int number) const { return candidates_[static_cast<size_t>(number)]; }
  const Toolchain* ToolchainOf(int candidate) const { return candidates_[static_cast<size_t>(candidate)].toolchain; }
  const CandidatePartition& CandidateOf(int variant) const {
    return candidates_[static_cast<size_t>(variants_[static_cast<size_t>(variant)].candidate)];
  }

  /// A variant's partition, by the number that its cost is asked for.
  std::pair<PartitionRequest, const Toolchain*> Find(int64_t variant) const;

  /// The same variant's nodes, of the graph.
  std::pair<const DataflowGraph&, const SubGraph&> FindSubGraph(int64_t variant) const {
    return {graph_, CandidateOf(static_cast<int>(variant)).sub_graph};
  }

  /// Whether a candidate is of those that are tried first: single operators, and what no other candidate of the same
  /// toolchain holds. A cover of these is found soon; the others refine it.
  bool IsPrimary(int candidate) const { return is_primary_[static_cast<size_t>(candidate)]; }

  /// The best covers by candidates that `allowed` takes.
  SearchResult Search(const std::function<bool(int candidate)>& allowed, const SearchOptions& options);

  /// Has the costs of `cover` that others are near settled (CostEstimator::Settle): of the same nodes in the same
  /// layouts by other toolchains.
  void Settle(const Cover& cover);

  /// From now on what there is no time to measure costs infinity, but for `certain`'s: it might not even be built.
  void LeaveOutUnknown(const Toolchain* certain);

  /// Tries schedules of the partitions of `covers`, those first that take the greatest share of one's time. What turns
  /// out to be faster is what they cost and how they are compiled from then on.
  TuningReport TuneSchedules(const std::vector<Cover>& covers, const ScheduleLimits& limits);

  /// The cover that a toolchain's own partitioning would give (`partition_for_NAME`): its largest candidates first,
  /// but behind the others those that begin with what one of its candidates computes in the registers of what is
  /// before: element-wise behind an anchor, or rounding to narrower integers; what it cannot take by the fall-back
  /// toolchain, layouts as the toolchain likes them best. Matches of rows that are not greedy
  /// (PatternTableEntry::is_greedy) come last: for what nobody else takes. Asks for the costs of what it takes, and
  /// passes over what turns out not to work. Nothing when nodes stay open, which are then added to `open` if it is
  /// given.
  std::optional<Cover> GreedyCover(const Toolchain& toolchain, const Toolchain* fall_back, std::vector<int>* open);

  /// All covers, costs asked for, when there are no more than `max_covers`; nothing when there are more, or when some
  /// cost could not be found out in the time there is. Those that cannot be run are left out.
  std::optional<std::vector<Cover>> AllCovers(int max_covers);

  /// The partitioned module of a cover; nothing when its partitions depend on each other in a circle.
  std::optional<IRModule> Apply(const Cover& cover, const IRModule& module) const;

  /// The text of a cover (partitioning_json.h).
  std::string ToJson(const Cover& cover) const;
  /// The partitioned module of a choice that was written as text, and the sum of its estimates. Needs no candidates, so
  /// this may be a partitioner for no toolchains. Throws kInput; `where` is the file's name.
  std::pair<IRModule, double> ApplyJson(std::string_view text, const std::string& where,
                                        const std::vector<const Toolchain*>& toolchains, const IRModule& module) const;

  /// "'nn.lrn' (node lrn_3), native: …" for nodes that no candidate covers.
  std::string ExplainStuck(const std::vector<int>& nodes) const;

  /// The exact cost when an earlier search asked for it: a later one is guided by it.
  double LowerBound(int variant) override;
  double Exact(int variant) override;
  /// How far the results of its partition were off when it was measured, relative to the largest; 0 when not known.
  double ErrorOf(int variant) const {
    return classes_[static_cast<size_t>(class_of_[static_cast<size_t>(variant)])].error;
  }
  bool IsAtHand(int variant) override;
  bool FindsOut() const override { return estimator_->FindsOut(); }
  int NumAtOnce() const override { return estimator_->NumAtOnce(); }
  void Prepare(std::span<const int> variants) override;
  double Convert(int value, Format from, Format to) override;
  double Transition(int variant) override;
  /// The number of the variant's toolchain.
  int PlaceOf(int variant) override;
  double Handover(int from, int to) override;
  /// Equal partitions in equal layouts, by one toolchain: they are measured once, unless the estimator tells their
  /// places apart.
  int ClassOf(int variant) override { return class_of_[static_cast<size_t>(variant)]; }

 private:
  /// Of equal variants.
  struct VariantClass {
    std::string workload;  ///< digest of the partition's structure
    Work work;
    int first = 0;                ///< a variant that is one
    std::optional<double> exact;  ///< seconds
    std::string schedule = {};    ///< by which it takes them
    double error = 0;             ///< that its check found, relative to its largest result; 0 = not known
  };

  /// Whether the toolchains of these can be in one process.
  bool IsCompatible(const std::vector<int>& variants) const;
  Cover TakeGreedily(const std::vector<int>& order, IndexSet& left) const;
  void AddCandidates(const Toolchain& toolchain, const PartitionRule& rule);
  void AddVariants(CandidatePartition candidate);
  void MarkPrimary();
  const CoverProblem& Problem();
  std::vector<ChosenPartition> ChosenOf(const Cover& cover) const;
  std::vector<int> OperatorsOf(const CandidatePartition& candidate) const;
  std::vector<int> RivalsOf(int variant) const;
  VariantClass& ClassAt(int variant) { return classes_[static_cast<size_t>(class_of_[static_cast<size_t>(variant)])]; }
  CostQuery QueryFor(const VariantClass& of) const;
  void Learn(VariantClass& of, const TuningRecord& record);

  DataflowGraph graph_;
  std::vector<bool> eligible_;  ///< by node: may its value be channels-last at a boundary
  int num_threads_;
  std::vector<CandidatePartition> candidates_;
  std::vector<CandidateVariant> variants_;
  std::vector<bool> is_primary_;
  std::optional<CoverProblem> problem_;
  CostEstimator* estimator_ = nullptr;
  bool leaves_out_unknown_ = false;
  const Toolchain* certain_ = nullptr;    ///< whose unknown costs leave nothing out
  std::vector<const Toolchain*> places_;  ///< toolchains that have candidates
  /// Variants by the operators that they compute and in which layouts.
  std::map<std::pair<std::vector<int>, BoundaryLayouts>, std::vector<int>> by_place_;
  std::vector<int> class_of_;  ///< by variant
  std::vector<VariantClass> classes_;
  std::map<std::tuple<std::string, BoundaryLayouts, const Toolchain*>, int> class_numbers_;
  std::map<std::pair<std::string, std::string>, std::string> refusals_;  ///< (toolchain, operator) → reason
};

}  // namespace collage
