// cover_portfolio.h: which covers of a graph are worth building whole: each toolchain's own, and the best mixes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "cost/estimator/estimator.h"
#include "driver/covers/partitioner.h"
#include "driver/toolchain_selection.h"

namespace collage {

struct NamedCover {
  /// "collage", "collage-2", "collage-bounded", "native-search", "native-fuse-ops", a toolchain's name for its own
  /// partitioning.
  std::string name;
  bool is_single;  ///< whether one toolchain computes it, beside the fall-back to the native one
  Cover cover;
  bool is_baseline = false;  ///< whether no search chose it: ContenderModule::baselines
  bool merges = false;       ///< whether it is built with neighbours merged (CoalescedForLibraries)
};

/// How far the searches had come at a time.
struct SearchStep {
  double at_seconds = 0;  ///< SteadySeconds
  int64_t num_measured = 0;
  double best_seconds = 0;   ///< cost of the best cover; 0: none yet
  double least_seconds = 0;  ///< no cover of all candidates costs less; 0: not known
};

struct FoundCovers {
  std::vector<NamedCover> covers;
  std::vector<int> stuck_at;  ///< nodes that no cover reaches beyond
  int64_t num_states = 0;
  std::optional<Certificate> certificate;  ///< the best mix's
  std::optional<BoundedMix> bounded;       ///< set if the best mix is in a lower precision with an error bound
};

/// The best mix, and what follows a toolchain's name in that of its best cover.
inline constexpr const char* kBestCover = "collage";
inline constexpr const char* kOwnSearch = "-search";
/// The end of the name of a toolchain's cover by the functions of FuseOps.
inline constexpr const char* kFuseOps = "-fuse-ops";
/// The beginning of the name of a contender that the passes of `partition_for_NAME` make.
inline constexpr const char* kPartitionFor = "partition_for_";
/// The best mix with neighbouring partitions of libraries that plan within them merged.
inline constexpr const char* kCoalescedCover = "collage-coalesced";
/// The best cover of the paper's graph level, by `--search evolutionary`.
inline constexpr const char* kEvolvedCover = "collage-evolved";
/// The best mix of toolchains that compute in full precision, where others take part.
inline constexpr const char* kStandardCover = "collage-standard";

/// The searches of one compilation that go by costs alone. They build and run nothing, except through the estimator.
class CoverPortfolio {
 public:
  /// All must outlive this.
  CoverPortfolio(Partitioner& partitioner, CostEstimator& estimator, const ToolchainSelection& selection,
                 const CompileOptions& options)
      : partitioner_(partitioner),
        estimator_(estimator),
        selection_(selection),
        toolchains_(selection.toolchains()),
        options_(options) {}

  /// Each toolchain's own partitioning, the best mixes, and each toolchain's best cover. `is_first`: the budget is
  /// spent step by step, so that there is a cover when it ends.
  FoundCovers Search(bool is_first);
  /// Returns what Search begins with: each toolchain's own choice, without a search.
  FoundCovers OwnChoices();

  /// The best cover by candidates that `may` takes; adds to the number of states in `found`.
  std::optional<Cover> SearchAmong(const std::function<bool(CandidateIndex candidate)>& may, FoundCovers& found);

  /// Whether a candidate's toolchain is eager: none that is tried only where the errors of others are too large
  /// (ToolchainSelection::IsDeferred).
  std::function<bool(CandidateIndex candidate)> IsEager() const;

  /// The steps of all searches so far.
  const std::vector<SearchStep>& steps() const { return steps_; }

  bool is_evolutionary() const { return options_.search == "evolutionary"; }

 private:
  /// The strategy of searches by cost: an evolutionary one starts from the best cover by costs.
  std::string CostSearch() const { return is_evolutionary() ? "sweep" : options_.search; }
  double Tolerance() const;
  SearchOptions SideSearch() const;
  std::vector<NamedCover> Baselines(std::vector<int>& stuck_at);
  void AddCustom(FoundCovers& found);
  void AddMixes(const std::function<void(double share)>& set_budget, FoundCovers& found);
  void AddStandard(FoundCovers& found);
  void AddPairs(const SearchOptions& options, FoundCovers& found);
  void AddSingle(const SearchOptions& options, FoundCovers& found);
  void AddNumbered(const SearchResult& result, FoundCovers& found);
  void AddStep(const std::vector<Cover>& covers, double least_seconds);

  Partitioner& partitioner_;
  CostEstimator& estimator_;
  const ToolchainSelection& selection_;
  const std::vector<const Toolchain*>& toolchains_;
  const CompileOptions& options_;
  std::vector<SearchStep> steps_;
  std::optional<Cover> best_so_far_;  ///< the best one whose costs were all known
};

}  // namespace collage
