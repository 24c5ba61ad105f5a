// verify.h: claims of an explanation, held against the clock: another way is compiled, and both graphs are timed in
// turn. The graph is the whole model, or one region of a program.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "explain/explanation.h"
#include "explain/questions.h"
#include "report/fact.h"

namespace collage {

struct VerifyOptions {
  std::filesystem::path model;                               ///< the one that was compiled
  double seconds = 4;                                        ///< about how long each pair is timed
  std::function<void(const std::string& what)> on_progress;  ///< may be empty
};

/// "Computing these nodes in the other way makes the graph slower by so much", and what the clock says.
struct VerifiedClaim {
  PartitionPlace place;
  const ExplainedAlternative* alternative = nullptr;  ///< null: there is none of known cost
  std::string failure = {};                           ///< why it was not timed; empty if it was
  int rounds = 0;
  double before_seconds = 0;  ///< medians of the whole graph, as it was compiled and in the other way
  double after_seconds = 0;
  double extra_seconds = 0;  ///< median of the differences of the rounds
  double low_seconds = 0;    ///< its interval, with what two builds of one mix differ by
  double high_seconds = 0;

  /// Whether the measured interval and the claimed one have something in common.
  bool holds() const;
};

/// The partition's cheapest other way of known cost; null if there is none.
const ExplainedAlternative* RunnerUpOf(const ExplainedPartition& partition);

/// The numbers of the `count` most expensive partitions of a graph.
std::vector<PartitionPlace> MostExpensive(const Explanation& explanation, size_t graph, size_t count);

/// Times the runner-up of each partition at `places`, which are all of one graph, beside the winner. Throws kInput for
/// a model that is not the one that was compiled.
std::vector<VerifiedClaim> VerifyClaims(const Explanation& explanation, const std::vector<PartitionPlace>& places,
                                        const VerifyOptions& options);

Fact VerifyFacts(const Explanation& explanation, const std::vector<VerifiedClaim>& claims);

/// The text of a partitioning: the winner's of `graph`, with `alternative` in the place of what it replaces, if given.
std::string PartitioningOf(const GraphExplanation& graph, const ExplainedAlternative* alternative);

}  // namespace collage
