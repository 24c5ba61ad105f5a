// search.h: a search for covers from the program that calls the compiler.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace collage {

/// The choices of a custom search: positions 0, 1, … (the operator calls that must be covered, in an order of
/// dataflow) and candidates 0, 1, … (partitions with layouts at their boundaries), each of which covers some.
class CoverTask {
 public:
  virtual ~CoverTask() = default;
  virtual int num_positions() const = 0;
  virtual int num_candidates() const = 0;
  /// Ascending.
  virtual const std::vector<int>& positions(int candidate) const = 0;
  /// The name of the toolchain that compiles the candidate.
  virtual std::string toolchain(int candidate) const = 0;
  /// Seconds, found out when they are first asked for, which may take long. Infinity when it cannot be run,
  /// NaN when nobody knows.
  virtual double cost(int candidate) = 0;
  /// Cheap, never above `cost`.
  virtual double lower_bound(int candidate) = 0;
  /// Seconds for a cover: the costs of its candidates, of switching between partitions, and of converting layouts.
  /// Infinity when `cover` is not a cover. The order of candidates does not matter.
  virtual double seconds(const std::vector<int>& cover) = 0;
};

/// Covers, best first, as lists of candidates.
using CustomSearch = std::function<std::vector<std::vector<int>>(CoverTask& task)>;

}  // namespace collage
