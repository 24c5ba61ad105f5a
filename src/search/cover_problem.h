// cover_problem.h: what searches need to know of graph and candidates, worked out once: positions that must be covered,
// values whose formats matter, and what partitions depend on.
#pragma once

#include <unordered_map>
#include <vector>

#include "partition/extract.h"
#include "search/find_covers.h"

namespace collage {

/// A value that is wanted or made in a format.
struct FormatUse {
  int value;
  Format format;
  auto operator<=>(const FormatUse&) const = default;
};

/// A variant as searches see it.
struct CoverVariant {
  std::vector<int> covers;       ///< positions, ascending; one that covers none is never chosen
  std::vector<FormatUse> wants;  ///< of values with formats that others make; each once, ascending
  std::vector<FormatUse> makes;  ///< of values with formats; each value once
  int priority = 0;              ///< of its toolchain: the lesser is taken where costs are equal
  int toolchain = 0;             ///< tells toolchains apart
  /// Nodes inside (of `CoverProblem::node_inputs`), for variants with several exits; empty for those with one. Only
  /// partitions with several exits can make a cover that cannot be put in order, see partition_order.h.
  std::vector<int> members;
};

/// A value that may have several formats.
struct FormattedValue {
  int maker = 0;             ///< position
  std::vector<int> readers;  ///< positions that read it, directly or through the host; ascending
};

/// Positions 0, 1, … are the nodes that must be covered, in an order of dataflow.
struct CoverProblem {
  int num_positions = 0;
  std::vector<CoverVariant> variants;
  std::unordered_map<int, FormattedValue> values;  ///< those with formats
  std::vector<FormatUse> returned;                 ///< wanted by whoever calls the function; ascending
  /// What each node reads, for the order of partitions. May be empty when no variant has `members`.
  std::vector<std::vector<int>> node_inputs;
  std::vector<int> nodes;  ///< position → graph node, for explanations; may be empty: the same

  /// Variants by their first position.
  std::vector<std::vector<int>> StartingAt() const;
  /// The same problem with these of its variants only, in this order.
  CoverProblem Of(const std::vector<int>& selected) const;
  /// The same problem from the other end: position p becomes num_positions - 1 - p.
  CoverProblem Reversed() const;
};

/// The problem of covering `graph`'s operator calls, except reshapes and what is within partitions already.
CoverProblem MakeCoverProblem(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates,
                              const std::vector<CandidateVariant>& variants, const std::vector<bool>& eligible);

/// What a cover costs when the exact costs of its variants are `exact` (by variant): summed in the cover's order, each
/// variant's cost, then its transition, the handover from the one before it, and the conversions that it makes
/// necessary. By the definition of the problem, independently of any search. Infinite when it is no cover or cannot be
/// put in order.
double CoverSeconds(const CoverProblem& problem, const std::vector<int>& variants, const std::vector<double>& exact,
                    CoverCosts& costs);

}  // namespace collage
