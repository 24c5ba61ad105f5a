// pattern.h: patterns over dataflow (RFC 0.81 calls them DFPattern), written as text in toolchains' tables.
//
//   *                        anything; stays outside of the match
//   const  var               a constant (inside, unless it is a scalar); a variable (outside)
//   nn.conv2d(P, const)      a call of an operator, one pattern per argument
//   nn.conv2d(...)           with any arguments
//   nn.conv2d{groups=1, strides=[2, 2]}(P, P)   with attributes of given values
//   (P | Q)                  either
//   proj(P)  proj(P, 0)      a projection, of any or of that field
//   tuple(P, Q)              a tuple
//   dominates(P, Q, R)       R at the root, P further up such that all uses of its value come together at the root
//                            again, and every node between the two matches Q
//   P:float32  P:[1,?]  P:[1,?]float32          a tensor of that dtype, of those dimensions
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
  enum class Kind : uint8_t {
    kWildcard,
    kConstant,
    kVar,
    kCall,
    kTuple,
    kProjection,
    kAlternative,
    kDominates,
    kTyped
  };
  Kind kind = Kind::kWildcard;
  std::string op;                                          ///< kCall
  bool any_args = false;                                   ///< kCall
  std::vector<std::pair<std::string, std::string>> attrs;  ///< kCall: name and value as text without spaces
  int index = -1;                                          ///< kProjection; -1 for any field
  std::string dtype;                                       ///< kTyped; empty for any
  bool any_shape = true;                                   ///< kTyped
  std::vector<int64_t> shape;                              ///< kTyped: -1 for any size
  std::vector<std::shared_ptr<const DFPattern>> args;      ///< sub-patterns
};
using DFPatternPtr = std::shared_ptr<const DFPattern>;

/// Throws kInput with the position of a mistake.
DFPatternPtr ParsePattern(std::string_view text);

/// Calls `found` with the sorted indices inside the match, for every way in which `pattern` matches with node `root` as
/// its root. Each set once. Inside are the nodes matched by operators, tuples, projections and `const`.
void MatchPattern(const DataflowGraph& graph, const DFPattern& pattern, int root,
                  const std::function<void(const std::vector<int>& inside)>& found);

}  // namespace collage
