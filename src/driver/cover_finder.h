// cover_finder.h: which covers of a graph are worth building whole: each toolchain's own, and the best mixes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "cost/estimator/estimator.h"
#include "driver/bounded_mix.h"
#include "driver/participants.h"
#include "driver/partitioner.h"

namespace collage {

struct NamedCover {
  /// "collage", "collage-2", "collage-bounded", "native-search", a toolchain's name for its own partitioning.
  std::string name;
  bool is_single;  ///< of one toolchain, beside what falls back to the native one
  Cover cover;
};

struct FoundCovers {
  std::vector<NamedCover> covers;
  std::vector<int> stuck_at;  ///< nodes that no cover reaches beyond
  int64_t num_states = 0;
  std::optional<BoundedMix> bounded;  ///< where the best mix computes in a lower precision, and that is bounded
};

/// The searches of one compilation.
class CoverFinder {
 public:
  /// `judge` says what a cover takes end to end, for searches that want to know: seconds, or infinity. `error_of` how
  /// far it is off, where CompileOptions::max_error bounds that; empty where nothing does. All must outlive this.
  CoverFinder(Partitioner& partitioner, CostEstimator& estimator, const Participants& participants,
              const CompileOptions& options, std::function<double(const Cover&)> judge,
              std::function<double(const Cover&)> error_of)
      : partitioner_(partitioner),
        estimator_(estimator),
        participants_(participants),
        toolchains_(participants.toolchains()),
        options_(options),
        judge_(std::move(judge)),
        error_of_(std::move(error_of)) {}

  FoundCovers Run();

 private:
  bool IsEvolutionary() const { return options_.search == "evolutionary"; }
  /// Of the searches that go by costs: an evolutionary one starts from the best cover by costs.
  std::string CostSearch() const { return IsEvolutionary() ? "sweep" : options_.search; }
  FoundCovers SearchOnce(bool is_first);
  void AddStandard(FoundCovers& found);
  void AddBounded(FoundCovers& found);
  std::optional<BoundedCover> FindKept(const Cover& best, const Cover& standard, FoundCovers& found);
  std::optional<Cover> SearchAmong(const std::function<bool(int candidate)>& may, FoundCovers& found);
  static void AddBehindBest(NamedCover cover, FoundCovers& found);
  /// Whether a candidate's toolchain need not wait (Participants::Waits).
  std::function<bool(int candidate)> IsAtOnce() const;
  void AddPairs(const SearchOptions& options, FoundCovers& found);
  void AddEvolved(FoundCovers& found);

  Partitioner& partitioner_;
  CostEstimator& estimator_;
  const Participants& participants_;
  const std::vector<const Toolchain*>& toolchains_;
  const CompileOptions& options_;
  std::function<double(const Cover&)> judge_;
  std::function<double(const Cover&)> error_of_;
};

}  // namespace collage
