// pattern.h: patterns over dataflow (RFC 0.81 calls them DFPattern), written as text in toolchains' tables.
//
//   *                        anything; stays outside of the match
//   const  var  %x           a constant (inside, unless it is a scalar); a variable, of that name (outside)
//   nn.conv2d                the operator itself
//   nn.conv2d(P, const)      a call of an operator, one pattern per argument
//   nn.conv2d(...)           with any arguments
//   nn.conv2d{groups=1, strides=[2, 2]}(P, P)   with attributes of given values
//   nn.relu?(P, …)           optional: the call, or what its first argument's pattern matches alone
//   (P | Q)                  either
//   (add | nn.bias_add)(P, Q)   a call of what a pattern in brackets matches
//   proj(P)  proj(P, 0)      a projection, of any or of that field
//   tuple(P, Q)              a tuple
//   fn(P, P -> P)            a function by its parameters and body; fn(... -> P) with any parameters,
//                            fn{Composite="x"}(... -> *) with attributes
//   let(P, P, P)  if(P, P, P)   variable, value, body; condition and branches
//   dominates(P, Q, R)       R at the root, P further up such that all uses of its value come together at the root
//                            again, and every node between the two matches Q
//   P:float32  P:[1,?]  P:[1,?]float32          a tensor of that dtype, of those dimensions
//   $x=P … $x                the same node in both places: multiply($x, sigmoid($x)); $x alone is anything at first
//
// add and multiply commute. A chain that both multiplies and divides matches in every order and with all brackets that
// have the same value: divide(multiply(P, Q), R) is multiply(P, divide(Q, R)) is multiply(divide(P, R), Q).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "dataflow/dataflow_graph.h"

namespace collage {

struct DFPattern {
  enum class Kind : uint8_t {
    kWildcard,
    kConstant,
    kVar,
    kExpr,
    kOp,
    kCall,  ///< call of operator `op`, or, if that is empty, of an expression that args[0] matches
    kTuple,
    kProjection,
    kAlternative,
    kFunction,  ///< args: parameters, then the body
    kLet,
    kIf,
    kDominates,
    kTyped
  };
  Kind kind = Kind::kWildcard;
  std::string op;                                          ///< kCall, kOp; kVar: the name, empty for any
  bool any_args = false;                                   ///< kCall, kFunction
  std::vector<std::pair<std::string, std::string>> attrs;  ///< kCall, kFunction: name and value as text without spaces
  int index = -1;                                          ///< kProjection; -1 for any field
  std::string dtype;                                       ///< kTyped; empty for any
  bool any_shape = true;                                   ///< kTyped
  std::vector<int64_t> shape;                              ///< kTyped: -1 for any size
  Expr expr;                                               ///< kExpr: this very node; has no text
  std::vector<std::shared_ptr<const DFPattern>> args;      ///< sub-patterns
};
using DFPatternPtr = std::shared_ptr<const DFPattern>;

/// Throws kInput with the position of a mistake.
DFPatternPtr ParsePattern(std::string_view text);

/// The text that ParsePattern reads; throws kInput for patterns of a given expression, which have none.
std::string PatternText(const DFPattern& pattern);

/// Whether an alternative is `op?(P, …)`: a call, or its first argument alone.
bool IsOptional(const DFPattern& pattern);

/// In how many places of `pattern` each of its sub-patterns stands, the two choices of an optional call being one: more
/// than one says that all of them are the same node.
std::unordered_map<const DFPattern*, int> CountUses(const DFPattern& pattern);

/// Finds matches in one graph. Properties of the graph, such as dominators, are computed once.
class PatternMatcher {
 public:
  explicit PatternMatcher(const DataflowGraph& graph) : graph_(graph) {}

  /// Calls `found` with the sorted indices inside the match, for every way in which `pattern` matches with node `root`
  /// as its root. Each set once. Inside are the nodes matched by calls, tuples, projections, lets, ifs and `const`, and
  /// those on the path of `dominates`; what can be inlined never is. A pattern object that occurs twice in `pattern`
  /// stands for the same node each time.
  void Match(const DFPattern& pattern, int root, const std::function<void(const std::vector<int>& inside)>& found);

 private:
  const DataflowGraph& graph_;
  std::vector<int> dominators_;  ///< empty until needed
};

/// Reports one match.
void MatchPattern(const DataflowGraph& graph, const DFPattern& pattern, int root,
                  const std::function<void(const std::vector<int>& inside)>& found);

}  // namespace collage
