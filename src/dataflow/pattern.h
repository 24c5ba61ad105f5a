// pattern.h: patterns over dataflow (RFC 0.81 calls them DFPattern), written as text in toolchains' tables.
//
//   *                        anything (stays outside of the match)
//   const                    a constant (outside too: constants travel into every partition that uses them)
//   nn.conv2d(P, const)      a call of an operator, one pattern per argument
//   nn.conv2d{groups=1}(…)   with attributes of given values
//   (P | Q)                  either; left first
//   proj(P, 0)  tuple(P, Q)  a projection, a tuple
//
// add and multiply commute.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataflow/dataflow_graph.h"

namespace collage {

struct DFPattern {
  enum class Kind : uint8_t { kWildcard, kConstant, kCall, kTuple, kProjection, kAlternative };
  Kind kind = Kind::kWildcard;
  std::string op;                                     ///< kCall
  std::vector<std::pair<std::string, std::string>> attrs;  ///< kCall: name and value as text
  int index = -1;                                     ///< kProjection
  std::vector<std::shared_ptr<const DFPattern>> args;  ///< sub-patterns
};
using DFPatternPtr = std::shared_ptr<const DFPattern>;

/// Throws kInput with the position of a mistake.
DFPatternPtr ParsePattern(std::string_view text);

/// Calls `found` with the sorted indices matched by operators, tuples and projections of `pattern`, for every way in which
/// it matches with node `root` as its root. Each set once.
void MatchPattern(const DataflowGraph& graph, const DFPattern& pattern, int root,
                  const std::function<void(const std::vector<int>& inside)>& found);

}  // namespace collage
