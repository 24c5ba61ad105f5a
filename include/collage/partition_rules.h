// partition_rules.h: predicates, base rules and combiners from outside of the tree (RFC 0.81, "PartitionRule"), which
// rules as JSON refer to by their names (docs/write-a-rule.md). A program registers functions; a module
// `libcollage_rules_NAME.so` brings some along, and is found in the folders of $COLLAGE_MODULE_PATH and beside
// Collage's libraries when a rule first asks for a function that nobody registered.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/support/result.h"
#include "collage/target/toolchain.h"

namespace collage {

/// A sub-graph of a function that may become a partition.
struct RuleCandidate {
  std::vector<Expr> inside;  ///< calls, tuples, projections of the function itself, in any order
  std::string name = {};     ///< empty: its operators
  /// Numbers of the candidates that it is made of, in RuleRequest::candidates: their Composites stay around their part.
  std::vector<size_t> made_of = {};
};

/// One question to a rule.
struct RuleRequest {
  const Function& function;    ///< typed dataflow, which the expressions of all candidates are nodes of
  const Toolchain& toolchain;  ///< the toolchain that is to compute the candidates
  std::string options;         ///< field "options" of the rule, JSON; "{}" where it has none
  /// A base rule has none. Around a sub-rule: its candidates. For a combiner: all that are known.
  std::vector<RuleCandidate> candidates = {};
  /// For a combiner: the number of the first one that it has not been asked about before.
  size_t first_new = 0;
};

/// Returns candidates. A base rule finds them in the function (JSON: {"rule": "Registered", "function": NAME}); with a
/// "sub_rule", these replace the sub-rule's. A combiner ({"combiner": "Registered", "function": NAME} in a "Combine")
/// returns unions to add, and is asked again until it has none that are new. Candidates that cannot be run in one go,
/// or exceed the limits of a "Combine", are left out. Must return the same for the same request.
using FindCandidatesFn = std::function<std::vector<RuleCandidate>(const RuleRequest& request)>;

/// Whether a match of a pattern is a candidate ({"rule": "DFPattern", "predicate": NAME}): told the typed function that
/// it would be, constants inlined; the reason of a "no" ends in explanations.
using PartitionPredicateFn = std::function<Result<void>(const Function& match)>;

/// Functions by the names that rules call them by.
struct PartitionRuleFunctions {
  std::map<std::string, FindCandidatesFn> rules;
  std::map<std::string, PartitionPredicateFn> predicates;
};

/// Makes `functions` known in this process, for good. Throws kInput, and registers none, if a name is taken.
void RegisterPartitionRules(const PartitionRuleFunctions& functions);

/// Counts changes of this header that modules built before do not survive: these are refused.
inline constexpr int kRulesInterface = 1;

/// Content of the C symbol `collage_rules_module` of a module.
struct RulesModule {
  int interface_number;
  PartitionRuleFunctions (*make)();
};

}  // namespace collage

/// At the end of a module's source, outside of any namespace: `make` is a function that returns
/// collage::PartitionRuleFunctions.
#define COLLAGE_RULES_MODULE(make)                                                                   \
  extern "C" __attribute__((visibility("default"))) const collage::RulesModule collage_rules_module; \
  const collage::RulesModule collage_rules_module{collage::kRulesInterface, make};
