// partitioner.h: phases 3 and 4 for one function (RFC 0.81, "Phase 3", "Phase 4"): costs of its candidates from an
// estimator, the covers that searches find, and the module of a cover.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collage/ir/module.h"
#include "collage/target/toolchain.h"
#include "cost/estimator/estimator.h"
#include "driver/covers/candidates.h"
#include "driver/tuning/schedule_tuning.h"
#include "partition/rewrite.h"
#include "search/cover_problem.h"

namespace collage {

/// A cover that others are to beat, or that is to become faster.
struct TuningGoal {
  Cover cover;
  std::function<bool(CandidateIndex candidate)> allowed;  ///< which candidates the others may have
};

/// Candidates with their costs. Its arguments must outlive it. Variants are those of `candidates`.
class Partitioner : public CoverCosts {
 public:
  Partitioner(const Candidates& candidates, CostEstimator& estimator);

  const Candidates& candidates() const { return candidates_; }

  /// The best covers by candidates that `allowed` takes.
  SearchResult Search(const std::function<bool(CandidateIndex candidate)>& allowed, const SearchOptions& options);

  /// Settles those costs of `cover` that are close to a rival's (CostEstimator::BreakTies). A rival computes the same
  /// operators in the same layouts, by any toolchain.
  void BreakTies(const Cover& cover);

  /// From now on, treats unmeasured candidates as unusable, except those of `certain`, which is known to build.
  void LeaveOutUnknown(const Toolchain* certain);

  /// Tries schedules of candidates whose costs are known and with which one of `goals` may be beaten: a cover of the
  /// goal's candidates with this one may cost less than the goal's cover, by the least that any schedule takes
  /// (CostEstimator::LeastOfSchedules). Candidates by which, alone, most can be gained come first. A faster schedule
  /// becomes their cost and their way of compiling from then on.
  TuningReport TuneSchedules(const std::vector<TuningGoal>& goals, const ScheduleLimits& limits);

  /// All covers, costs asked for, when there are no more than `max_covers`; nothing when there are more, or when some
  /// cost could not be found out in the time there is. Covers that cannot be run are left out.
  std::optional<std::vector<Cover>> AllCovers(int max_covers);

  /// The partitions of a cover, in its order.
  std::vector<ChosenPartition> ChosenOf(const Cover& cover) const;

  /// `module` with @main partitioned; nothing when the partitions depend on each other in a circle.
  std::optional<IRModule> Apply(const std::vector<ChosenPartition>& chosen, const IRModule& module) const;

  /// Returns the nodes at positions of searches.
  std::vector<int> NodesAt(const std::vector<Position>& positions) { return Problem().NodesAt(positions); }

  /// The cost of a cover by what is known now, with bounds for what is not.
  double SecondsOf(const Cover& cover);
  /// Seconds that no schedule of a variant's partition goes below.
  double LeastOf(VariantIndex variant);
  /// The problem with all variants. Made once: it needs each candidate's boundary, which means building its function.
  const CoverProblem& Problem();

  /// Returns the type of a value of the problem, which the graph keeps.
  const TensorTypeNode& TypeOf(int value);

  /// Why no candidate of `spec` computes the node at index `node` in any cover.
  std::string WhyNot(int node, const PartitionSpec& spec);
  /// Why no candidate of `spec` with the node at index `node` can be run, as `can_run` has it; empty if one can. Asks
  /// for no costs.
  std::string WhyNoneRuns(int node, const PartitionSpec& spec,
                          const std::function<bool(VariantIndex variant)>& can_run) const;

  /// "'nn.lrn' (node lrn_3), native: …" for nodes that no candidate covers.
  std::string ExplainStuck(const std::vector<int>& nodes) const;

  /// The exact cost when an earlier search asked for it: a later one is guided by it.
  double LowerBound(VariantIndex variant) override;
  double Exact(VariantIndex variant) override;
  /// Whether its exact cost is known to be infinite.
  bool IsInvalid(VariantIndex variant) const;
  /// Whether its cost is of a compiled partition.
  bool IsKnownToCompile(VariantIndex variant) const;
  /// Makes the cost of the variant, and of those that cost the same, infinite: its toolchain declined to compile it.
  void Decline(VariantIndex variant, const std::string& reason);
  /// Why its cost is infinite, where it is.
  std::string WhyInvalid(VariantIndex variant) const;
  /// Why `spec` refused the operators `label`; empty if it did not.
  std::string RefusalOf(const PartitionSpec& spec, const std::string& label) const;
  /// The record behind its exact cost; null where there is none.
  const TuningRecord* RecordOf(VariantIndex variant) const;
  /// CostEstimator::TrialsOf.
  std::vector<TuningRecord> TrialsOf(VariantIndex variant) { return estimator_.TrialsOf(QueryFor(ClassAt(variant))); }
  /// The work of its partition.
  const Work& WorkOf(VariantIndex variant) const { return ClassAt(variant).of->work; }
  /// Seconds that no kernel of its toolchain goes below on this machine, however its partition is compiled.
  double LeastOfAny(VariantIndex variant);
  /// The error of its partition's results when it was measured, relative to the largest; 0 if not known.
  double ErrorOf(VariantIndex variant) const { return ClassAt(variant).error; }
  bool IsAtHand(VariantIndex variant) override;
  bool FindsOut() const override { return estimator_.FindsOut(); }
  int NumAtOnce() const override { return estimator_.NumAtOnce(); }
  void Prepare(std::span<const VariantIndex> variants) override;
  double Convert(int value, Format from, Format to) override;
  /// Whether `Convert` has its answer at hand.
  bool IsConversionAtHand(int value, Format from, Format to);
  double Transition(VariantIndex variant) override;
  /// The number of the variant's toolchain.
  int PlaceOf(VariantIndex variant) override;
  double SwitchPenalty(int from, int to) override;
  /// Equal partitions in equal layouts, by one toolchain: they are measured once, unless the estimator tells their
  /// places apart.
  int ClassOf(VariantIndex variant) override { return class_of_[variant]; }

 private:
  /// Variants that cost the same.
  struct Costed {
    const Candidates::VariantClass* of = nullptr;
    VariantIndex first;           ///< a variant that is one
    std::optional<double> exact;  ///< seconds
    std::string schedule = {};    ///< by which it takes them
    double error = 0;             ///< found by its check, relative to its largest result; 0 = not known
    TuningRecord record = {};     ///< behind `exact`
  };

  /// Whether the toolchains of these can be in one process.
  bool IsCompatible(const std::vector<VariantIndex>& variants) const;
  std::vector<VariantIndex> RivalsOf(VariantIndex variant) const;
  Costed& ClassAt(VariantIndex variant) { return classes_[static_cast<size_t>(class_of_[variant])]; }
  const Costed& ClassAt(VariantIndex variant) const { return classes_[static_cast<size_t>(class_of_[variant])]; }
  CostQuery QueryFor(const Costed& of) const;
  std::vector<ScheduleTask> ScheduleTasks(std::vector<int>& task_of);
  void Learn(Costed& of, const TuningRecord& record);

  const Candidates& candidates_;
  CostEstimator& estimator_;
  std::optional<CoverProblem> problem_;
  bool leaves_out_unknown_ = false;
  const Toolchain* certain_ = nullptr;  ///< toolchain whose unknown costs leave nothing out
  IndexedVector<VariantIndex, int> class_of_;
  std::vector<Costed> classes_;
  std::map<std::pair<std::string, std::string>, std::string> refusals_;  ///< (toolchain, operator) → reason
};

}  // namespace collage
