// support_report.h: what of a model each toolchain takes, and why it does not take the rest. Nothing is compiled or
// measured: these are the answers by which candidates are found.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/ir/module.h"

namespace collage {

/// Calls of one operator that a toolchain does not take for one reason.
struct RefusedCalls {
  std::string reason;   ///< in the words of the toolchain's predicate, or that no pattern holds it; never empty
  std::string pattern;  ///< the row of the pattern table whose predicate refused; empty when none did
  int64_t num_calls = 0;
  std::string example;  ///< place of the first one: a model's node, a place in a text; may be empty
};

/// Calls of one operator that a toolchain takes. num_calls is the sum of calls taken alone, calls taken only together
/// with others, and refused calls.
struct OperatorSupport {
  std::string op;
  int64_t num_calls = 0;
  int64_t num_alone = 0;
  int64_t num_in_patterns = 0;
  /// Set for toolchains with a pattern table: row → calls in its matches. A call may be in several.
  std::map<std::string, int64_t> patterns;
  std::vector<RefusedCalls> refused;  ///< the most frequent reason first
};

struct ToolchainSupport {
  ToolchainReport toolchain;
  int64_t num_taken = 0;
  std::vector<OperatorSupport> operators;  ///< by name; the same for all toolchains
};

struct SupportReport {
  int64_t num_calls = 0;
  /// Calls of a program outside of its static graphs, which run by reference evaluation. Not among num_calls.
  int64_t num_outside = 0;
  std::vector<ToolchainSupport> toolchains;
};

/// Describes the calls that remain after the first passes of every compilation, so that names and counts are those of
/// its partitions, not of the model's own nodes. `toolchains` are named; empty: all, also those that are not available
/// here. A toolchain that takes a call here may still decline a partition when it compiles it, for want of a fast
/// implementation. Throws kInput for a toolchain that there is not and for modules that do not type.
SupportReport DescribeSupport(const IRModule& module, const std::vector<std::string>& toolchains = {});

}  // namespace collage
