// cover_problem.h: what searches need to know of graph and candidates, worked out once: positions that must be covered,
// values whose formats matter, and what partitions depend on.
#pragma once

#include <optional>
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
  std::vector<Position> covers;  ///< positions, ascending; one that covers none is never chosen
  std::vector<FormatUse> wants;  ///< values with formats that it reads; each once, ascending
  std::vector<FormatUse> makes;  ///< values with formats that it makes; each once
  int priority = 0;              ///< its toolchain's; the lower one wins a tie
  int toolchain = 0;             ///< tells toolchains apart
  /// Nodes inside (of `CoverProblem::node_inputs`), for variants with several exits; empty for those with one. Only
  /// partitions with several exits can make a cover that cannot be put in order, see partition_order.h.
  std::vector<int> members;
};

/// A value that may have several formats.
struct FormattedValue {
  static constexpr Position kGiven{-1};  ///< before all positions: the function's parameter, in the host's format

  Position maker;
  std::vector<Position> readers;  ///< positions that read it, directly or through the host; ascending
};

/// Positions 0, 1, … are the nodes that must be covered, in an order of dataflow.
struct CoverProblem {
  int num_positions = 0;
  IndexedVector<VariantIndex, CoverVariant> variants;
  /// Values with formats, by the node that makes them; numbers of no node are those of `fields`.
  std::unordered_map<int, FormattedValue> values;
  int num_nodes = 0;
  std::vector<BoundaryValue> fields;  ///< fields of tuples that nodes make: values num_nodes, num_nodes + 1, …
  std::vector<FormatUse> returned;    ///< formats that the function's caller wants; ascending
  /// Inputs of each node, for the order of partitions. May be empty when no variant has `members`.
  std::vector<std::vector<int>> node_inputs;
  /// The graph's node at each position, for explanations. May be empty: the same numbers.
  IndexedVector<Position, int> nodes;

  /// The position after the last one.
  Position end() const { return Position(num_positions); }
  IndexRange<Position> positions() const { return IndexRange<Position>(end()); }
  /// The tensor that a value is.
  BoundaryValue ValueAt(int value) const {
    return value < num_nodes ? BoundaryValue{value} : fields[static_cast<size_t>(value - num_nodes)];
  }
  /// Returns the graph's nodes at these positions.
  std::vector<int> NodesAt(const std::vector<Position>& at) const;
  /// Variants by their first position.
  IndexedVector<Position, std::vector<VariantIndex>> StartingAt() const;
  /// Returns the same problem with only these variants, in this order.
  CoverProblem Of(const OriginalVariants& selected) const;
  /// Returns the same problem from the other end, in which every position is mirrored.
  CoverProblem Reversed() const;
  /// A position as counted from the other end.
  Position Mirrored(Position position) const { return Position(num_positions - 1 - position.number()); }
};

/// Whether partitions must cover the node at `index`: calls of operators, except reshapes and those that only say where
/// a value is; with Boundaries::kExact all nodes; never those within partitions already.
bool MustBeCovered(const DataflowGraph& graph, int index);

/// The problem of covering all nodes of `graph` that must be. Values have formats where they are `eligible`; all have
/// some that a variant reads or makes in another memory than the host's.
CoverProblem MakeCoverProblem(const DataflowGraph& graph, const CandidateList& candidates, const VariantList& variants,
                              const std::vector<bool>& eligible);

/// A change of a value's format that a cover makes necessary.
struct CoverConversion {
  int value;
  Format from;
  Format to;
  double seconds;
};

/// The cost of one variant in a cover beside its own cost. A conversion belongs to the first variant that makes it
/// necessary, in the cover's order.
struct CoverPenalties {
  double transition = 0;
  double toolchain_switch = 0;  ///< after the variant before it
  std::vector<CoverConversion> conversions = {};
};

/// Returns the penalties of each of `variants`, which are a cover in its order; nothing if they are no cover or cannot
/// be put in order.
std::optional<std::vector<CoverPenalties>> PenaltiesOf(const CoverProblem& problem,
                                                       const std::vector<VariantIndex>& variants, CoverCosts& costs);

/// Returns the cost of a cover whose variants cost `exact` (by variant): the sum, in the cover's order, of each
/// variant's cost, its transition, the toolchain-switch penalty after the one before it, and the conversions that it
/// makes necessary. By the definition of the problem, independently of any search. Infinite when it is no cover or
/// cannot be put in order.
double CoverSeconds(const CoverProblem& problem, const std::vector<VariantIndex>& variants,
                    const IndexedVector<VariantIndex, double>& exact, CoverCosts& costs);

}  // namespace collage
