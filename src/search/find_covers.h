// find_covers.h: least-cost covers of a dataflow graph by candidates (RFC 0.81, Phase 3), with formats at the
// boundaries. Defines the questions to searches and their answers; the strategies are in cover_search.h.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "collage/search.h"
#include "partition/partition_rule.h"
#include "search/indices.h"

namespace collage {

/// How a value is at a partition's boundary: layout, device, memory scope, dtype. The search only tells formats apart;
/// 0 is the host's, which every value can be had in. A Layout's number is its format.
using Format = int;

/// A candidate with one of the layout combinations that its toolchain offers.
struct CandidateVariant {
  CandidateIndex candidate;
  BoundaryLayouts layouts;
};

/// Source of costs for a search, all in seconds and not negative. `Exact` may be very slow. Infinity means that a
/// variant cannot be run (Invalid); NaN means that its cost could not be found (Unknown): it is chosen only if there is
/// no other way.
///
/// Nothing has a default here, so that a decorator that forgets a function does not compile; `BasicCoverCosts` has
/// them.
class CoverCosts {
 public:
  virtual ~CoverCosts() = default;
  /// Cheap and never above `Exact`; 0 when nothing is known.
  virtual double LowerBound(VariantIndex variant) = 0;
  virtual double Exact(VariantIndex variant) = 0;
  /// Whether `Exact` has its answer at hand.
  virtual bool IsAtHand(VariantIndex variant) = 0;
  /// Whether `Exact` finds out what is not at hand. When it does not, all of that is Invalid for now.
  virtual bool FindsOut() const = 0;
  /// How many exact costs are found out in about the time of one.
  virtual int NumAtOnce() const = 0;
  /// Tells that the exact costs of all these will be asked for next: they may be found out together.
  virtual void Prepare(std::span<const VariantIndex> variants) = 0;
  /// To change the format of a value (the node that makes it) from that which it was made in.
  virtual double Convert(int value, Format from, Format to) = 0;
  /// Fixed cost of one more partition, beyond what it costs by itself.
  virtual double Transition(VariantIndex variant) = 0;
  /// By whose threads and code a variant runs: a small number. Handing over from one to another takes time.
  virtual int PlaceOf(VariantIndex variant) = 0;
  /// Returns the toolchain-switch penalty: the additional cost of a variant at place `to` after one at `from`.
  virtual double SwitchPenalty(int from, int to) = 0;
  /// Variants of one class have the same exact cost, which is asked for once: repeated blocks of a model.
  virtual int ClassOf(VariantIndex variant) = 0;
};

/// Costs that are all known at once, one at a time, of variants that differ and run in one place.
class BasicCoverCosts : public CoverCosts {
 public:
  bool IsAtHand(VariantIndex /*variant*/) override { return false; }
  bool FindsOut() const override { return true; }
  int NumAtOnce() const override { return 1; }
  void Prepare(std::span<const VariantIndex> /*variants*/) override {}
  int PlaceOf(VariantIndex /*variant*/) override { return 0; }
  double SwitchPenalty(int /*from*/, int /*to*/) override { return 0; }
  int ClassOf(VariantIndex variant) override { return variant.number(); }
};

struct CoverProblem;

struct Cover {
  std::vector<VariantIndex> variants;  ///< in the order of their first nodes
  double seconds = 0;                  ///< sum of costs, transitions and conversions, without those that are Unknown
  int num_unknown = 0;                 ///< variants of cost Unknown
};

/// Options of the evolutionary search; the defaults are the paper's.
struct EvolutionOptions {
  int population = 50;
  int max_generations = 200;
  int max_evaluations = 2000;   ///< distinct individuals whose fitness is asked for
  double budget_seconds = 0;    ///< 0 = no limit
  double crossover_rate = 0.5;  ///< share of neighbours in the mating pool that exchange a stretch of genes
  double mutation_rate = 0.2;   ///< share of individuals that mutate
  double flip_rate = 0.05;      ///< share of a mutating individual's genes
  int tournament = 5;
  uint64_t seed = 64;
};

struct SearchOptions {
  /// A name from SearchStrategies().
  std::string strategy = "sweep";
  int num_covers = 1;
  /// Covers that cost more than the best by more than this share are not searched for.
  double slack = 0.02;
  /// Covers dearer than this are not looked for.
  double limit = std::numeric_limits<double>::infinity();
  /// Ends a search that asks for costs step by step when no cover can be cheaper than the best known one by more than
  /// this share, since differences below the noise are not worth measuring.
  double tolerance = 0;
  /// At most this many states are expanded for one first uncovered node; more are dropped, and counted. A fall-back for
  /// graphs that nothing can be proven of in the memory there is; 0 = no limit.
  int beam = 1024;
  /// "evolutionary" only.
  EvolutionOptions evolution;
  /// Searches in place of `strategy` when it is given; names toolchains by `CoverProblem`'s variants.
  CustomSearch custom;
  std::function<std::string(VariantIndex variant)> toolchain_name;  ///< for `custom`
  /// "evolutionary" only: what a cover takes end to end; infinity when it cannot be run. The sum of costs when empty.
  std::function<double(const Cover&)> fitness;
};

struct SearchResult {
  std::vector<Cover> covers;  ///< by cost, distinct; empty when there is none
  /// Nothing was cut off: the covers are the best ones, as far as the strategy promises that at all.
  bool is_exact = false;
  /// Proof of how good they are: no cover costs less, where one of cost Unknown adds CostBook::kUnknownSeconds. By the
  /// costs and lower bounds known in the end; holds whatever was cut off. Infinity when there is no cover.
  double least_seconds = 0;
  int64_t num_states = 0;
  int64_t num_exact = 0;    ///< variants whose exact cost was asked for
  int64_t num_dropped = 0;  ///< states that the beam cut off
  /// When there is no cover: positions in no candidate that can be run; when there is none of these, positions at
  /// which the search came to no candidate.
  std::vector<Position> stuck_at;
};

/// The best covers of `graph` by `variants` of `candidates`, by the strategy that `options` names.
///
/// Operators that are reshapes, tuples and projections need no cover: they are left to the host, which reads and makes
/// plain values, or taken along by candidates that hold them. Covers whose partitions could not be run in any order are
/// none, nor are those that mix toolchains which cannot be in one process (`Toolchain::Incompatible`).
///
/// `eligible` says which nodes' values may be channels-last. Deterministic: of covers of equal cost, the one comes
/// first that at the first difference, in the order of dataflow, has the toolchain of lesser priority, then the lesser
/// variant. Throws kInput for an unknown strategy.
SearchResult FindCovers(const DataflowGraph& graph, const CandidateList& candidates, const VariantList& variants,
                        const std::vector<bool>& eligible, CoverCosts& costs, const SearchOptions& options);

/// Finds covers of a `problem` that was made of `candidates` (cover_problem.h).
SearchResult FindCovers(const CoverProblem& problem, const CandidateList& candidates, const VariantList& variants,
                        CoverCosts& costs, const SearchOptions& options);

}  // namespace collage
